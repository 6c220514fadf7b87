// The C ABI of every Caffe layer. All layers have the same functions, so one Python class can call any of
// them. build_ffi.py, cffi and C++ read this file. include/caffe/layer_record.h defines the structs.
//
// A layer is one C++ object, named by a handle (never 0).

// Writes the type names that this library registers to `text`, one per line, with a 0 at the end, if they fit
// into `size` bytes. Returns the number of bytes that they need.
int64_t caffe_layer_types(char* text, int64_t size);

// Passes the services to the library. Call it once, before all other functions.
int caffe_layer_services(const caffe_services* services);

// Makes a layer of a registered type from a serialized LayerParameter. dtype is a caffe_dtype. Returns the
// handle, or -1 after an error: see caffe_last_error().
int64_t caffe_layer_create(const char* type, const void* parameter, int64_t size, int dtype);
int caffe_layer_destroy(int64_t layer);

// The byte of which the memory of layers that are made from now on consists before their constructors run. It is 0 until
// this is called. make verify compares a layer with itself in other memory.
int caffe_layer_memory(int byte);

int caffe_layer_facts(int64_t layer, caffe_layer_facts_record* facts);

// Layer::SetUp (checks blob counts, LayerSetUp, Reshape, loss weights). The record holds the bottoms' shapes,
// and may hold their data. Fills in the tops' shapes and loss weights, and the number of parameters.
// caffe_layer_parameter then reads the parameters.
int caffe_layer_setup(int64_t layer, caffe_call_record* record);

// Parameter blob i after setup: its shape, and the address and token of its data on the host,
// where fillers write; its multipliers.
int caffe_layer_parameter(int64_t layer, int64_t i, caffe_parameter_record* record);

// Reshape alone: fills in the tops' shapes.
int caffe_layer_reshape(int64_t layer, caffe_call_record* record);

// Reshape and Forward. If a top's record has an address, and the shape that Reshape computes, the top
// is written there. Otherwise the allocate service makes its memory. Fills in the tops' shapes,
// addresses and tokens.
int caffe_layer_forward(int64_t layer, caffe_call_record* record);

// Backward, after Forward of the same record on the same layer. Overwrites the wanted bottom diffs, and adds
// to the parameter diffs, as in Caffe.
int caffe_layer_backward(int64_t layer, caffe_call_record* record);
