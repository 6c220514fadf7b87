// The C ABI of every ported Caffe layer: the same functions for all, so one Python class drives any of them.
// Bare declarations, read by build_ffi.py, by cffi and by C++.
//
// A layer is one C++ object, named by a handle (never 0). A call hands over one `record` of 64-bit words:
//
//   word 0 mode (0 Forward_cpu/Backward_cpu, 1 Forward_gpu/Backward_gpu)   1 device (-1 host, else the CUDA
//   index)
//        2 stream    3 phase (0 TRAIN, 1 TEST)    4 number of bottoms    5 of tops    6 of parameter blobs
//        (`blobs_`) 7 seed of caffe_rng_rand() and friends (0: drawn by host_services.seed at their first use
//        in the call)   8 the training loop's iteration, -1: not known   9..15 reserved
//   then one blob record of 48 words for each bottom, each top, each parameter, in this order:
//        0 address of data   1 token of data    2 address of diff   3 token of diff
//        4 flags (see below) 5 loss weight (the bits of a double)   6 number of axes   7 reserved    8..39
//        shape
//
// Flags: 1 a gradient is wanted (propagate_down, param_propagate_down)    2 data lies at an address given by
// the caller, whose contents are not yet defined (zeroed at first touch, as SyncedMemory does)   4 the same
// for diff   8 (top) is bottom number flags >> 8: in place. Tokens name tensors that the `allocate` callback
// made; -1: not one of these. A tensor that a call hands out is released by the same layer's next call, or
// its end: take hold of it before.
//
// Nothing given to be read is written: bottoms' data and tops' diff are copied first if the layer writes to
// them. In place, bottom and top are one blob: its data lies at the top's address (the bottom's contents are
// copied there if that is another), its diff at the bottom's (so with the top's). A top that shares a
// bottom's data reports that bottom's address; memory that the layer itself keeps is reported as a copy.

// Type names this library registers, one a line, written to `text` (0 terminated) if they fit in `size`
// bytes. How many bytes they need.
int64_t caffe_layer_types(char* text, int64_t size);

// Python's functions, by address; see include/caffe/host_services.hpp. Once per library, before anything
// else.
int caffe_layer_services(const void* services);

// A layer of a registered type from a serialized LayerParameter; dtype is a caffe_dtype. -1:
// caffe_last_error() says why.
int64_t caffe_layer_create(const char* type, const void* parameter, int64_t size, int dtype);
int caffe_layer_destroy(int64_t layer);

// What the layer says of itself, one int64 each: ExactNumBottomBlobs, MinBottomBlobs, MaxBottomBlobs,
// ExactNumTopBlobs, MinTopBlobs, MaxTopBlobs, EqualNumBottomTopBlobs, AutoTopBlobs, is a NeuronLayer, is a
// LossLayer, then AllowForceBackward(i) for i in 0..15.
int caffe_layer_facts(int64_t layer, int64_t* facts);

// Layer::SetUp (checks blob counts, LayerSetUp, Reshape, loss weights). Bottoms: shapes, and data if there is
// any. Fills in the tops' shapes and loss weights, and word 6. Parameter blobs are then read by
// caffe_layer_parameter.
int caffe_layer_setup(int64_t layer, void* record);

// Parameter blob i after setup: fills in one blob record (shape; data address and token, on the host: a
// filler wrote it there).
int caffe_layer_parameter(int64_t layer, int64_t i, void* blob_record);

// Reshape alone: fills in the tops' shapes.
int caffe_layer_reshape(int64_t layer, void* record);

// Reshape and Forward. Tops whose record has an address and whose shape is what Reshape makes of it are
// written there; for others memory is allocated by callback. Fills in the tops' shapes, addresses and tokens.
// Status 2: this mode's function is NOT_IMPLEMENTED; caffe_last_error() says where.
int caffe_layer_forward(int64_t layer, void* record);

// Backward, after that record's forward on this same layer object. Bottom diffs with flag 1 are overwritten;
// parameter diffs are accumulated into, as in Caffe. Status 2: NOT_IMPLEMENTED.
int caffe_layer_backward(int64_t layer, void* record);
