// The C ABI: the functions that every library has besides its layer's own.
// cffi's cdef, C and C++ read this file, so it holds only declarations.

// Element types of a `void *` tensor. Old sources have only the first two. CAFFE_INT32 and CAFFE_INT64 are those of
// indices and labels. The last ones are for templates that somebody launches with them.
enum caffe_dtype {
  CAFFE_FLOAT32 = 0,
  CAFFE_FLOAT64 = 1,
  CAFFE_FLOAT16 = 2,
  CAFFE_BFLOAT16 = 3,
  CAFFE_INT32 = 4,
  CAFFE_INT64 = 5,
  CAFFE_INT8 = 6,
  CAFFE_UINT8 = 7,
  CAFFE_INT16 = 8,
  CAFFE_UINT16 = 9,
  CAFFE_UINT32 = 10,
  CAFFE_UINT64 = 11,
  CAFFE_BOOL = 12
};

// The error text of this thread's last failed call. Valid until this thread's next call.
const char* caffe_last_error(void);

// NULL if this machine can run the library. Otherwise the reason: on the host, missing processor features.
// Every function of the layer calls it first.
const char* caffe_unsupported(void);

// A description of what the library was built for: "CUDA 13.0, sm_75 sm_80", "x86-64 avx2".
const char* caffe_build_info(void);

// Digests of the sources that Python depends on (cuffi/edge.py). They identify the toolkit that built the library.
const char* caffe_edge(void);

// Host backend: sets the most threads of later launches. CUDA backend: no effect.
void caffe_set_num_threads(int count);
