"""How alike two images are at each displacement (FlowNet): a Caffe layer, written here from the paper."""

from .._caffe import caffe_layer

Correlation = caffe_layer(__name__, "Correlation")
