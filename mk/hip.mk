# The HIP backend, for AMD's GPUs. It compiles the sources that nvcc gets. include/hip defines CUDA's names.

# Without HIP_PLATFORM hipcc calls nvcc, if it finds one.
HIP         := HIP_PLATFORM=amd $(HIPCC)
HIP_ROOT    := $(dir $(shell command -v '$(HIPCC)'))..
hip_NATIVE  := $(COMMON) -Iinclude/hip -include cuda_runtime.h -x hip $(HIP_ARCH:%=--offload-arch=%) -O3 $(OBJECT)
hip_CAFFE   := $(hip_NATIVE) $(OF_CAFFE)
hip_PLAIN   := $(GPU_PLAIN) -Iinclude/hip -idirafter $(HIP_ROOT)/include -D__HIP_PLATFORM_AMD__
hip_FLAGS   :=
hip_LINK    := -L$(HIP_ROOT)/lib -lamdhip64 -pthread
hip_INFO    := HIP $(HIP_ARCH)

# See mk/host.mk.
hip_native  = $(call step,HIPCC,$(1),$@.log,$(call compile,$(HIP) $(2) $(hip_NATIVE) $(ENDS)))
hip_kernel  = $(call step,HIPCC,$(1),$@.log,$(call compile,$(HIP) $(2) $(hip_CAFFE)))

$(call remember,$(BUILD)/hip.flags,$(HIPCC) $(hip_NATIVE))
$(call remember,$(BUILD)/hip.caffe.flags $(CORE_hip)/flags,$(HIPCC) $(hip_CAFFE) $(CXX) $(hip_PLAIN))
