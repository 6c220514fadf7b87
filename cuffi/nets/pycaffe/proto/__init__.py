"""caffe.proto: the module `caffe_pb2`."""

from . import caffe_pb2 as caffe_pb2
