// The C ABI of a library of Caffe's own layer tests. Bare declarations: build_ffi.py reads this.

// Run the tests whose names match gtest's `filter` on a device (-1: the host backend); the report, gtest's
// XML, goes to `xml_path`. `services` as for caffe_layer_services. gtest's own status: 0 if all passed.
int64_t caffe_test_run(const caffe_services* services, const char* filter, const char* xml_path, int device,
                       void* stream);
