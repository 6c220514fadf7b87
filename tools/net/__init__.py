"""make net, make verify-net: a whole Caffe net from the shell."""
