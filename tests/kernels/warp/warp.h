// bottom: [threads]; top: [threads][8], one column for each intrinsic. threads is a multiple of 32.
int warp_all(const int* bottom, int* top, int threads, int blocks, void* stream);
// top[w] = the sum of the w-th 32 elements, in double
int warp_sum(const double* bottom, double* top, int threads, void* stream);
