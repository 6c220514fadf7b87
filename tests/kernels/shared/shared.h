// Each reverses `bottom` in blocks of 64; count is a multiple of 64.
int shared_static(const float* bottom, float* top, int64_t count, void* stream);
int shared_dynamic(const double* bottom, double* top, int64_t count, void* stream);
int shared_file_scope(const int* bottom, int* top, int64_t count, void* stream);
// All of the 48 KiB that a launch may have without asking: top[b] = the sum of 12288 times b
int shared_large(float* top, int64_t blocks, void* stream);
