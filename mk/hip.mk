# The HIP backend, for AMD's GPUs. It compiles the sources that nvcc gets. include/hip defines CUDA's names.

# Without HIP_PLATFORM hipcc calls nvcc, if it finds one.
HIP         := HIP_PLATFORM=amd $(HIPCC)
HIP_ROOT    := $(dir $(shell command -v '$(HIPCC)'))..
hip_NATIVE  := $(COMMON) -Iinclude/hip -include cuda_runtime.h -x hip $(HIP_ARCH:%=--offload-arch=%) -O3 -fPIC \
               -fvisibility=hidden -Wall -Wno-unknown-pragmas
hip_CAFFE   := $(hip_NATIVE) $(OF_CAFFE)
# A .cpp in the HIP library. See mk/cuda.mk.
hip_PLAIN   := $(COMMON) $(OF_CAFFE) -Iinclude/hip -idirafter $(HIP_ROOT)/include -D__HIP_PLATFORM_AMD__ -O1 -fPIC \
               -fvisibility=hidden $(UNSHARED) -Wall -Wno-unknown-pragmas -g1
hip_FLAGS   :=
hip_STD     := -include $(CORE_hip)/std.hpp
hip_LINK    := -L$(HIP_ROOT)/lib -lamdhip64 -pthread
hip_INFO    := HIP $(HIP_ARCH)

hip_rewrite = $(call step,LOOPS,$(1),$@.log,$(PYTHON) -m tools.cuda.for_nvcc $(2) $< $@ --depfile $@.d)
hip_native  = $(call step,HIPCC,$(1),$@.log,$(call compile,$(HIP) $(2) $(hip_NATIVE)))
hip_kernel  = $(call step,HIPCC,$(1),$@.log,$(call compile,$(HIP) $(2) $(hip_CAFFE)))
hip_plain   = $(call step,CXX,$(1) (hip),$@.log,$(call compile,$(CXX) $(hip_STD) $(2) $(hip_PLAIN)))

$(call remember,$(BUILD)/hip.flags,$(HIPCC) $(hip_NATIVE))
$(call remember,$(BUILD)/hip.caffe.flags,$(HIPCC) $(hip_CAFFE) $(CXX) $(hip_PLAIN))
$(call remember,$(CORE_hip)/flags,$(HIPCC) $(hip_CAFFE) $(CXX) $(hip_PLAIN))
