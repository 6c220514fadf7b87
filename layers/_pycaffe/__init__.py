"""pycaffe: the Python interface of Caffe, on caffe_net. `layers.caffe` is its public face."""
