int halves_decode(const void* bottom, float* top, int64_t count, int dtype, void* stream);
int halves_encode(const float* bottom, void* top, int64_t count, int dtype, void* stream);
