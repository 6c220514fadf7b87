# The targets of the Caffe layers' wing. The Makefile includes this.

TARGETS   += port verify
ARGUMENTS += CAFFE TYPE NAME FORCE PARAM SHAPES

port:  ## CAFFE=/path/to/fork TYPE=Normalize [NAME= FORCE=1]: take layers out of a Caffe fork, unedited; TYPE=all for all
	+@$(CUFFI) port

verify:  ## LAYER=x [PARAM= SHAPES= TYPE=]: compare a Caffe layer's CPU code, kernels and finite differences
	+@$(CUFFI) verify
