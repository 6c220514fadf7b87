# Builds every layer in layers/ for every backend there is: `make`, then `python test.py`.
# `make help` lists the targets. No layer is named here: a folder with a .cu file is a layer; one whose sources
# register a Caffe layer is built by the rules in caffe.mk.

# ------------------------------------------------------------------------------------- settings
# Each can be set on the command line (make ARCH=sm_90) or in the environment.
PYTHON     ?= python3
CXX        ?= g++
CUDA_HOME  ?=
# The CUDA compiler. Searched in CUDA_HOME, PATH, /usr/local/cuda and pip's nvidia-* packages; NVCC= does without.
NVCC       ?= $(shell $(PYTHON) tools/find_nvcc.py "$(CUDA_HOME)")
# GPU architectures: all-major, native, or a list such as "sm_80 sm_90". The newest is also kept as PTX.
ARCH       ?= all-major
# Processor the host backend is for: native, or x86-64-v3 and the like for a batch of machines.
HOST_ARCH  ?= native
# Where the layers are, and which of them to build.
LAYERS_DIR ?= layers
LAYERS     ?=
# SANITIZE=1 puts AddressSanitizer and UBSan into the host backend (make sanitize does).
SANITIZE   ?=
# V=1 shows the commands.
V          ?=

SETTINGS := PYTHON CXX CUDA_HOME NVCC ARCH HOST_ARCH LAYERS_DIR LAYERS SANITIZE V LAYER FROM BUILD CAFFE TYPE NAME FORCE PARAM SHAPES TEST FILTER

# ------------------------------------------------------------------------------------------ make
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
.PHONY: all libraries test bench port loops sanitize new verify caffetest lint clean help FORCE
Q := $(if $(V),,@)

# A misspelt setting would otherwise be ignored in silence.
space   := $(subst ,, )
UNKNOWN := $(filter-out $(SETTINGS),$(foreach word,$(subst \$(space),_,$(MAKEOVERRIDES)),$(firstword $(subst =, ,$(word)))))
$(if $(UNKNOWN),$(error $(UNKNOWN): no such setting. There are: $(SETTINGS)))

override LAYERS_DIR := $(patsubst %/,%,$(LAYERS_DIR))
$(if $(word 2,x$(CURDIR)),$(error make cannot work in a path with spaces: $(CURDIR)))
$(if $(word 2,$(LAYERS_DIR)),$(error LAYERS_DIR: make cannot work in a path with spaces: $(LAYERS_DIR)))
OUTSIDE := $(if $(filter-out $(CURDIR)/layers,$(abspath $(LAYERS_DIR))),yes)
# By one name only: what is remembered of a build has paths in it.
override LAYERS_DIR := $(if $(OUTSIDE),$(LAYERS_DIR),layers)
BUILD   ?= $(if $(OUTSIDE),$(LAYERS_DIR)/build,build)

