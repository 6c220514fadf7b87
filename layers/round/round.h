// bottom, top: [count] of dtype, in the backend's memory
int round_forward(const void* bottom, void* top, int64_t count, int dtype, void* stream);
