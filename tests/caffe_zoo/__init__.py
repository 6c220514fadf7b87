"""Tiny Caffe layers, one for each thing that the Python side must get right."""

from .._caffe import caffe_layer

Ramp, Pair, Rewriting, Noise, Affine, Positive, Shared, Kernels, Counting = (
    caffe_layer(__name__, name)
    for name in ("Ramp", "Pair", "Rewriting", "Noise", "Affine", "Positive", "Shared", "Kernels", "Counting")
)
