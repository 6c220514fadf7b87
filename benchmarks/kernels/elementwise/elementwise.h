// in, a, b, out: [count] of dtype, on the GPU
int relu_forward(const void* in, void* out, int64_t count, int dtype, void* stream);

int mult_forward(const void* a, const void* b, void* out, int64_t count, int dtype, void* stream);
