# Recipes for Caffe layers and the Caffe core. kind.py writes the rules; mk/ has what these recipes are made of.

CAFFE_INCLUDE := $(PACKAGE)/caffe_layers/include
# Caffe's Makefile defines NDEBUG. Some forks test USE_CUDA instead of CPU_ONLY. Precompiled headers need the same
# macros, or the compiler ignores them without a message.
OF_CAFFE  := -DNDEBUG -DUSE_CUDA
# A .cpp in a GPU's library. It needs no special processor, because kernels do the work.
GPU_PLAIN  = $(COMMON) $(OF_CAFFE) -O1 $(OBJECT) $(UNSHARED) -g1

# Includes for a Caffe layer. Its forwarding headers come first, so that a fork's own header wins over the toolkit's.
# additions.hpp has functions that the fork added to Caffe's own headers, for which the toolkit has its own.
# caffe(folder, build)
caffe = -I$(2)/include $(call own,$(1)) -Iinclude -I$(CAFFE_INCLUDE) -I$(CAFFE_INCLUDE)/legacy \
  $(patsubst %,-include %,$(wildcard $(1)/additions.hpp))
# headers(name, folder, build): forwarding headers, and a source that registers the layer if it does not do so itself.
headers = $(call step,HEAD,$(1),$@.log,$(PYTHON) -m cuffi.caffe_layers.make.prepare headers $(2) $(3) && touch $@)
# messages(name, arguments): caffe.proto for C++ and, beside the layer's files, for Python.
messages = $(call step,PROTO,$(1),$@.log,$(PYTHON) -m cuffi.caffe_layers.make.proto $(2) && touch $@)
# std(backend): the standard headers that every Caffe file includes, precompiled. They are a fifth of each compilation.
std = -include $(CORE_$(1))/std.hpp
# plain(backend, name, includes and flags, further flags): a Caffe layer's .cpp.
plain = $(call step,CXX,$(2) ($(1)),$@.log,$(call compile,$(CXX) $(call std,$(1)) $(3) $($(1)_PLAIN) $(4)))

# <backend>_kernel(name, includes and flags, further flags): a Caffe layer's .cu.
# ------------------------------------------------------------------------------------------ host
# No fused multiply-add: each product is rounded, as on the processors that Caffe was built for. Else a box of 50 pixels
# may end at 49.99999.
host_CAFFE   = $(host_FLAGS) $(OF_CAFFE) -ffp-contract=off $(UNSHARED)
host_PLAIN   = $(host_CAFFE)
host_kernel  = $(call step,CXX,$(1),$@.log,$(call compile,$(CXX) $(call std,host) $(2) $(host_CAFFE) $(3)))
ifdef CORE_host
$(call remember,$(BUILD)/host.caffe.flags $(CORE_host)/caffe.flags,$(CXX) $(host_CAFFE))
$(call remember,$(WITHOUT_KERNELS)/caffe.flags,$(CXX) $(call without_races,$(host_CAFFE)))
endif

# ------------------------------------------------------------------------------------------ CUDA
# --expt-relaxed-constexpr: kernels may call functions that the standard library has made constexpr since, such as
# fmax(float, double).
cuda_CAFFE   = $(cuda_NATIVE) $(OF_CAFFE) --expt-relaxed-constexpr $(UNSHARED:%=-Xcompiler %) $(cuda_FRONT)
cuda_PLAIN   = $(GPU_PLAIN) $(CUDA_INCLUDE)
# A .cu without device code, as half of stock Caffe's are, is compiled by the C++ compiler. If that fails, it uses
# something that nvcc declares, and nvcc compiles it.
cuda_kernel  = $(call step,NVCC,$(1),$@.log,\
  { grep -q '^// No device code' $< && $(call compile,$(CXX) $(call std,cuda) $(2) $(cuda_PLAIN) -x c++); } || \
  { $(call compile,$(call quoted,$(NVCC)) $(call through,$(2)) $(cuda_CAFFE)); })
ifdef CORE_cuda
$(call remember,$(BUILD)/cuda.caffe.flags $(CORE_cuda)/caffe.flags,$(NVCC) $(cuda_CAFFE) $(CXX) $(cuda_PLAIN))
endif
