"""The core's math as a layer, and its own layers under their own names, so that Python can call them."""

from .._caffe import caffe_layer

Math = caffe_layer(__name__, "Math")

Bias, Concat, Convolution, Eltwise, Flatten, InnerProduct, Pooling, Power, ReLU = (
    caffe_layer(__name__, name)
    for name in (
        "Bias",
        "Concat",
        "Convolution",
        "Eltwise",
        "Flatten",
        "InnerProduct",
        "Pooling",
        "Power",
        "ReLU",
    )
)
Reduction, Reshape, Scale, Sigmoid, Slice, Softmax, Split, TanH = (
    caffe_layer(__name__, name)
    for name in ("Reduction", "Reshape", "Scale", "Sigmoid", "Slice", "Softmax", "Split", "TanH")
)
