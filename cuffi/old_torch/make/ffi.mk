# Extensions of torch.utils.ffi: recipes for their C, C++ and kernels. build_library.py writes the rules.

FFI_HEADERS := $(PACKAGE)/old_torch/include
FFI_INCLUDE := -I$(FFI_HEADERS)/ffi -Iinclude -I$(FFI_HEADERS) -I$(FFI_HEADERS)/TH -I$(FFI_HEADERS)/THC
FFI_OBJECT  := -O2 -fPIC -fvisibility=hidden
FFI_host    := -DCAFFE_HOST_BACKEND=1
FFI_host_CPP := -idirafter include/host
FFI_cuda     = $(CUDA_INCLUDE)
# -fexceptions: an error of TH leaves C as a C++ exception. For gcc 14, pointers of another type are errors, and C code
# of 2017 passes them. An undeclared function stays an error: it is a name of TH that the toolkit lacks.
FFI_C       := -x c -std=gnu11 -fexceptions -Wno-incompatible-pointer-types -Wno-int-conversion \
               -Werror=implicit-function-declaration
FFI_CPP     := -std=c++17 -fpermissive -w
# ffi_c, ffi_cpp(backend, what, includes and macros, declarations). C of 2017 calls functions above their definitions.
# If that fails, the extension's own declarations are included first.
ffi_c        = $(call step,CXX,$(2),$@.log,{ $(call ffi_as_c,$(1),$(3)); } || { $(call ffi_as_c,$(1),$(3) $(4)); })
ffi_as_c     = $(call compile,$(CXX) $(FFI_C) $(FFI_OBJECT) $(FFI_$(1)) $(2) $(FFI_INCLUDE))
ffi_cpp      = $(call step,CXX,$(2),$@.log,$(call compile,$(CXX) $(FFI_CPP) $(FFI_OBJECT) $(FFI_$(1)) \
               $(3) $(FFI_INCLUDE) $(FFI_$(1)_CPP)))
# ffi_kernel(backend, what, includes and macros): a rewritten .cu.
ffi_kernel   = $(call ffi_kernel_$(1),$(2),$(3) $(FFI_INCLUDE))
# Macros as for the compilers of 2017; on the host each product is rounded, as on the processors of that time.
FFI_KERNEL   := -DNDEBUG -DUSE_CUDA
ffi_kernel_host = $(call step,CXX,$(1),$@.log,$(call compile,$(CXX) $(2) $(host_FLAGS) $(FFI_KERNEL) \
               -ffp-contract=off $(UNSHARED) -w -fpermissive))
ffi_kernel_cuda = $(call step,NVCC,$(1),$@.log,$(call compile,$(call quoted,$(NVCC)) $(2) $(cuda_NATIVE) $(FFI_KERNEL) \
               --expt-relaxed-constexpr $(UNSHARED:%=-Xcompiler %) $(cuda_FRONT) --extended-lambda -w))
# ffi_wrapper(module, backend): the Python module of the C functions.
ffi_wrapper  = $(call step,FFI,$(1),$@.log,$(PYTHON) -m cuffi.old_torch.make.build_wrapper $< $@ \
               --cxx $(call quoted,$(CXX) -O1 $(FFI_$(2)) $(FFI_INCLUDE) $(FFI_$(2)_CPP)) \
               --flags $(call quoted,$($(2)_FLAGS)) --info $(call quoted,$($(2)_INFO)))

# Extensions of torch/extension.h. cuffi/old_torch/make/torch_library.py writes the rules; their flags have the headers.
ATEN_PLAIN  := -w -fpermissive
# torch compiles without Caffe's macros, so a failed assert is an error. The extension's headers come first. nvcc gets
# the four macros that torch gives it.
aten_own     = $(filter-out -std=% -Iinclude,$(1))
# On the host .cpp files get the kernels' options, so that what is precompiled fits both. CUDA's min and max are for
# kernels alone.
ATEN_HOST    = $(call aten_own,$(host_FLAGS)) -ffp-contract=off $(UNSHARED) $(ATEN_PLAIN) -DATEN_WITH_HALF \
               -DCAFFE_HOST_WITHOUT_MIN_MAX
ATEN_FIRST   = $(ATEN_HOST) -std=c++17 -I$(FFI_HEADERS)/extension -Iinclude
ATEN_NVCC   := --extended-lambda -w $(patsubst %,-D__CUDA_NO_%__,HALF_OPERATORS HALF_CONVERSIONS \
               BFLOAT16_CONVERSIONS HALF2_OPERATORS)
# aten_cpp, aten_kernel(backend, what, includes and macros), aten_runtime(backend, includes), aten_wrapper(module,
# backend, includes).
aten_cpp     = $(call step,CXX,$(2),$@.log,$(call compile,$(CXX) $(aten_cpp_$(1)) $(3) -Iinclude))
aten_cpp_host = $(ATEN_HOST)
aten_cpp_cuda = $(FFI_OBJECT) $(ATEN_PLAIN) $(CUDA_INCLUDE)
aten_kernel  = $(call aten_kernel_$(1),$(2),$(3) -Iinclude)
aten_kernel_host = $(call step,CXX,$(1),$@.log,$(call compile,$(CXX) $(ATEN_HOST) $(2) -include include/host/cuda_min_max.h))
aten_kernel_cuda = $(call step,NVCC,$(1),$@.log,$(call compile,$(call quoted,$(NVCC)) $(call aten_own,$(cuda_NATIVE)) \
               --expt-relaxed-constexpr $(UNSHARED:%=-Xcompiler %) $(cuda_FRONT) $(ATEN_NVCC) -include include/caffe_old_warp.h $(2)))
aten_runtime = $(call step,CXX,aten_python.cpp ($(1)),$@.log,$(PYTHON) -m cuffi.old_torch.make.build_wrapper $< $@ --cxx $(call quoted,$(CXX) -O2 $(2)))
aten_wrapper = $(call step,FFI,$(1),$@.log,$(PYTHON) -m cuffi.old_torch.make.build_wrapper $< $@ --cxx $(call quoted,$(CXX) -O1 $(3)) \
               --flags $(call quoted,$($(2)_FLAGS)) --info $(call quoted,$($(2)_INFO)))
