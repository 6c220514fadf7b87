"""CUDA's functions of numbers and of bits."""

from .._runtime import Layer

layer = Layer(__name__)
