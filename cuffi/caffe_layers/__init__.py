"""The wing of Caffe layers: a fork's own C++ and CUDA files, unedited (README.md)."""
