"""Who am I: threadIdx, blockIdx, blockDim and gridDim in three dimensions."""

from .._runtime import Layer

layer = Layer(__name__)
