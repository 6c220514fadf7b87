"""pycaffe: the Python interface of Caffe, on caffe_net. `cuffi.caffe` is the public module."""
