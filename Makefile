# Builds every layer in LAYERS_DIR for every backend there is: `make`, then `python test.py`. `make help` lists targets.
# tools/make/build.py looks at what there is and writes the rules, BUILD/layers.mk; what they call is in mk/.

# ------------------------------------------------------------------------------------- settings
# Each is given on the command line (make ARCH=sm_90) or in the environment.

# The Python that builds, and that the layers are for: 3.10 or newer.
PYTHON     ?= python3
# The C++ compiler, with its options if it needs any.
CXX        ?= g++
# The CUDA compiler. "search" looks in CUDA_HOME, PATH, /usr/local/cuda and pip's nvidia packages; NVCC= does without.
NVCC       ?= search
# Where the CUDA toolkit is, if not where the search finds one.
CUDA_HOME  ?=
# GPU architectures: all-major (that a machine like this can have), native, or a list such as "sm_80 sm_90". PTX for
# newer GPUs is kept, too.
ARCH       ?= all-major
# HIP's compiler, for AMD's GPUs. Nothing is built for them if none is named.
HIPCC      ?=
# Their architectures, a list such as "gfx90a gfx942".
HIP_ARCH   ?= gfx942
# The processor that the host backend is for: native, or x86-64-v3 and the like for a batch of machines.
HOST_ARCH  ?= native
# The folder of layers; or several, with : between them.
LAYERS_DIR ?= layers
# Which of them: names, or nothing for all.
LAYERS     ?=
# For which backends: host, cuda, hip, or nothing for all that there is a compiler for.
BACKENDS   ?=
# Where everything that is made goes: build, or LAYERS_DIR/build for a folder of your own.
BUILD      ?=
# Where the toolkit's own objects go, which all folders of layers share: build/core.
CORE       ?=
# SANITIZE=1 builds the host backend with AddressSanitizer and UBSan, SANITIZE=races with the race finder.
SANITIZE   ?=
# V=1 shows the commands.
V          ?=
SETTINGS  := PYTHON CXX NVCC CUDA_HOME ARCH HIPCC HIP_ARCH HOST_ARCH LAYERS_DIR LAYERS BACKENDS BUILD CORE SANITIZE V
# What single targets ask for (make help says which). These come from the command line alone.
ARGUMENTS := LAYER FROM CAFFE TYPE NAME FORCE PARAM SHAPES TEST FILTER \
             PROTOTXT WEIGHTS PHASE REPLACE IGNORE STAGES MINUTES SEED

include mk/literal.mk

# ------------------------------------------------------------------------------------------ targets
# Recipes hand settings on in the environment, where neither make nor a shell reads them as its own text.
TOOL := "$$PYTHON" -m tools.
# With it Python would not look for the tools here.
unexport PYTHONSAFEPATH
.PHONY: all libraries test bench port loops sanitize new verify net verify-net caffetest fuzz lint clean help
.DEFAULT_GOAL := all

all:  ## build every layer for every backend, run each once, print a table
	+@$(TOOL)make.build all

libraries:  ## build alone, without the table
	+@$(TOOL)make.build libraries

test:  ## run the whole suite; where pip has installed the toolkit, the layers' cases alone
	@if [ -e test.py ]; then "$$PYTHON" test.py; else $(TOOL)verify.run_cases --layers-dir="$$LAYERS_DIR"; fi

bench:  ## measure, with the peers in the same run; LAYER=x for one
	@if [ ! -e benchmarks ]; then echo "make bench: the benchmarks are in the checkout, not in what pip installs"; exit 2; fi
	@"$$PYTHON" benchmarks/run.py $${LAYER:+"$$LAYER"}

new:  ## LAYER=foo: a layer folder that works as written; FROM=/path/foo_layer.cu: from an existing Caffe layer
	@$(TOOL)new_layer --layers-dir "$$LAYERS_DIR" --from="$$FROM" -- "$$LAYER"

port:  ## CAFFE=/path/to/fork TYPE=Normalize [NAME= FORCE=1]: layers out of a Caffe tree, unedited; TYPE=all for all
	+@$(TOOL)port --caffe="$$CAFFE" --layers-dir "$$LAYERS_DIR" --name="$$NAME" $${FORCE:+--force} -- "$$TYPE"

verify:  ## LAYER=x [PARAM= SHAPES= TYPE=]: a Caffe layer's CPU code and kernels against each other and differences
	+@$(TOOL)make.build verify

net:  ## PROTOTXT=x [WEIGHTS=x.caffemodel CAFFE=/path/to/fork]: a whole net: port what is missing, run it, print a table
	+@$(TOOL)net show

verify-net:  ## PROTOTXT=x CAFFE=/path/to/fork: a whole net by torch against the fork's own code, blob by blob
	+@$(TOOL)net verify

caffetest:  ## CAFFE=/path/to/fork TEST=test_pooling_layer.cpp (or all) [FILTER=]: the fork's own layer tests, unedited
	+@$(TOOL)caffetest --filter="$${FILTER:-*}" -- "$$CAFFE" "$$TEST"

loops:  ## which kernel loops are vector loops (up to 16 bytes a thread), which do not and why
	+@$(TOOL)make.build loops

sanitize:  ## every case under AddressSanitizer, UBSan, the race finder and, where there is a GPU, compute-sanitizer
	+@$(TOOL)make.sanitize

fuzz:  ## [MINUTES=1 SEED=1 LAYER=]: calls and files that nobody would make on purpose; each must be right or refused
	+@$(TOOL)make.fuzz --minutes="$${MINUTES:-1}" --seed="$${SEED:-1}"

lint:  ## ruff and clang-format
	@if [ ! -e pyproject.toml ]; then echo "make lint: the sources are in the checkout, not in what pip installs"; exit 2; fi
	@ruff check . && ruff format --check . && git ls-files -z '*.cu' '*.cuh' '*.h' '*.hpp' '*.cpp' ':!tests/tools/cuda/rewrite' | \
	  xargs -0 clang-format --dry-run -Werror

clean:  ## remove all that was made
	@$(TOOL)make.build clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*##/\t/' | sort
