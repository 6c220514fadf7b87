// bottom_a, bottom_b, top: [count] of dtype, in the backend's memory
int elementwise_mult_forward(const void* bottom_a, const void* bottom_b, void* top, int64_t count, int dtype,
                             void* stream);
