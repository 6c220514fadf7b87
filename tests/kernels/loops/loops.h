// Each writes top[i] for all i of the loop; `blocks` is the grid, 0 for CAFFE_GET_BLOCKS(count).
int loops_fill(float* top, int64_t count, int blocks, void* stream);
int loops_fill_int(float* top, int count, int blocks, void* stream);
int loops_two(float* top, int64_t rows, int64_t columns, int bx, int by, void* stream);
int loops_own_parameters(const float* bottom, float* top, int64_t count, void* stream);
int loops_return(const float* bottom, float* top, int64_t count, void* stream);
int loops_moved_parameters(const float* bottom, float* top, int64_t count, void* stream);
int loops_changed_parameters(const float* bottom, float* top, int64_t count, void* stream);
int loops_break(const float* bottom, float* top, int64_t count, void* stream);
int loops_continue(const float* bottom, float* top, int64_t count, void* stream);
int loops_dangling_else(const float* bottom, float* top, int64_t count, void* stream);
int loops_default_arguments(const float* bottom, float* top, int64_t count, void* stream);
// bias, top, again: may be NULL.
int loops_null(const float* bottom, const float* bias, float* top, float* again, int64_t count, void* stream);
int loops_in_place(float* top, int64_t count, void* stream);
// Adds 1 to top[b] in block b, of one thread; every 97th block first counts to `busy`. top: [blocks]
int loops_blocks(int* top, int64_t blocks, int busy, void* stream);
