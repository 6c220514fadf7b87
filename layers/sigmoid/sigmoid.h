// bottom, top: [count] of dtype, in the backend's memory
int sigmoid_forward(const void* bottom, void* top, int64_t count, int dtype, void* stream);

// top_diff, top_data, bottom_diff: [count] of dtype, in the backend's memory
int sigmoid_backward(const void* top_diff, const void* top_data, void* bottom_diff, int64_t count, int dtype,
                     void* stream);
