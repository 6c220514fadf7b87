"""pycaffe: the Python interface of Caffe, on caffe_net. `layers.caffe` is the public module."""
