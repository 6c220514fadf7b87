# Caffe layers: folders whose sources register one. Their files are a fork's own; what lets them compile is made beside
# them, in build/<layer>, and what they call is the engine, src/caffe, built once for each backend if any such layer is there.

CAFFE_LAYERS := $(filter $(CAFFE_KNOWN),$(LAYERS))
ifneq ($(CAFFE_LAYERS),)
$(if $(filter caffe engine,$(CAFFE_LAYERS)),$(error a layer cannot be called $(filter caffe engine,$(CAFFE_LAYERS)): rename its folder in $(LAYERS_DIR)))

# ------------------------------------------------------------------------------------------ flags
# The layer's folder and what was made for it come first: a fork's own header wins over the toolkit's.
# Its additions.hpp, if it has one, is seen by every file: functions that the fork added to headers which here are the toolkit's.
# caffe_includes(folder, build)
caffe_includes    = -I$(2)/include -I$(1) -Iinclude -Iinclude/legacy $(patsubst %,-include %,$(wildcard $(1)/additions.hpp))
CUDA_INCLUDE     := $(firstword $(wildcard $(foreach folder,include targets/x86_64-linux/include targets/sbsa-linux/include,\
                      $(dir $(NVCC))../$(folder)/cuda_runtime.h)))
# Each product is rounded, as on the processors that Caffe was built for: fused with a sum, a box of 50 pixels ends at 49.99999.
CAFFE_host_FLAGS := $(HOST_FLAGS) -ffp-contract=off -fno-gnu-unique -DCAFFE_HOST_BACKEND=1
# Device code goes through nvcc's front once, as for the oldest architecture, and is then assembled for each: six fronts, which
# ARCH=all-major would run, take two thirds of a layer's build, and no Caffe layer knows of what newer ones have.
CUDA_KNOWN        := $(if $(filter all-major all,$(ARCH)),$(if $(NVCC),$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code))))
CAFFE_NUMBERS     := $(if $(filter all-major,$(ARCH)),$(firstword $(CUDA_KNOWN)) $(filter %0,$(CUDA_KNOWN)),$(or $(CUDA_KNOWN),$(NUMBERS)))
CAFFE_OLDEST      := $(if $(CAFFE_NUMBERS),$(shell printf '%s\n' $(CAFFE_NUMBERS) | sort -n | head -n 1))
CAFFE_GENCODE    := $(if $(CAFFE_NUMBERS),-gencode 'arch=compute_$(CAFFE_OLDEST)$(comma)code=[$(subst $(space),$(comma),$(strip \
                      $(patsubst %,sm_%,$(sort $(CAFFE_NUMBERS))) compute_$(CAFFE_OLDEST)))]',$(GENCODE))
CAFFE_cuda_FLAGS := $(subst $(GENCODE),$(CAFFE_GENCODE),$(CUDA_FLAGS)) -Xcompiler -fno-gnu-unique
# A .cpp in the CUDA library. For the plainest processor: kernels do the work there.
CAFFE_plain_FLAGS:= $(COMMON) -isystem $(dir $(CUDA_INCLUDE)) -O2 -fPIC -fvisibility=hidden -fno-gnu-unique -Wall -Wno-unknown-pragmas -g1

# The standard headers that every Caffe file includes, compiled once: a fifth of each compilation.
CAFFE_host_STD   := -include $(BUILD)/caffe/host/std.hpp
CAFFE_cuda_STD   := -include $(BUILD)/caffe/cuda/std.hpp

# A .cu without device code, as half of stock Caffe's are, needs no nvcc, unless it leans on what nvcc declares for the host.
# caffe_nvcc(includes, further flags)
caffe_nvcc = { grep -q '^// No device code' $< && $(call compile,$(CXX) $(1) $(CAFFE_cuda_STD) $(CAFFE_plain_FLAGS) $(2) -x c++); } || \
             { $(call compile,$(NVCC) $(1) $(CAFFE_cuda_FLAGS) $(patsubst -f%,-Xcompiler -f%,$(2))); }

# ------------------------------------------------------------------------------------------ rules
# The objects of one folder: (name, folder, build, its sources, further flags). The engine is such a folder too. A fork's files
# were written for compilers of 2014, which took more than C++ says.
define caffe_objects
$(1)_SOURCES := $(4)
$(1)_HEADERS := $(wildcard $(foreach kind,hpp h cuh hh inl,$(2)/*.$(kind) $(2)/*/*.$(kind)))
.SECONDARY: $$(patsubst %.cu,$(3)/host/%.cu.cpp,$$(filter %.cu,$$($(1)_SOURCES))) $$(patsubst %,$(3)/cuda/%,$$(filter %.cu,$$($(1)_SOURCES)))

