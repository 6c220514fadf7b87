# `make` builds every layer in LAYERS_DIR for every backend. Then type `python3 test.py`. `make help` lists targets.
# tools/make/build.py finds the layers and writes the rules, BUILD/layers.mk. Their recipes are in mk/.

# ------------------------------------------------------------------------------------- settings
# Give them on the command line (make ARCH=sm_90) or in the environment.

# The Python that builds and uses the layers: 3.10 or newer. Without an active virtual environment it is that of .venv,
# which make makes if packages are missing. Into a PYTHON that you name, and that is in no virtual environment, make
# installs only with INSTALL=1.
PYTHON     ?= $(if $(VIRTUAL_ENV)$(filter-out base,$(CONDA_DEFAULT_ENV)),python3,$(or $(wildcard .venv/bin/python),python3))
# The C++ compiler, with options if it needs any. "search" is g++, or clang++ where that alone is there. make itself has
# a value for CXX, which is nobody's wish.
ifeq ($(origin CXX),default)
undefine CXX
endif
CXX        ?= search
# The CUDA compiler. "search" looks in CUDA_HOME, PATH, /usr/local/cuda and pip's nvidia packages; NVCC= means none.
NVCC       ?= search
# The folder of the CUDA toolkit, if the search does not find it.
CUDA_HOME  ?=
# GPU architectures: all-major (nvcc's major architectures, for this kind of machine), native (this machine's GPUs), or a
# list such as "sm_80 sm_90". PTX for newer GPUs is added.
ARCH       ?= all-major
# The processor for the host backend: native (this one), or a level that several machines have, such as x86-64-v3.
HOST_ARCH  ?= native
# The folders of layers, separated by ":".
LAYERS_DIR ?= layers
# The layers to build: names. Empty: all.
LAYERS     ?=
# The backends to build for: host, cuda. Empty: all that have a compiler.
BACKENDS   ?=
# The folder of all build files: build, or LAYERS_DIR/build for a folder of your own.
BUILD      ?=
# The folder of the toolkit's own objects, which all folders of layers share: build/core.
CORE       ?=
# SANITIZE=1 builds the host backend with AddressSanitizer and UBSan, SANITIZE=races with the race finder.
SANITIZE   ?=
# The seconds that a layer's run for the table may take.
LIMIT      ?= 60
# V=1 shows the commands.
V          ?=
SETTINGS  := PYTHON CXX NVCC CUDA_HOME ARCH HOST_ARCH LAYERS_DIR LAYERS BACKENDS BUILD CORE SANITIZE LIMIT V
# Arguments of single targets (make help says which). They are read only from the command line.
ARGUMENTS := INSTALL LAYER FROM
TARGETS   := all libraries test bench new loops sanitize lint clean help

# The wings' own targets and arguments. An installed package is around this folder. override: the user's values of these
# two are not expanded.
override WINGS := $(if $(wildcard cuffi/base),cuffi,..)
override FRAGMENTS := $(sort $(wildcard $(WINGS)/*/targets.mk lab/targets.mk))
include $(FRAGMENTS)
include mk/literal.mk

# ------------------------------------------------------------------------------------------ targets
# Recipes get the settings in the environment, so that neither make nor a shell interprets their text.
THERE := command -v "$$PYTHON" >/dev/null || { echo "make: PYTHON=$$PYTHON: there is no such program: name one that is there:" \
  $$(cd / && for each in 3 3.10 3.11 3.12 3.13 3.14; do \
  python$$each -c '' 2>/dev/null && echo PYTHON=$$(command -v python$$each); done) >&2; exit 2; };
TOOL := $(THERE) "$$PYTHON" -m tools.
CUFFI := $(THERE) "$$PYTHON" -m cuffi --make
# Did the user name the Python? (tools/make/requirements.py)
export PYTHON_NAMED := $(if $(filter file,$(origin PYTHON)),,1)
# With `make -C toolkit`, printed commands must work in the user's folder.
export CALLED_IN := $(value PWD)
# PYTHONSAFEPATH would hide the tools in this folder from Python.
unexport PYTHONSAFEPATH
.PHONY: $(TARGETS) inline
.DEFAULT_GOAL := all

all:  ## build every layer for every backend, run each once, print a table
	+@$(TOOL)make.build all

libraries:  ## only build, without the table
	+@$(TOOL)make.build libraries

# For load_inline: it writes the launchers of a string, and builds it.
inline:
	+@$(TOOL)new_layer.build_inline inline

test:  ## python3 test.py; in an installed toolkit, only the layers' cases
	@$(THERE) if [ -e test.py ]; then "$$PYTHON" test.py; else $(TOOL)cases.run_cases --layers-dir="$$LAYERS_DIR"; fi

bench:  ## measure the layers and their peers; LAYER=x for one
	@if [ ! -e benchmarks ]; then echo "make bench: the benchmarks are in the checkout, not in what pip installs"; exit 2; fi
	@$(THERE) "$$PYTHON" benchmarks/run.py $${LAYER:+"$$LAYER"}

new:  ## LAYER=foo: start a native layer
	@$(CUFFI) new

loops:  ## list the kernel loops: which are vector loops (16 bytes per thread), and why the others are not
	+@$(TOOL)make.build loops

sanitize:  ## run every case under AddressSanitizer, UBSan, the race finder and, on a GPU, compute-sanitizer
	+@$(TOOL)make.sanitize

lint:  ## ruff, clang-format and the type checker
	@if [ ! -e pyproject.toml ]; then echo "make lint: the sources are in the checkout, not in what pip installs"; exit 2; fi
	@for tool in ruff ty clang-format; do command -v $$tool >/dev/null || { echo "make lint: $$tool is missing:" \
	  "python -m pip install -r requirements/lint.txt"; exit 2; }; done
	@ruff check . && ruff format --check . && ty check -q && git ls-files -z '*.cu' '*.cuh' '*.h' '*.hpp' '*.cpp' | \
	  xargs -0 clang-format --dry-run -Werror

clean:  ## remove all build files
	@$(TOOL)make.build clean

.DEFAULT:
	$(error there is no target '$@'. There are: $(TARGETS). To install the toolkit: pip install $(CURDIR))

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile $(FRAGMENTS) | sed -E 's/:.*##/\t/' | sort
