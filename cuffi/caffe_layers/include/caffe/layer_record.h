// The C structs that Python and the Caffe core pass to each other.
//
// C++ includes this file, and cffi reads it, so it has no preprocessor lines, and each layout is written
// once. Addresses and CUDA streams are integers, as in Python.

// Which of a layer's functions run, its phase, and the status that a call returns.
enum { CAFFE_MODE_CPU = 0, CAFFE_MODE_GPU = 1 };
enum { CAFFE_PHASE_TRAIN = 0, CAFFE_PHASE_TEST = 1 };
enum { CAFFE_STATUS_DONE = 0, CAFFE_STATUS_FAILED = 1, CAFFE_STATUS_NOT_IMPLEMENTED = 2 };

// The place of memory: one of these, or a CUDA device's number.
enum { CAFFE_ON_HOST = -1, CAFFE_ON_PAGE_LOCKED_HOST = -2 };
// The token of memory that no service allocated.
enum { CAFFE_NO_TOKEN = -1 };

enum { CAFFE_MOST_AXES = 32, CAFFE_MOST_BOTTOMS_OF_FACTS = 16 };

enum {
  // A gradient is wanted (propagate_down, param_propagate_down).
  CAFFE_WANTED = 1,
  // The contents of the given data, or diff, are undefined. The first access zeroes them, as in SyncedMemory.
  CAFFE_DATA_UNDEFINED = 2,
  CAFFE_DIFF_UNDEFINED = 4,
  // Set by Forward if it wrote to this parameter.
  CAFFE_WRITTEN = 8
};

// A bottom, a top or a parameter blob of one call.
//
// The core never writes to inputs: if a layer writes to a bottom's data or to a top's diff, it writes to a
// copy. If Forward did so and a gradient is wanted, Backward sees that copy as the bottom. A token names a tensor that the allocate service made. The layer's next call, or its end, releases
// the tensors that a call hands out. Take a reference before that.
typedef struct {
  int64_t data, data_token;
  int64_t diff, diff_token;
  int64_t flags;
  // For a top: the bottom that it is computed in place of, or -1. The two are one blob. Its data is at the
  // top's address (the core copies the bottom there, if that is another address), its diff at the bottom's. A
  // top may also share a bottom's data without being in place of it: then it reports the bottom's address. Of
  // memory that the layer keeps, a top reports a copy.
  int64_t in_place_of;
  double loss_weight;
  int64_t axes;
  int64_t shape[CAFFE_MOST_AXES];
} caffe_blob_record;

// A parameter blob after set up, with the multipliers of its ParamSpec as SetUp left them in layer_param_.
typedef struct {
  caffe_blob_record blob;
  double lr_mult, decay_mult;
} caffe_parameter_record;

// One call.
typedef struct {
  int64_t mode;
  // CAFFE_ON_HOST or a CUDA device, and its stream.
  int64_t device, stream;
  int64_t phase;
  int64_t bottoms, tops, parameters;
  // The seed of caffe_rng() for this call. 0: the seed service draws one at the first use.
  int64_t seed;
  // The training loop's iteration. -1: not known.
  int64_t iteration;
  // The bottoms, then the tops, then the parameters.
  caffe_blob_record blobs[];
} caffe_call_record;

// The results of the layer's functions of these names. -1: no such limit.
typedef struct {
  int64_t exact_num_bottom_blobs, min_bottom_blobs, max_bottom_blobs;
  int64_t exact_num_top_blobs, min_top_blobs;
  int64_t equal_num_bottom_top_blobs;
  int64_t allow_force_backward[CAFFE_MOST_BOTTOMS_OF_FACTS];
} caffe_layer_facts_record;

enum { CAFFE_DRAW_UNIFORM = 0, CAFFE_DRAW_NORMAL = 1, CAFFE_DRAW_BERNOULLI = 2, CAFFE_DRAW_BITS = 3 };
enum { CAFFE_DRAWN_FLOAT = 0, CAFFE_DRAWN_DOUBLE = 1, CAFFE_DRAWN_INT32 = 2 };
enum { CAFFE_LOG_INFO = 0, CAFFE_LOG_WARNING = 1, CAFFE_LOG_ERROR = 2 };
// What the text service returns; 0 if it failed.
enum { CAFFE_TEXT_DONE = 1, CAFFE_TEXT_WRONG = 2 };
enum { CAFFE_TO_TEXT = 0, CAFFE_TO_ONE_LINE = 1, CAFFE_FROM_TEXT = 2, CAFFE_FROM_PART_OF_TEXT = 3 };

// cuFFT's numbers of its types, and of the direction that is not the inverse.
enum {
  CAFFE_FFT_C2C = 0x29,
  CAFFE_FFT_R2C = 0x2a,
  CAFFE_FFT_C2R = 0x2c,
  CAFFE_FFT_Z2Z = 0x69,
  CAFFE_FFT_D2Z = 0x6a,
  CAFFE_FFT_Z2D = 0x6c
};
enum { CAFFE_FFT_FORWARD = -1 };

// Services that the core needs from the process that loaded it. If a service fails, it returns 0 and keeps
// its exception. Python then raises that exception instead of the core's error.
typedef struct {
  // Allocates `bytes` on `device`, not zeroed, and sets a token for them.
  void* (*allocate)(int64_t bytes, int64_t device, int64_t* token);
  // Releases that memory. The core's last use of it is already enqueued on the current stream.
  void (*release)(int64_t token);
  // A cublasHandle_t for the current device, set to the current stream.
  void* (*blas_handle)(void);
  // Fills `count` elements at `address` from torch's generator of that device. Returns 1 if done.
  // CAFFE_DRAW_UNIFORM: in [a, b). NORMAL: mean a, deviation b. BERNOULLI: probability a. BITS:
  // 32 random bits.
  int64_t (*random)(int64_t kind, void* address, int64_t count, int64_t type, int64_t device, double a,
                    double b);
  // Draws a seed for caffe_rng() from torch's CPU generator.
  int64_t (*seed)(void);
  // Caffe::set_random_seed: seeds torch's generators.
  void (*set_seed)(int64_t seed);
  // Logs one line. Severity: CAFFE_LOG_*.
  void (*log)(int64_t severity, const char* text);
  // Converts a message to or from text, by Python's protobuf. `message` is the full name of its type in
  // `file`, a serialized FileDescriptorProto. With CAFFE_FROM_PART_OF_TEXT a single field may come twice, and
  // a required field may be missing. Calls take(to, ...) once with the result. Returns CAFFE_TEXT_DONE, or
  // CAFFE_TEXT_WRONG, and then the result is the error.
  int64_t (*text)(int64_t kind, const char* file, int64_t file_bytes, const char* message, const char* input,
                  int64_t input_bytes, void (*take)(void* to, const char* data, int64_t bytes), void* to);
  // Computes a batch of Fourier transforms, not normalised, by torch.fft on the current stream. words:
  // CAFFE_FFT_*, CAFFE_FFT_FORWARD or another direction, device, the addresses of input and output, batch; for the input, then for the
  // output, the distance between transforms and the stride of each axis, in elements; the `axes` sizes.
  // Returns 1 if done.
  int64_t (*fft)(const int64_t* words, int64_t axes);
  // Paths of the shared objects that contain BLAS (sgemm_ and so on), and cuBLAS (or "").
  const char *blas_library, *cublas_library;
} caffe_services;
