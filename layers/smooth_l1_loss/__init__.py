"""The robust regression loss of Fast R-CNN: a Caffe layer, written here from the paper."""

from .._caffe import caffe_layer

SmoothL1Loss = caffe_layer(__name__, "SmoothL1Loss")
