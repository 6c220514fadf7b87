"""Caffe's files and messages: prototxt, caffemodel, caffe.proto. Nets and Caffe layers read them."""
