"""Position-sensitive RoI pooling (R-FCN): a Caffe layer, written here from the paper.

Both gradients are the same bits in every run: that of the score maps is summed in the regions' order, without atomics.
"""

from .._caffe import caffe_layer

PSROIPooling = caffe_layer(__name__, "PSROIPooling")
