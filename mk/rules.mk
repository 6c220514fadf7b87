# The recipes of BUILD/layers.mk, which tools/make/makefile.py writes. That file sets the settings, includes this file,
# and then has the rules.

MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: core whole_core libraries
libraries:
# An older depfile may name a file that no longer exists, such as a source that has moved. Its outputs are made again,
# and the compiler reports what is really missing.
.DEFAULT: ;

# Python, or a client of the program that runs make, which has Python's programs already (tools/make/forks.py).
RUN = $(PYTHON) $(CUFFI_FORK)

comma := ,
space := $(subst ,, )
Q     := $(if $(V),,@)

# -MD, not -MMD: a header that is found by -idirafter counts as the system's, and so does all that it includes.
TELL     := -MD -MP
# Write flags to files, but only if they differ. What depends on a file is then built again. remember(files, flags)
remember = $(foreach to,$(1),$(if $(subst x$(strip $(file <$(to)))x,,x$(strip $(TELL) $(ENVIRONMENT) $(2))x),\
             $(file >$(to),$(strip $(TELL) $(ENVIRONMENT) $(2)))))

# A text as one word of the shell, whatever is in it: a command has paths of Python and of compilers. quoted(text)
quoted = '$(subst ','\'',$(1))'

# Show a step as one line, and its command's output only if it fails. step(word, what, log, command)
define step
$(Q)printf '  %-5s %s\n' '$(1)' '$(2)'; $(if $(V),printf '%s\n' $(call quoted,$(4));) \
if ( $(4) ) >$(3) 2>&1; then $(if $(V),cat $(3),:); \
else [ -s $(3) ] || printf 'It printed nothing, and ended with an error: %s\n' $(call quoted,$(4)) >$(3); head -n 20 $(3); echo '  FAIL  $(2): all of it in $(3)'; exit 1; fi$(if $(AGAIN),$(call without_loops,$(2)))
endef
# Compilers write to .partial files, so that a killed make leaves no half object or dependency file. A rewritten source
# has a .d, too: foo.cu.d is the source's, foo.cu.o.d the object's. compile(compiler and flags)
compile_once = $(1) $(TELL) -MT $@ -MF $@.d.partial -c $< -o $@.partial && mv $@.d.partial $@.d && mv $@.partial $@
# If a rewritten source does not compile, it is rewritten without loops, and compiled again. AGAIN, a variable of the object
# alone: the module that rewrites, its options, and the source.
compile = $(if $(and $(AGAIN),$(if $(filter races,$(SANITIZE)),,1)),$(call compile_or_again,$(1)),$(call compile_once,$(1)))
compile_or_again = if ( $(call compile_once,$(1)) ) >$@.first 2>&1; then rm -f $@.plain; cat $@.first; \
  elif cp $< $<.loops && $(RUN) -m $(AGAIN) $< --plain --depfile $<.d >/dev/null 2>&1 && ! cmp -s $< $<.loops; then \
  $(call compile_once,$(1)) && { grep -m 1 'error:' $@.first || echo 'no error line'; } >$@.plain; \
  else cat $@.first; false; fi
without_loops = ; if [ -e $@.plain ]; then \
  printf 'No loops: %s: its kernels do not compile as loops, and run thread by thread: %s\n' '$(1)' "$$(cat $@.plain)"; fi

# A file may ask for a newer standard (load_inline(..., flags=["-std=c++20"])).
STANDARD  := 17
COMMON     = -std=c++$(STANDARD) -Iinclude
# Every object goes into a shared library that exports only its Python wrapper.
OBJECT    := -fPIC -fvisibility=hidden -Wall -Wno-unknown-pragmas
# For native layers: a function without its `return` would run into the code after it.
ENDS      := -Werror=return-type

# Include paths of the layer's own folders. For <...> they come after the compiler's, because a layer may be
# called `math`. own(folders)
own = $(foreach folder,$(1),-iquote $(folder)) $(foreach folder,$(1),-idirafter $(folder))
# Includes for a native layer. Its declarations come first, so that a definition that differs from them does not
# compile. load_inline writes a prologue.h. native(folder, build)
# The wings' headers, such as THC/THCAtomics.cuh, come last.
WINGS := $(wildcard $(PACKAGE)/*/include)
native = $(call own,$(1)) -iquote . $(patsubst %,-idirafter %,$(WINGS)) -include stdint.h -include $(2)/declarations.h $(patsubst %,-include %,$(wildcard $(1)/prologue.h))

# ------------------------------------------------------------------------------------------ recipes
# rewrite(word, name, module and options): a .cu for a backend's compiler.
rewrite = $(call step,$(1),$(2),$@.log,$(RUN) -m $(3) $(if $(filter races,$(SANITIZE)),--watched) $< $@ --depfile $@.d)
# ar first writes an empty archive, so it writes to a .partial file.
archive = $(Q)rm -f $@.partial && ar rcs $@.partial $(filter %.o,$^) && mv $@.partial $@
# wrapper(name, backend, flags): the Python wrapper of a layer's C functions. -O2 makes no call faster. The headers that
# it includes are precompiled, which halves its time.
wrapper = $(call step,FFI,$(1) ($(2)),$@.log,$(RUN) build_ffi.py $< $@ --cxx $(call quoted,$(CXX) -O1 $(3)) \
  --flags $(call quoted,$($(2)_FLAGS)) --info $(call quoted,$($(2)_INFO)) --std $(basename $(filter %/ffi_std.hpp.gch,$^)))
wrappers_std = $(Q)$(RUN) build_ffi.py $< $@ --cxx $(call quoted,$(CXX) -O1)
# The extension that makes the calls of all layers.
runner = $(call step,CXX,call.cpp,$(BUILD)/call.log,$(RUN) -m tools.make.build_call $@ --cxx $(call quoted,$(CXX) -O2))
# link(name, backend): link the wrapper, the layer's archive and those of the toolkit.
link = $(call step,LINK,$(1) ($(2)),$(BUILD)/$(1)/$(2)/link.log,$(RUN) -m tools.make.link $@ \
  $(filter %.o %.a,$^) $(patsubst %,--header %,$(filter %.h,$^)) -- $(call quoted,$($(2)_INFO)) $(call quoted,$($(2)_TELLS)) $(CXX) -- \
  $($(2)_LINK))
