# The targets for whole nets. The Makefile includes this.

TARGETS   += net verify-net onnx train
ARGUMENTS += PROTOTXT WEIGHTS PHASE REPLACE IGNORE STAGES PYTHON_LAYERS PYTHON_PATH SOLVER RESUME

net:  ## PROTOTXT=x [WEIGHTS=x.caffemodel CAFFE=/path/to/fork]: port what a net needs, run it, print a table
	+@$(CUFFI) net

verify-net:  ## PROTOTXT=x CAFFE=/path/to/fork: compare a net by torch with the fork's own code, blob by blob
	+@$(CUFFI) net verify

onnx:  ## PROTOTXT=x WEIGHTS=x.caffemodel [ONNX=x.onnx]: write a net as ONNX, and compare every blob
	+@$(CUFFI) onnx

train:  ## SOLVER=solver.prototxt [WEIGHTS=x.caffemodel RESUME=1 PYTHON_LAYERS=1]: train a Caffe net as `caffe train` did
	@"$$PYTHON" -m cuffi train $${WEIGHTS:+--weights "$$WEIGHTS"} $${RESUME:+--resume} \
	  $${CALLED_IN:+--directory "$$CALLED_IN"} -- "$$SOLVER"
