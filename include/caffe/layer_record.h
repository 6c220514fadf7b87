// What Python and the Caffe core hand to each other, as C structs.
// Bare declarations, without preprocessor lines: C++ includes them, cffi reads them, and nobody writes a
// layout down twice. Addresses and CUDA streams are numbers here: Python knows them as such.

// Which of a layer's functions run; its phase; what a call answers.
enum { CAFFE_MODE_CPU = 0, CAFFE_MODE_GPU = 1 };
enum { CAFFE_PHASE_TRAIN = 0, CAFFE_PHASE_TEST = 1 };
enum { CAFFE_STATUS_DONE = 0, CAFFE_STATUS_FAILED = 1, CAFFE_STATUS_NOT_IMPLEMENTED = 2 };

// Where memory is: these, or a CUDA device's number.
enum { CAFFE_ON_HOST = -1, CAFFE_ON_PAGE_LOCKED_HOST = -2 };
// Memory that no service made.
enum { CAFFE_NO_TOKEN = -1 };

enum { CAFFE_MOST_AXES = 32, CAFFE_MOST_BOTTOMS_OF_FACTS = 16 };

enum {
  // A gradient is wanted (propagate_down, param_propagate_down).
  CAFFE_WANTED = 1,
  // There is memory for data, or for diff, whose contents are not defined: zeroed at first touch, as
  // SyncedMemory does.
  CAFFE_DATA_UNDEFINED = 2,
  CAFFE_DIFF_UNDEFINED = 4,
  // Filled in by Forward: it wrote to this parameter.
  CAFFE_WRITTEN = 8
};

// A bottom, a top or a parameter blob of one call.
//
// Nothing given to be read is written: bottoms' data and tops' diff are copied first if the layer writes to
// them. A token names a tensor that the allocate service made. A tensor that a call hands out is released by
// the same layer's next call, or its end: take hold of it before.
typedef struct {
  int64_t data, data_token;
  int64_t diff, diff_token;
  int64_t flags;
  // Of a top: the bottom that it is computed in place of; -1: none. The two are one blob: its data lies at
  // the top's address (the bottom's contents are copied there if that is another), its diff at the bottom's.
  // A top that shares a bottom's data without being in place of it reports that bottom's address; memory that
  // the layer itself keeps is reported as a copy.
  int64_t in_place_of;
  double loss_weight;
  int64_t axes;
  int64_t shape[32];
} caffe_blob_record;

// One call.
typedef struct {
  int64_t mode;
  // CAFFE_ON_HOST or the CUDA device, and its stream.
  int64_t device, stream;
  int64_t phase;
  int64_t bottoms, tops, parameters;
  // Of caffe_rng_rand() and friends; 0: drawn by the seed service at their first use in the call.
  int64_t seed;
  // The training loop's; -1: not known.
  int64_t iteration;
  // The bottoms, then the tops, then the parameters.
  caffe_blob_record blobs[];
} caffe_call_record;

// What a layer says of itself, by the names of Caffe's functions; -1: nothing.
typedef struct {
  int64_t exact_num_bottom_blobs, min_bottom_blobs, max_bottom_blobs;
  int64_t exact_num_top_blobs, min_top_blobs;
  int64_t equal_num_bottom_top_blobs;
  int64_t allow_force_backward[16];
} caffe_layer_facts_record;

enum { CAFFE_DRAW_UNIFORM = 0, CAFFE_DRAW_NORMAL = 1, CAFFE_DRAW_BERNOULLI = 2, CAFFE_DRAW_BITS = 3 };
enum { CAFFE_DRAWN_FLOAT = 0, CAFFE_DRAWN_DOUBLE = 1, CAFFE_DRAWN_INT32 = 2 };
enum { CAFFE_TO_TEXT = 0, CAFFE_TO_ONE_LINE = 1, CAFFE_FROM_TEXT = 2, CAFFE_FROM_PART_OF_TEXT = 3 };

// What the core asks of the process that loaded it. A function that fails returns 0 and leaves its reason
// with its own side, which raises it instead of the core's error.
typedef struct {
  // `bytes` of memory on `device`, not zeroed, and a token for it.
  void* (*allocate)(int64_t bytes, int64_t device, int64_t* token);
  // The core's last use of that memory is enqueued on the current stream.
  void (*release)(int64_t token);
  // A cublasHandle_t for the current device, set to the current stream.
  void* (*blas_handle)(void);
  // Fill `count` elements at `address` from torch's generator of that device. 1 if done. CAFFE_DRAW_UNIFORM:
  // in [a, b); NORMAL: of mean a and deviation b; BERNOULLI: of probability a; BITS: all of a 32-bit word.
  int64_t (*random)(int64_t kind, void* address, int64_t count, int64_t type, int64_t device, double a,
                    double b);
  // A seed drawn from torch's CPU generator, for caffe_rng().
  int64_t (*seed)(void);
  // Caffe::set_random_seed: seeds torch's generators.
  void (*set_seed)(int64_t seed);
  // One line for people: severity 0 INFO, 1 WARNING, 2 ERROR.
  void (*log)(int64_t severity, const char* text);
  // Real protobuf's text format, of the message of that full name in `file`, a serialized
  // FileDescriptorProto. Of a part of a message a single field may come twice, a required one not at all.
  // take(to, ...) is called once, with the result. 1 if done, 2 if the text is wrong: the result then says
  // why.
  int64_t (*text)(int64_t kind, const char* file, int64_t file_bytes, const char* message, const char* input,
                  int64_t input_bytes, void (*take)(void* to, const char* data, int64_t bytes), void* to);
  // A batch of Fourier transforms, not normalised, by torch.fft on the current stream. words: cufftType,
  // direction, device, the addresses of input and output, batch; of input, then of output, the distance from
  // one transform to the next and the stride of each axis, in elements; the `axes` sizes. 1 if done.
  int64_t (*fft)(const int64_t* words, int64_t axes);
  // Paths of the shared objects in which BLAS (sgemm_ and so on) and, or "", cuBLAS are to be found.
  const char *blas_library, *cublas_library;
} caffe_services;
