"""L2 normalisation with a learned scale (ParseNet, SSD): a Caffe layer, written here from the paper."""

from .._caffe import caffe_layer

Normalize = caffe_layer(__name__, "Normalize")
