# The CUDA backend: kernels by nvcc.

# CUDA_LIB and CUDA_INCLUDE, the folders beside nvcc, are from tools/make/find_nvcc.py.

# nvcc runs the C++ compiler itself; a compiler cache in front of it does not work.
CACHES      := ccache sccache distcc %/ccache %/sccache %/distcc
# -O is for the code around the kernels; nvcc always optimises kernels. -compress-all: with
# -lineinfo the kernels are not compressed by default. Compressed ones are a fifth of the bytes for g++ and the linker.
# Kernels may call constexpr functions of C++, as in std::array; torch's own extensions are compiled so, too.
cuda_NATIVE  = $(COMMON) -include include/caffe_old_nvcc.h -O2 --threads 0 -Wno-deprecated-gpu-targets -lineinfo \
               --expt-relaxed-constexpr \
               -Xfatbin -compress-all -ccbin $(filter-out $(CACHES),$(CXX)) $(OBJECT:%=-Xcompiler %)
cuda_FLAGS  :=

# cuda_FRONT, cuda_FRONTS and cuda_EACH, the GPUs, are from tools/make/architectures.py.
cuda_LINK   := $(CUDA_LIB) -lcudart_static -ldl -lrt -pthread
cuda_INFO   := CUDA $(ARCH)
# The compiler whose version is recorded.
cuda_TELLS  := $(NVCC)

# Options for the C++ compiler, in the form in which nvcc passes them on. through(options)
through      = $(patsubst -f%,-Xcompiler -f%,$(subst -iquote ,-Xcompiler -iquote$(comma),\
                 $(subst -idirafter ,-Xcompiler -idirafter$(comma),$(1))))
# See mk/host.mk.
cuda_native  = $(call step,NVCC,$(1),$@.log,$(call compile,$(call quoted,$(NVCC)) $(call through,$(2)) \
                 $(cuda_NATIVE) -Xcompiler $(ENDS) $(or $(3),$(cuda_FRONTS))))

# Device code that names functions and variables of other files, and the link of all of them: cuda_linked(name, GPUs).
cuda_PARTS  := -rdc=true
cuda_linked = $(call step,NVCC,$(1),$@.log,$(call quoted,$(NVCC)) -dlink $(cuda_NATIVE) $(or $(2),$(cuda_FRONTS)) $(filter %.o,$^) \
                -o $@.partial && mv $@.partial $@)

$(call remember,$(BUILD)/cuda.flags $(CORE_cuda)/flags,$(NVCC) $(cuda_NATIVE) $(cuda_FRONTS) $(cuda_EACH))