# The messages for C++, and beside the layer's files their descriptor for Python.
$$(call remember,$(BUILD)/$(1).protos,messages: $(wildcard $(2)/*.proto))
$(3)/proto.stamp: $(wildcard $(2)/*.proto) $(BUILD)/$(1).protos src/caffe/proto/caffe.proto $(wildcard tools/caffe_proto*.py) | $(PACKAGES)
	$$(call step,PROTO,$(1),$(3)/proto.log,$(PYTHON) tools/caffe_proto.py $(if $(filter src/%,$(2)),,--layer-dir $(2) \
	  --descriptor $(2)/_caffe.desc) --include-dir $(3)/include && touch $$@)
$(3)/include/caffe/proto/caffe.pb.h: $(3)/proto.stamp ;

# `forwarded` lists the headers that were made, and changes only with them: then any object may find another header.
$(3)/forward.stamp: $$(addprefix $(2)/,$$($(1)_SOURCES)) $$($(1)_HEADERS) tools/caffe_build.py tools/caffe_folder.py | $(PACKAGES)
	$(Q)mkdir -p $(3) && $(PYTHON) tools/caffe_build.py headers $(2) $(3) && touch $$@
$(3)/forwarded $(3)/registration.cpp: $(3)/forward.stamp ;
$(1)_READY := $(3)/forwarded $(3)/include/caffe/proto/caffe.pb.h

$(3)/host/%.cu.cpp: $(2)/%.cu $(wildcard tools/cuda_*.py) | $(PACKAGES)
	$$(call step,HOST,$(1)/$$*.cu,$$@.log,$(PYTHON) tools/cuda_to_host.py --caffe $(2) $$< $$@ --depfile $$@.d)
$(3)/cuda/%.cu: $(2)/%.cu $(wildcard $(2)/plain_loops tools/cuda_*.py) | $(PACKAGES)
	$$(call step,LOOPS,$(1)/$$*.cu,$$@.log,$(PYTHON) tools/cuda_for_nvcc.py --caffe $(2) $$< $$@ --depfile $$@.d)

$(3)/host/%.cu.o: $(3)/host/%.cu.cpp $$($(1)_READY) $(BUILD)/caffe/host/std.hpp.gch
	$$(call step,CXX,$(1)/$$*.cu,$$@.log,$$(call compile,$(CXX) $$(CAFFE_host_STD) -I$(3)/host $(call caffe_includes,$(2),$(3)) $$(CAFFE_host_FLAGS) $(5)))
$(3)/cuda/%.cu.o: $(3)/cuda/%.cu $$($(1)_READY) $(BUILD)/caffe/cuda/std.hpp.gch
	$$(call step,NVCC,$(1)/$$*.cu,$$@.log,$$(call caffe_nvcc,-I$(3)/cuda $(call caffe_includes,$(2),$(3)),$(5)))
$(foreach kind,cpp cc,$(foreach from,$(2) $(3),
$(3)/host/%.$(kind).o: $(from)/%.$(kind) $$($(1)_READY) $(BUILD)/caffe/host/std.hpp.gch
	$$(call step,CXX,$(1)/$$*.$(kind),$$@.log,$$(call compile,$(CXX) $$(CAFFE_host_STD) $(call caffe_includes,$(2),$(3)) $$(CAFFE_host_FLAGS) $(5)))
$(3)/cuda/%.$(kind).o: $(from)/%.$(kind) $$($(1)_READY) $(BUILD)/caffe/cuda/std.hpp.gch
	$$(call step,CXX,$(1)/$$*.$(kind) (cuda),$$@.log,$$(call compile,$(CXX) $$(CAFFE_cuda_STD) $(call caffe_includes,$(2),$(3)) $$(CAFFE_plain_FLAGS) $(5)))
))
endef

# precompile(backend, flags)
define caffe_precompile
$(BUILD)/caffe/$(1)/std.hpp.gch: src/caffe/std.hpp $(BUILD)/caffe-$(1).flags
	$(Q)mkdir -p $$(@D) && cp $$< $$(@D) && $(CXX) $$(CAFFE_$(2)_FLAGS) -x c++-header $$< -o $$@.partial && mv $$@.partial $$@
endef
$(eval $(call caffe_precompile,host,host))
$(eval $(call caffe_precompile,cuda,plain))

# The engine: objects that libraries take from it what they call; and Python's side of the C ABI, which is every layer's.
define caffe_engine
$(call remember,$(BUILD)/caffe-$(1).sources,$(caffe_SOURCES))
$(BUILD)/caffe/$(1)/libcaffe.a: $(BUILD)/caffe-$(1).sources $(caffe_SOURCES:%=$(BUILD)/caffe/$(1)/%.o) $(if $(filter host,$(1)),$(BUILD)/engine/host_launch.o)
	$(Q)$$(archive)
$(BUILD)/caffe/_$(1).o: $(BUILD)/caffe/$(1)/libcaffe.a src/caffe/caffe_layer.h build_ffi.py include/caffe_ffi.h src/ffi_guard.h src/ffi_call.h | $(PACKAGES)
	$$(call step,FFI,caffe ($(1)),$$@.log,$(PYTHON) build_ffi.py src/caffe/caffe_layer.h $$< $$@ \
	  --cxx '$$(CXX) -O2 -fno-gnu-unique' --flags '$$($(1)_FLAGS)' --info '$$($(1)_INFO)')
endef

# A folder of Caffe's tests (make caffetest) has a C ABI of its own.
caffe_wrapper = $(BUILD)/$(if $(wildcard $(LAYERS_DIR)/$(1)/caffe_test.h),$(1),caffe)

# (layer, backend): objects -> archive -> extension.
define caffe_library
$$(call remember,$(BUILD)/$(1)-$(2).sources,$$($(1)_SOURCES))
$(BUILD)/$(1)/$(2)/lib$(1).a: $(BUILD)/$(1)-$(2).sources $$($(1)_SOURCES:%=$(BUILD)/$(1)/$(2)/%.o) $(BUILD)/$(1)/$(2)/registration.cpp.o
	$(Q)$$(archive)
$(BUILD)/$(1)/_$(2).o: $(wildcard $(LAYERS_DIR)/$(1)/caffe_test.h) $(BUILD)/$(1)/$(2)/lib$(1).a build_ffi.py include/caffe_ffi.h src/ffi_guard.h src/ffi_call.h | $(PACKAGES)
	$$(call step,FFI,$(1) ($(2)),$$@.log,$(PYTHON) build_ffi.py $$(wordlist 1,2,$$^) $$@ \
	  --cxx '$$(CXX) -O2 -fno-gnu-unique' --flags '$$($(2)_FLAGS)' --info '$$($(2)_INFO)')
$(LAYERS_DIR)/$(1)/_$(2).abi3.so: $(call caffe_wrapper,$(1))/_$(2).o $(BUILD)/$(1)/$(2)/lib$(1).a $(BUILD)/caffe/$(2)/libcaffe.a tools/caffe_link.py
	$$(call step,LINK,$(1) ($(2)),$(BUILD)/$(1)/$(2)/ffi.log,$(PYTHON) tools/caffe_link.py $$@ $$(wordlist 1,3,$$^) -- $$(CXX) $$($(2)_LINK))
LIBRARIES += $(LAYERS_DIR)/$(1)/_$(2).abi3.so
endef

$(LAYERS_DIR)/%/__init__.py:
	$(Q)$(PYTHON) tools/caffe_build.py init $(@D)

$(call remember,$(BUILD)/caffe-host.flags,$(CXX) $(CAFFE_host_FLAGS))
$(if $(NVCC),$(call remember,$(BUILD)/caffe-cuda.flags,$(NVCC) $(CAFFE_cuda_FLAGS) $(CXX) $(CAFFE_plain_FLAGS)))
$(eval $(call caffe_objects,caffe,src/caffe,$(BUILD)/caffe,\
  $(patsubst src/caffe/%,%,$(wildcard $(foreach kind,cpp cu,src/caffe/*.$(kind) src/caffe/*/*.$(kind)))),-DCAFFE_ENGINE=1))
$(foreach backend,$(BACKENDS),$(eval $(call caffe_engine,$(backend))))
$(foreach layer,$(CAFFE_LAYERS),\
  $(eval $(call caffe_objects,$(layer),$(LAYERS_DIR)/$(layer),$(BUILD)/$(layer),\
    $(patsubst $(layer)/%,%,$(filter $(layer)/%,$(CAFFE_FOUND))),-w -fpermissive)) \
  $(foreach backend,$(BACKENDS),$(eval $(call caffe_library,$(layer),$(backend)))))
LIBRARIES += $(CAFFE_LAYERS:%=$(LAYERS_DIR)/%/__init__.py)
endif
