"""Caffe layers as torch.nn.Modules."""

from .module import CaffeModule, caffe_layer

__all__ = ["CaffeModule", "caffe_layer"]
