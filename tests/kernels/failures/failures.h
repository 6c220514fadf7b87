int failures_threads(float* top, int threads, int blocks, void* stream);
int failures_throw(float* top, int what, void* stream);
int failures_check(float* top, void* stream);
int failures_post_check(float* top, void* stream);
int failures_status(float* top, int status, void* stream);
int failures_dispatch(const void* bottom, void* top, int dtype, void* stream);
int failures_throw_in_kernel(float* top, int64_t count, int64_t at, void* stream);
int failures_after_a_barrier(float* top, int threads, int what, void* stream);
int failures_deadly(int* top, int what, int n, int blocks, void* stream);
