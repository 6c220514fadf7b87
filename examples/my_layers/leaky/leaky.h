// bottom, top: [count] of dtype, in the backend's memory
int leaky_forward(const void* bottom, void* top, int64_t count, double slope, int dtype, void* stream);

// bottom, top_diff, bottom_diff: [count] of dtype, in the backend's memory
int leaky_backward(const void* bottom, const void* top_diff, void* bottom_diff, int64_t count, double slope,
                   int dtype, void* stream);
