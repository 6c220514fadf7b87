// The C ABI: what every built library offers besides its layer's own functions.
// Bare declarations, read as they are by cffi's cdef, by a C compiler and by C++.

// Element types of a `void *` tensor. Caffe itself knows the first two.
enum caffe_dtype { CAFFE_FLOAT32 = 0, CAFFE_FLOAT64 = 1, CAFFE_FLOAT16 = 2, CAFFE_BFLOAT16 = 3 };

// The text of this thread's last failed call. Valid until this thread's next call.
const char* caffe_last_error(void);

// NULL if this machine can run the library, otherwise why it cannot (host: processor features). Every
// function of the layer asks it first.
const char* caffe_unsupported(void);

// What the library was built for, for people: "CUDA 13.0, sm_75 sm_80", "x86-64 avx2".
const char* caffe_build_info(void);

// Which toolkit it was built with: digests of what Python must know of it, by layers/_edge.py.
const char* caffe_edge(void);

// Host backend: the most threads a launch may use from now on. CUDA backend: no effect.
void caffe_set_num_threads(int count);
