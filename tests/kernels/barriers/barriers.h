// top[b] = the sum of bottom's b-th 256 elements, by a tree: a barrier in each round of a loop
int barriers_tree_sum(const float* bottom, float* top, int64_t blocks, void* stream);
// top[i] = bottom[(i + 1) % alive] for i < alive; threads from `alive` on return before the barrier
int barriers_early_return(const int* bottom, int* top, int alive, int threads, void* stream);
// top[0..2] = __syncthreads_count, _and, _or of (thread < below), in a block of `threads`
int barriers_votes(int* top, int below, int threads, void* stream);
// Half of a warp waits for the block, the other half for the warp: a deadlock
int barriers_mismatch(int* top, int blocks, void* stream);
// The threads below `count` and the others come to different __syncthreads().
int barriers_branches(int* top, int count, int threads, void* stream);
int barriers_one_line(int* top, int count, int threads, void* stream);
