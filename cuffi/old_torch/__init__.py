"""The wing of old torch: extensions of torch.utils.ffi and torch/extension.h, unedited (README.md)."""
