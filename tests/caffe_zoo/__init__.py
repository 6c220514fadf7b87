"""Tiny Caffe layers, one for each thing that the Python side must get right."""

from .._caffe import caffe_layer

NAMES = """
    Ramp Pair Rewriting Noise Affine Positive Shared Kernels Counting Stopping Mirrored Scheduled Careless Adding Finite
    Sided Early EarlyLoss EarlyNeuron AddingNeuron Running Exposing Halves Writing
"""
globals().update({name: caffe_layer(__name__, name) for name in NAMES.split()})
