"""Position-sensitive RoI pooling (R-FCN): a Caffe layer, written here from the paper."""

from .._caffe import caffe_layer

PSROIPooling = caffe_layer(__name__, "PSROIPooling")
