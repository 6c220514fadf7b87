"""CUDA_KERNEL_LOOP and what bodies do in it."""

from .._runtime import Layer

layer = Layer(__name__)
