# The CUDA backend: kernels by nvcc.

# nvcc's front is the slow part of a compilation. It runs once for several architectures, as for the oldest of them;
# then the code is assembled for each. There are two fronts, because from sm_80 on half types have their own instructions.
# PTX of the newest front is kept for future GPUs.
# front(architectures, architecture of the PTX)
# all-major and all leave out what no machine like this one can have (sm_110 is only in systems with ARM processors), and
# GPUs that torch no longer supports (sm_3x, which nvcc 11 still knows).
FOREIGN     := $(if $(filter all-major,$(ARCH)),$(if $(filter x86_64,$(shell uname -m)),110))
KNOWN       := $(if $(filter all-major all,$(ARCH)),$(filter-out 3%,\
                 $(patsubst sm_%,%,$(shell '$(NVCC)' --list-gpu-code))))
WANTED      := $(sort $(if $(filter all-major,$(ARCH)),$(firstword $(KNOWN)) \
                 $(filter-out $(FOREIGN),$(filter %0,$(KNOWN))),\
                 $(or $(KNOWN),$(patsubst sm_%,%,$(filter sm_%,$(ARCH))))))
OLD         := $(filter 3% 5% 6% 7%,$(WANTED))
NEW         := $(filter 8% 9%,$(WANTED)) $(filter-out 3% 5% 6% 7% 8% 9%,$(WANTED))
NEWEST      := $(lastword $(OLD) $(NEW))
front        = -gencode 'arch=compute_$(firstword $(1)),code=[$(subst $(space),$(comma),$(strip $(1:%=sm_%) \
                 $(2:%=compute_%)))]'
GENCODE     := $(if $(WANTED),$(if $(OLD),$(call front,$(OLD),$(if $(strip $(NEW)),,$(firstword $(OLD))))) \
                 $(if $(strip $(NEW)),$(call front,$(NEW),$(firstword $(NEW)))),-arch=$(ARCH))
# A layer that asks for the GPU's architecture has a front for each of them.
cuda_EACH   := $(if $(WANTED),$(foreach n,$(WANTED),-gencode arch=compute_$(n)$(comma)code=sm_$(n)) \
                 -gencode arch=compute_$(NEWEST)$(comma)code=compute_$(NEWEST),-arch=$(ARCH))
# An option and the first folder of the CUDA toolkit that has the file. It is empty if the toolkit lies in the system's own
# folders, as Debian's and Ubuntu's does. cuda_folder(option, folders, file)
cuda_folder  = $(addprefix $(1),$(dir $(firstword $(wildcard $(foreach kind,$(2),$(dir $(NVCC))../$(kind)/$(strip $(3)))))))
CUDA_LIB    := $(call cuda_folder,-L,lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib,libcudart_static.a)
CUDA_INCLUDE:= $(call cuda_folder,-isystem ,include targets/x86_64-linux/include targets/sbsa-linux/include,\
                 cuda_runtime.h)
# nvcc runs the C++ compiler itself, and takes no launcher in front of it.
LAUNCHERS   := ccache sccache distcc %/ccache %/sccache %/distcc
# -O is for the code around the kernels; nvcc always optimises kernels. Caffe has -O2, too. -compress-all: with -lineinfo
# the kernels are compressed only if asked. A fifth of the bytes go through g++ and the linker.
cuda_NATIVE := $(COMMON) -include include/caffe_old_nvcc.h -O2 --threads 0 -Wno-deprecated-gpu-targets -lineinfo \
               -Xfatbin -compress-all -ccbin $(filter-out $(LAUNCHERS),$(CXX)) \
               $(OBJECT:%=-Xcompiler %)
cuda_FLAGS  :=

# One front for all: no Caffe layer uses features of newer GPUs. --expt-relaxed-constexpr: kernels may call functions that
# the standard library has made constexpr since, such as fmax(float, double).
cuda_CAFFE  := $(cuda_NATIVE) $(OF_CAFFE) --expt-relaxed-constexpr $(UNSHARED:%=-Xcompiler %) \
                 $(if $(WANTED),$(call front,$(OLD) $(NEW),$(firstword $(OLD) $(NEW))),-arch=$(ARCH))
cuda_PLAIN  := $(GPU_PLAIN) $(CUDA_INCLUDE)
cuda_LINK   := $(CUDA_LIB) -lcudart_static -ldl -lrt -pthread
cuda_INFO   := CUDA $(ARCH)
# The compiler whose version is recorded.
cuda_TELLS  := $(NVCC)

# Options for the C++ compiler, in the form in which nvcc passes them on. through(options)
through      = $(patsubst -f%,-Xcompiler -f%,$(subst -iquote ,-Xcompiler -iquote$(comma),\
                 $(subst -idirafter ,-Xcompiler -idirafter$(comma),$(1))))
# See mk/host.mk. A .cu without device code, as half of stock Caffe's are, is compiled by the C++ compiler. If that fails,
# it uses something that nvcc declares, and nvcc compiles it.
cuda_native  = $(call step,NVCC,$(1),$@.log,$(call compile,'$(NVCC)' $(call through,$(2)) \
                 $(cuda_NATIVE) $(or $(3),$(GENCODE))))
cuda_kernel  = $(call step,NVCC,$(1),$@.log,\
  { grep -q '^// No device code' $< && $(call compile,$(CXX) $(call std,cuda) $(2) $(cuda_PLAIN) -x c++); } || \
  { $(call compile,'$(NVCC)' $(call through,$(2)) $(cuda_CAFFE)); })

$(call remember,$(BUILD)/cuda.flags,$(NVCC) $(cuda_NATIVE) $(GENCODE) $(cuda_EACH))
$(call remember,$(BUILD)/cuda.caffe.flags $(CORE_cuda)/flags,$(NVCC) $(cuda_CAFFE) $(CXX) $(cuda_PLAIN))
