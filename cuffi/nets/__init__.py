"""The wing of nets: whole Caffe models, their solvers and scripts, by torch alone (README.md)."""
