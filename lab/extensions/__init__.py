"""Public extensions of torch/extension.h, as their users have them."""
