# The HIP backend, for AMD's GPUs. It compiles the sources that nvcc gets. include/hip defines CUDA's names.

# Without HIP_PLATFORM hipcc calls nvcc, if it finds one.
HIP         := HIP_PLATFORM=amd $(HIPCC)
HIP_ROOT    := $(dir $(shell command -v '$(HIPCC)'))..
hip_NATIVE  := $(COMMON) -Iinclude/hip -include cuda_runtime.h -x hip $(HIP_ARCH:%=--offload-arch=%) -O3 $(OBJECT)
hip_FLAGS   :=
hip_LINK    := -L$(HIP_ROOT)/lib -lamdhip64 -pthread
hip_INFO    := HIP $(HIP_ARCH)

# See mk/host.mk.
hip_native  = $(call step,HIPCC,$(1),$@.log,$(call compile,$(HIP) $(2) $(hip_NATIVE) $(ENDS)))

$(call remember,$(BUILD)/hip.flags $(CORE_hip)/flags,$(HIPCC) $(hip_NATIVE))
