# The targets of lab. The Makefile of a checkout includes this.

TARGETS   += caffetest fuzz site
ARGUMENTS += TEST FILTER MINUTES SEED

caffetest:  ## CAFFE=/path/to/fork TEST=test_pooling_layer.cpp (or all) [FILTER=]: run the fork's own layer tests, unedited
	+@"$$PYTHON" -m lab.caffetest --filter="$${FILTER:-*}" -- "$$CAFFE" "$$TEST"

fuzz:  ## [MINUTES=1 SEED=1 LAYER=]: random calls; each must give the right result or an error
	+@"$$PYTHON" -m lab.fuzz.make

site:  ## the docs and a reference as HTML, in build/site/html; a broken link or an undocumented public name is an error
	+@"$$PYTHON" -m lab.site
