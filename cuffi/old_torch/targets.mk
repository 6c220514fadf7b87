# The target of the wing of old torch. The Makefile includes this.

TARGETS   += ffi
ARGUMENTS += EXT JOB

ffi:  ## EXT="/path/to/extension ...": build extensions of torch.utils.ffi (2017, 2018), unedited; print a table
	+@$(CUFFI) ffi