# By the shell: a wildcard would remember what $(LAYERS_DIR)/build held before the flags below are written there.
KNOWN := $(sort $(patsubst %/,%,$(dir $(shell cd '$(LAYERS_DIR)' 2>/dev/null && ls -d */*.cu 2>/dev/null))))
# Found by one look at all folders: "folder/file" of every source below a folder that registers a layer, or has Caffe's tests.
CAFFE_FOUND := $(shell cd '$(LAYERS_DIR)' 2>/dev/null && find . \( -path ./build -o -name '.?*' \) -prune -o \
  -path './*/*' \( -name '*.cpp' -o -name '*.cc' -o -name '*.cu' \) -print 2>/dev/null | sed 's,^\./,,')
CAFFE_KNOWN := $(sort $(foreach file,$(if $(CAFFE_FOUND),$(shell cd '$(LAYERS_DIR)' && grep -lE \
  '^[[:space:]]*(REGISTER_LAYER_CLASS|REGISTER_LAYER_CREATOR|INSTANTIATE_CLASS)[^A-Z_]|^extern "C" int64_t caffe_test_run' $(CAFFE_FOUND))),\
  $(firstword $(subst /, ,$(file)))))
KNOWN := $(sort $(KNOWN) $(CAFFE_KNOWN))
override LAYERS := $(or $(strip $(LAYERS)),$(if $(filter verify,$(MAKECMDGOALS)),$(LAYER)),$(KNOWN))
NO_SUCH := $(filter-out $(KNOWN),$(LAYERS))
$(if $(NO_SUCH),$(error LAYERS: no layer $(NO_SUCH) in $(LAYERS_DIR). There are: $(or $(KNOWN),none)))

# `make clean` and `make help` need no toolchain.
NEEDS_TOOLS := $(if $(filter-out clean help lint new test,$(or $(MAKECMDGOALS),all)),yes)
ifneq ($(NEEDS_TOOLS),)
$(if $(filter port,$(MAKECMDGOALS)),$(shell mkdir -p $(LAYERS_DIR)))
$(if $(wildcard $(LAYERS_DIR)/.),,$(error LAYERS_DIR: there is no folder $(LAYERS_DIR)))
override NVCC := $(NVCC)
BACKENDS := host $(if $(NVCC),cuda)
$(shell mkdir -p $(BUILD))

# ------------------------------------------------------------------------------------------ flags
comma      := ,
COMMON     := -std=c++17 -Iinclude
HOST_FLAGS := $(COMMON) -Iinclude/host -O3 -march=$(HOST_ARCH) -fno-math-errno -fno-trapping-math -fPIC \
              -fvisibility=hidden -Wall -Wno-unknown-pragmas -g1 \
              $(if $(SANITIZE),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined)
# gencode(virtual or real architecture it is kept as, number)
gencode     = -gencode arch=compute_$(2)$(comma)code=$(1)_$(2)
NUMBERS    := $(patsubst sm_%,%,$(filter sm_%,$(ARCH)))
GENCODE    := $(if $(NUMBERS),$(foreach n,$(NUMBERS),$(call gencode,sm,$(n))) \
                $(call gencode,compute,$(lastword $(NUMBERS))),-arch=$(ARCH))
CUDA_FLAGS := $(COMMON) -O3 $(GENCODE) --threads 0 -Wno-deprecated-gpu-targets -lineinfo -ccbin $(CXX) \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wno-unknown-pragmas
CUDA_LIB   := $(if $(NVCC),$(dir $(firstword $(wildcard $(foreach lib,lib64 lib targets/x86_64-linux/lib \
                targets/sbsa-linux/lib,$(dir $(NVCC))../$(lib)/libcudart_static.a)))))
host_FLAGS := $(HOST_FLAGS)
cuda_FLAGS :=
host_LINK  := -pthread -lm $(if $(SANITIZE),-fsanitize=address$(comma)undefined)
cuda_LINK  := -L$(CUDA_LIB) -lcudart_static -ldl -lrt -pthread
host_INFO  := host $(HOST_ARCH)
cuda_INFO  := CUDA $(ARCH)

# A file that holds what is built with, rewritten only when that changes; whatever depends on it follows.
remember = $(if $(subst x$(strip $(file <$(1)))x,,x$(strip $(2))x),$(file >$(1),$(strip $(2))))
$(call remember,$(BUILD)/host.flags,$(CXX) $(HOST_FLAGS))
$(if $(NVCC),$(call remember,$(BUILD)/cuda.flags,$(NVCC) $(CUDA_FLAGS)))
$(call remember,$(BUILD)/python.flags,$(shell $(PYTHON) -c 'import sys; print(sys.executable, *sys.version_info)'))

# What was made from another folder's layer of that name is of no use: a file may well be older than the object made of
# its namesake. Forgotten by the make that builds, under the lock if there is one, and not by -n. made_from(layer)
WHERE     := $(if $(OUTSIDE),$(abspath $(LAYERS_DIR)),$(LAYERS_DIR))
made_from  = $(if $(filter-out $(WHERE),$(file <$(BUILD)/$(1).from)),$(shell rm -rf '$(BUILD)/$(1)'))$(call remember,$(BUILD)/$(1).from,$(WHERE))
SAYS_ONLY := $(findstring n,$(filter-out --%,$(firstword $(MAKEFLAGS))))
$(if $(SAYS_ONLY)$(filter all verify loops sanitize port caffetest,$(or $(MAKECMDGOALS),all)),,$(foreach layer,$(LAYERS),$(call made_from,$(layer))))

# step(word, what, log, command): one short line, the command's output in the log, shown if it failed.
# Compilers write to names of their own, so that a killed make leaves no half an object, nor half a rule: compile(command).
define step
$(Q)mkdir -p $(dir $@) $(dir $(3)); printf '  %-5s %s\n' '$(1)' '$(2)'; $(if $(V),echo '$(subst ','\'',$(4))';) \
if ( $(4) ) >$(3) 2>&1; then $(if $(V),cat $(3),:); else head -n 20 $(3); echo '  FAIL  $(2): all of it in $(3)'; exit 1; fi
endef
compile = $(1) -MMD -MP -MT $@ -MF $@.d.partial -c $< -o $@.partial && mv $@.d.partial $(@:.o=.d) && mv $@.partial $@
# ar begins with an archive of nothing under the name that it is given.
archive = rm -f $@.partial && ar rcs $@.partial $(filter %.o,$^) && mv $@.partial $@

# ------------------------------------------------------------------------------------------ rules
PACKAGES := $(BUILD)/packages
$(PACKAGES): requirements.txt tools/install_packages.py $(BUILD)/python.flags
	$(Q)$(PYTHON) tools/install_packages.py requirements.txt && touch $@

$(BUILD)/engine/host_launch.o: src/host_launch.cpp $(BUILD)/host.flags
	$(call step,CXX,host_launch.cpp,$@.log,$(call compile,$(CXX) $(HOST_FLAGS)))

# The rules of one layer: (layer). Sources are all its .cu files.
define layer_rules
$(1)_SOURCES := $(notdir $(wildcard $(LAYERS_DIR)/$(1)/*.cu))
# Kept, though made on the way. (`.SECONDARY:` for all would also overlook a header that has been deleted.)
.SECONDARY: $$($(1)_SOURCES:%.cu=$(BUILD)/$(1)/host/%.cpp) $$($(1)_SOURCES:%=$(BUILD)/$(1)/cuda/%)

# Every source sees the layer's own declarations, so that one that drifted from them does not compile.
$(BUILD)/$(1)/declarations.h: $(BUILD)/host.flags
	$(Q)mkdir -p $$(dir $$@); printf 'extern "C" {\n#include "%s"\n}\n' '$(abspath $(LAYERS_DIR)/$(1)/$(1).h)' >$$@.partial && mv $$@.partial $$@

$(BUILD)/$(1)/host/%.cpp: $(LAYERS_DIR)/$(1)/%.cu $(wildcard tools/cuda_*.py) | $(PACKAGES)
	$$(call step,HOST,$(1)/$$(notdir $$<),$$@.log,$(PYTHON) tools/cuda_to_host.py $$< $$@ --depfile $$@.d)

$(BUILD)/$(1)/host/%.o: $(BUILD)/$(1)/host/%.cpp $(BUILD)/$(1)/declarations.h $(BUILD)/host.flags
	$$(call step,CXX,$(1)/$$*.cu,$$@.log,$$(call compile,$(CXX) $$(HOST_FLAGS) -I$(LAYERS_DIR)/$(1) \
	  -include stdint.h -include $(BUILD)/$(1)/declarations.h))

$(BUILD)/$(1)/cuda/%.cu: $(LAYERS_DIR)/$(1)/%.cu $(wildcard $(LAYERS_DIR)/$(1)/plain_loops tools/cuda_*.py) | $(PACKAGES)
	$$(call step,LOOPS,$(1)/$$(notdir $$<),$$@.log,$(PYTHON) tools/cuda_for_nvcc.py $$< $$@ --depfile $$@.d)

$(BUILD)/$(1)/cuda/%.o: $(BUILD)/$(1)/cuda/%.cu $(BUILD)/$(1)/declarations.h $(BUILD)/cuda.flags
	$$(call step,NVCC,$(1)/$$*.cu,$$@.log,$$(call compile,$(NVCC) $$(CUDA_FLAGS) -I$(LAYERS_DIR)/$(1) \
	  -include stdint.h -include $(BUILD)/$(1)/declarations.h))
endef

# (layer, backend): objects -> archive -> extension.
define library_rules
# The list of sources is remembered too: what a deleted one held must go.
$$(call remember,$(BUILD)/$(1)-$(2).sources,$$($(1)_SOURCES))
$(BUILD)/$(1)/$(2)/lib$(1).a: $(BUILD)/$(1)-$(2).sources $$($(1)_SOURCES:%.cu=$(BUILD)/$(1)/$(2)/%.o) $(if $(filter host,$(2)),$(BUILD)/engine/host_launch.o)
	$(Q)$$(archive)

$(LAYERS_DIR)/$(1)/_$(2).abi3.so: $(BUILD)/$(1)/$(2)/lib$(1).a $(LAYERS_DIR)/$(1)/$(1).h \
  $(wildcard $(LAYERS_DIR)/$(1)/$(1)_ffi.cpp) build_ffi.py include/caffe_ffi.h src/ffi_guard.h src/ffi_call.h | $(PACKAGES)
	$$(call step,FFI,$(1) ($(2)),$(BUILD)/$(1)/$(2)/ffi.log,$(PYTHON) build_ffi.py $(LAYERS_DIR)/$(1)/$(1).h $$< $$@ \
	  --cxx '$$(CXX) -O2' --flags '$$($(2)_FLAGS)' --link '$$($(2)_LINK)' --info '$$($(2)_INFO)')

LIBRARIES += $(LAYERS_DIR)/$(1)/_$(2).abi3.so
endef

LIBRARIES :=
$(foreach layer,$(filter-out $(CAFFE_KNOWN),$(LAYERS)),$(eval $(call layer_rules,$(layer))) \
  $(foreach backend,$(BACKENDS),$(eval $(call library_rules,$(layer),$(backend)))))
include caffe.mk
-include $(wildcard $(BUILD)/engine/*.d $(foreach layer,$(LAYERS) $(if $(CAFFE_LAYERS),caffe),$(BUILD)/$(layer)/*/*.d $(BUILD)/$(layer)/*/*/*.d))

# A folder of layers outside of this tree is a package of its own: it gets the runtime beside it.
RUNTIME := $(if $(OUTSIDE),$(patsubst layers/%,$(LAYERS_DIR)/%,$(filter-out layers/__init__.py,$(wildcard layers/_*.py))))
$(LAYERS_DIR)/_%.py: layers/_%.py
	$(Q)cp $< $@

libraries: $(LIBRARIES) $(if $(OUTSIDE),$(RUNTIME))
	@:
endif

# ---------------------------------------------------------------------------------------- targets
help:  ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*##/\t/' | sort

# As many jobs as there are cores, unless the caller says how many.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

# One make at a time builds: what others make on the way would have the same names.
LOCKED = $(PYTHON) tools/lock.py $(BUILD)/lock $(MAKE) $(JOBS) LAYERS='$(LAYERS)'

all: $(PACKAGES)  ## build every layer for every backend, run each once, print a table
	+@$(if $(LAYERS),,echo "No layers in $(LAYERS_DIR): make new LAYER=foo makes one."; exit 0;) \
	$(LOCKED) -k libraries; status=$$?; \
	$(PYTHON) tools/report.py --layers-dir '$(LAYERS_DIR)' --build '$(BUILD)' --backends '$(BACKENDS)' --status $$status $(LAYERS)

test:  ## run the whole suite
	@LAYERS_DIR='$(LAYERS_DIR)' $(PYTHON) test.py

bench:  ## measure, with the peers in the same run; LAYER=x for one
	@$(PYTHON) benchmarks/run.py $(LAYER)

new:  ## LAYER=foo: a layer folder that works as written; FROM=/path/foo_layer.cu: from an existing Caffe layer
	@$(PYTHON) tools/new_layer --layers-dir '$(LAYERS_DIR)' --from '$(FROM)' '$(LAYER)'

port:  ## CAFFE=/path/to/fork TYPE=Normalize: a layer out of a Caffe tree, unedited; several types, or all of the tree's
	+@$(PYTHON) tools/port --caffe '$(CAFFE)' --layers-dir '$(LAYERS_DIR)' --build '$(BUILD)' --backends '$(BACKENDS)' \
	  $(if $(NAME),--name '$(NAME)') $(if $(FORCE),--force) --make '$(PYTHON) tools/lock.py $(BUILD)/lock $(MAKE) $(JOBS)' $(TYPE)

verify: $(PACKAGES)  ## LAYER=x [PARAM= SHAPES= TYPE=]: a Caffe layer's CPU code, its kernels on the host and on the GPU against each other and differences
	+@$(LOCKED) libraries
	@$(PYTHON) tools/verify.py --layers-dir '$(LAYERS_DIR)' $(if $(PARAM),--param '$(PARAM)') \
	  $(if $(SHAPES),--shapes '$(SHAPES)') $(if $(TYPE),--type '$(TYPE)') $(LAYER)

caffetest: $(PACKAGES)  ## CAFFE=/path/to/fork TEST=test_pooling_layer.cpp (or all) [FILTER=]: the fork's own layer tests, unedited
	@$(if $(and $(CAFFE),$(TEST)),,echo "make caffetest CAFFE=/path/to/fork TEST=test_x_layer.cpp"; exit 2;) \
	$(PYTHON) tools/caffetest '$(CAFFE)' $(TEST) --build $(BUILD) $(if $(FILTER),--filter '$(FILTER)') --make ARCH='$(ARCH)' NVCC='$(NVCC)' CXX='$(CXX)'

loops: $(PACKAGES)  ## which kernel loops run as streams (up to 16 bytes a thread), which do not and why
	+@$(LOCKED) libraries
	@cat $(foreach layer,$(LAYERS),$(BUILD)/$(layer)/cuda/*.cu.loops) 2>/dev/null; true  # a Caffe layer may have no .cu

# initcheck goes without half: it does not see what cuBLAS's half products write (by TMA, on Hopper) and takes
# their results for uninitialised. In a copy, so that the libraries in use stay what they are. CUDA's allocator is told to keep no cache, as a
# write behind a tensor's end would otherwise land in memory that is torch's.
sanitize: $(PACKAGES)  ## every case under AddressSanitizer and UBSan and, where there is a GPU, compute-sanitizer
	+@$(LOCKED) libraries
	@rm -rf $(BUILD)/sanitize/layers && mkdir -p $(BUILD)/sanitize && cp -r $(LAYERS_DIR) $(BUILD)/sanitize/layers
	@rm -rf $(BUILD)/sanitize/layers/build $(BUILD)/sanitize/layers/*/*.so
	@$(MAKE) $(JOBS) NVCC= SANITIZE=1 LAYERS_DIR=$(BUILD)/sanitize/layers BUILD=$(BUILD)/sanitize/made LAYERS='$(LAYERS)' libraries
	@echo "AddressSanitizer, UBSan:"; CUDA_VISIBLE_DEVICES= \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(PYTHON) tools/run_cases.py --layers-dir $(BUILD)/sanitize/layers --device cpu
	@$(PYTHON) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || { echo "compute-sanitizer: no GPU here"; exit 0; }; \
	for tool in memcheck racecheck initcheck; do echo "compute-sanitizer $$tool:"; \
	  PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool $$tool --error-exitcode 9 $(PYTHON) tools/run_cases.py \
	  --layers-dir $(LAYERS_DIR) --device cuda $$([ $$tool = initcheck ] && echo --dtypes float32 float64) || exit 1; done

lint:  ## ruff and clang-format
	@ruff check . && ruff format --check . && clang-format --dry-run -Werror $$(git ls-files '*.cu' '*.cuh' '*.h' '*.hpp' '*.cpp' ':!tests/rewrite')

clean:  ## remove all that was made
	rm -rf $(BUILD) $(foreach made,_host.abi3.so _cuda.abi3.so _caffe.desc,$(LAYERS_DIR)/*/$(made))
