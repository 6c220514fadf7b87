// Each reverses `bottom` in blocks of 64; count is a multiple of 64.
int shared_static(const float* bottom, float* top, int64_t count, void* stream);
int shared_dynamic(const double* bottom, double* top, int64_t count, void* stream);
int shared_file_scope(const int* bottom, int* top, int64_t count, void* stream);
int shared_file_scope_cast(const float* bottom, float* top, int64_t count, void* stream);
// top[b] = b times the floats that `bytes` hold, added up in dynamic shared memory of that size
int shared_large(float* top, int64_t blocks, int bytes, void* stream);
// shared_large may ask for so much from now on
int shared_allow(float* top, int bytes, void* stream);
