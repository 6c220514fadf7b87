"""caffe.proto: the module `caffe_pb2`."""
