"""curand_kernel.h's numbers."""

from .._runtime import Layer

layer = Layer(__name__)
