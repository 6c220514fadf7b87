int halves_decode(const void* bottom, float* top, int64_t count, int dtype, void* stream);
int halves_encode(const float* bottom, void* top, int64_t count, int dtype, void* stream);
// Arithmetic of CUDA's own half types. x, y: [count]; top: [count][9]
int halves_cuda(const void* x, const void* y, void* top, int64_t count, int dtype, void* stream);
