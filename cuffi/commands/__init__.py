"""Commands that join wings: what `make net` and `make onnx` run."""
