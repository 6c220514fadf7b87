// bottom: [threads]; top: [threads][8], one column for each intrinsic. threads is a multiple of 32.
int warp_all(const int* bottom, int* top, int threads, int blocks, void* stream);
// The same by the names of before CUDA 9, without masks.
int warp_old(const int* bottom, int* top, int threads, int blocks, void* stream);
// The lanes before `begin` and from `end` on return at once; the others go on by themselves. top: [threads][6] of -1: of
// the living lanes the first one's value, the odd ones, whether one is 7, whether all are below 1000, which they are, the
// odd ones again. threads is any number.
int warp_early_return(const int* bottom, int* top, int begin, int end, int threads, void* stream);
// top[t] of thread t of a block of x * y * z threads: the number of its warp's lane 5.
int warp_box(int* top, int x, int y, int z, void* stream);
// top[w] = the sum of the w-th 32 elements, in double
int warp_sum(const double* bottom, double* top, int threads, void* stream);
// Shuffles by `delta`, in a block of any number of threads. top: [threads][4]
int warp_partial(const int* bottom, int* top, int threads, int delta, void* stream);
// What __match_*_sync and __reduce_*_sync say of the lanes whose number is not negative. top: [threads][8]
int warp_match(const int* bottom, int* top, int threads, void* stream);
