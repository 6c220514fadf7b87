// The C ABI of every Caffe layer: the same functions for all, so one Python class drives any of them.
// Bare declarations, read by build_ffi.py, by cffi and by C++. The structs are those of
// include/caffe/layer_record.h.
//
// A layer is one C++ object, named by a handle (never 0).

// Type names this library registers, one a line, written to `text` (0 terminated) if they fit in `size`
// bytes. How many bytes they need.
int64_t caffe_layer_types(char* text, int64_t size);

// Python's functions. Once per library, before anything else.
int caffe_layer_services(const caffe_services* services);

// A layer of a registered type from a serialized LayerParameter; dtype is a caffe_dtype. -1:
// caffe_last_error() says why.
int64_t caffe_layer_create(const char* type, const void* parameter, int64_t size, int dtype);
int caffe_layer_destroy(int64_t layer);

int caffe_layer_facts(int64_t layer, caffe_layer_facts_record* facts);

// Layer::SetUp (checks blob counts, LayerSetUp, Reshape, loss weights). Bottoms: shapes, and data if there is
// any. Fills in the tops' shapes and loss weights, and the number of parameters, which are then read by
// caffe_layer_parameter.
int caffe_layer_setup(int64_t layer, caffe_call_record* record);

// Parameter blob i after setup: its shape, and its data's address and token, on the host: a filler wrote it
// there.
int caffe_layer_parameter(int64_t layer, int64_t i, caffe_blob_record* record);

// Reshape alone: fills in the tops' shapes.
int caffe_layer_reshape(int64_t layer, caffe_call_record* record);

// Reshape and Forward. Tops whose record has an address and whose shape is what Reshape makes of it are
// written there; for others memory is allocated by callback. Fills in the tops' shapes, addresses and tokens.
int caffe_layer_forward(int64_t layer, caffe_call_record* record);

// Backward, after that record's forward on this same layer object. Wanted bottom diffs are overwritten;
// parameter diffs are accumulated into, as in Caffe.
int caffe_layer_backward(int64_t layer, caffe_call_record* record);
