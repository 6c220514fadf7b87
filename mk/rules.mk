# What the rules of BUILD/layers.mk (written by tools/make/rules.py) are made of. That file states the settings before
# it includes this one, and the rules after it.

MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: core whole_core libraries
libraries:

comma := ,
space := $(subst ,, )
Q     := $(if $(V),,@)

# A file that holds what is built with, rewritten only when that changes; whatever depends on it follows.
# remember(file, text)
remember = $(if $(subst x$(strip $(file <$(1)))x,,x$(strip $(2))x),$(file >$(1),$(strip $(2))))

# One line is shown for a step; what its command says is shown if it fails. step(word, what, log, command)
define step
$(Q)printf '  %-5s %s\n' '$(1)' '$(2)'; $(if $(V),echo '$(subst ','\'',$(4))';) \
if ( $(4) ) >$(3) 2>&1; then $(if $(V),cat $(3),:); \
else head -n 20 $(3); echo '  FAIL  $(2): all of it in $(3)'; exit 1; fi
endef
# Compilers write to names of their own, so that a killed make leaves no half an object, nor half a rule.
# A rewritten source has a .d, too, so this one is the object's: foo.cu.o.d beside foo.cu.d. compile(compiler and flags)
compile = $(1) -MMD -MP -MT $@ -MF $@.d.partial -c $< -o $@.partial && mv $@.d.partial $@.d && mv $@.partial $@

REWRITERS := $(wildcard tools/cuda/*.py)
MESSAGES  := $(wildcard tools/caffe/proto*.py)
PREPARERS := $(wildcard tools/caffe/*.py)
COMMON    := -std=c++17 -Iinclude
# Caffe's Makefile defines NDEBUG. Some forks have USE_CUDA where Caffe has CPU_ONLY. The headers that are compiled
# beforehand are told the same: the compiler passes them over in silence if they were told otherwise.
OF_CAFFE  := -DNDEBUG -DUSE_CUDA

# The layer's own folder, and headers made for it. Behind the compiler's for <...>: a layer may be called `math`.
# own(folders)
own = $(foreach folder,$(1),-iquote $(folder)) $(foreach folder,$(1),-idirafter $(folder))
# What a native layer's sources see: their own declarations, so that one that drifted from them does not compile.
# native(folder, build)
native = $(call own,$(1)) -include stdint.h -include $(2)/declarations.h
# What a Caffe layer's see. What was made for it comes first: a fork's own header wins over the toolkit's. A folder's
# additions.hpp holds functions that the fork added to headers which here are the toolkit's.
# caffe(folder, build)
caffe = -I$(2)/include $(call own,$(1)) -Iinclude -Iinclude/legacy \
  $(patsubst %,-include %,$(wildcard $(1)/additions.hpp))

# ------------------------------------------------------------------------------------------ recipes
# headers(name, folder, build): forwarding headers, and what registers the layer if nothing else does.
headers = $(call step,HEAD,$(1),$@.log,$(PYTHON) -m tools.caffe.build headers $(2) $(3) && touch $@)
# messages(name, arguments): caffe.proto for C++ and, beside the layer's files, for Python.
messages = $(call step,PROTO,$(1),$@.log,$(PYTHON) -m tools.caffe.proto $(2) && touch $@)
# ar begins with an archive of nothing under the name that it is given.
archive = $(Q)rm -f $@.partial && ar rcs $@.partial $(filter %.o,$^) && mv $@.partial $@
# wrapper(name, backend, flags): Python's side of a layer's C functions.
wrapper = $(call step,FFI,$(1) ($(2)),$@.log,$(PYTHON) build_ffi.py $< $@ --cxx '$(CXX) -O2 $(3)' \
  --flags '$($(2)_FLAGS)' --info '$($(2)_INFO)')
# What runs recorded calls, for all layers.
runner = $(call step,CXX,call.cpp,$(BUILD)/call.log,$(PYTHON) -m tools.make.build_call $@ --cxx '$(CXX) -O2')
# refuse(file that says why)
refuse = @sed 's/^/  FAIL  /' $(1); exit 1
# link(name, backend): of the wrapper, the layer's archive and, for a Caffe layer, the core's.
link = $(call step,LINK,$(1) ($(2)),$(BUILD)/$(1)/$(2)/link.log,$(PYTHON) -m tools.make.link $@ \
  $(filter %.o %.a,$^) $(patsubst %,--header %,$(filter %.h,$^)) -- '$($(2)_INFO)' '$($(2)_TELLS)' $(CXX) $($(2)_LINK))
