// a, b, top: [count] of dtype, in the backend's memory
int elementwise_mult_forward(const void* a, const void* b, void* top, int64_t count, int dtype, void* stream);
