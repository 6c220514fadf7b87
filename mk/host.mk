# The host backend: kernels rewritten as C++, for the C++ compiler.

# -O0: with the checks, -O1 compiles a small file in 2.5 times the time, and removes accesses whose value nobody uses.
SANITIZER_1 := -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -O0
# -fsanitize=thread inserts a call before each memory access. src/host/host_races.h defines the functions that are called.
# -O0: the optimiser removes accesses whose value nobody uses. addr2line reads DWARF 4 with #line, and not 5 (binutils 2.40).
SANITIZER_races := -fsanitize=thread --param=tsan-distinguish-volatile=1 -DCAFFE_HOST_RACES=1 -O0 -gdwarf-4 -g1 -Wno-tsan
# What nvcc does not assume, g++ must not assume of kernels: that memory has one type (a kernel loads halves as float4),
# that each loop ends, that a pointer which was used is not null. docs/architecture/toolkit.md has what this costs. Plain
# char is signed, as where nearly all .cu files were written: on ARM g++ takes it for unsigned.
AS_NVCC     := -fsigned-char -fno-strict-aliasing -fno-finite-loops -fno-delete-null-pointer-checks
host_FLAGS   = $(COMMON) -Iinclude/host -O3 -march=$(HOST_ARCH) -fno-math-errno -fno-trapping-math $(AS_NVCC) \
               $(OBJECT) -g1 -DCAFFE_HOST_BACKEND=1 $(SANITIZER_$(SANITIZE))
host_LINK   := -pthread -lm $(if $(filter 1,$(SANITIZE)),-fsanitize=address$(comma)undefined)
host_INFO   := host $(HOST_ARCH)

# The headers that every .cu includes. They are two thirds of compiling a small one. With the toolkit's macros and what these
# include they are another third: load_inline includes both before all else.
host_CUDA    = -include $(CORE_host)/cuda_runtime.h
host_MACROS  = -include $(CORE_host)/caffe_cuda_macro.h

# Further flags for the launcher itself.
host_LAUNCH := $(if $(filter races,$(SANITIZE)),-fno-sanitize=thread -O2)

# host_native(name, includes and flags, further flags): a native layer's .cu.
host_native  = $(call step,CXX,$(1),$@.log,$(call compile,$(CXX) $(host_FLAGS) $(ENDS) $(2) $(3)))

$(call remember,$(BUILD)/host.flags $(CORE_host)/flags,$(CXX) $(host_FLAGS))
# The toolkit's own .cpp have no kernels for the race finder: they are compiled without, once for all.
# Whole, because flags of its own may be in it, too.
without_races = $(subst $(SANITIZER_races),,$(1))
$(call remember,$(WITHOUT_KERNELS)/flags,$(CXX) $(call without_races,$(host_FLAGS)))
$(WITHOUT_KERNELS)/%: SANITIZE := $(SANITIZE:races=)
$(WITHOUT_KERNELS)/%: CORE_host := $(WITHOUT_KERNELS)
