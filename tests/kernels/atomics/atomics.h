// *top += every element of bottom; integral values, so that each order gives the same sum
int atomics_add_float(const float* bottom, float* top, int64_t count, void* stream);
int atomics_add_double(const double* bottom, double* top, int64_t count, void* stream);
int atomics_add_int(const int* bottom, int* top, int64_t count, void* stream);
// top: max, min, count of elements above 0 (by atomicCAS)
int atomics_others(const int* bottom, int* top, int64_t count, void* stream);
