// Each runs one kernel; a race, if there is one, is what its name says. count: of top's elements, if nothing
// else is said.

// bottom: [2 * count], top: [count], of zeros. The gradient of doubling a row: each top is the sum
// of two bottoms.
int races_upsample_backward(const float* bottom, float* top, int64_t count, void* stream);
int races_upsample_backward_atomic(const float* bottom, float* top, int64_t count, void* stream);
// The same by a compare-and-swap loop, as before GPUs could add doubles.
int races_upsample_backward_swap(const double* bottom, double* top, int64_t count, void* stream);
// One thread of each block writes 1 to top[0], to which all add.
int races_set_then_add(int* top, int64_t count, void* stream);
// All write the same 1 to top[0].
int races_same_value(int* top, int64_t count, void* stream);
// All write their index to top[0].
int races_last_one_wins(int* top, int64_t count, void* stream);
// bottom, top: [count]. Blocks of 64 reverse their part of bottom in shared memory; fenced: with a barrier
// between write and read.
int races_reverse(const float* bottom, float* top, int64_t count, int fenced, void* stream);
// Threads write top and read a neighbour's behind a __syncthreads(): one of their block, or the next block's.
int races_neighbour(float* top, float* sums, int64_t count, int across_blocks, void* stream);
// A warp's lanes hand values on through top; synchronized: with a __syncwarp() between.
int races_warp(int* top, int* sums, int64_t count, int synchronized, void* stream);
// Halves of a warp, each of which synchronizes among its own 16 lanes; across: lanes then read
// the other half's.
int races_half_warps(int* top, int* sums, int64_t count, int across, void* stream);
// bottom: [count], top: [1]. Blocks write parts: [blocks]; the one that finds by an atomic that it is the
// last adds them up. counter: [1] of zeros.
int races_last_block(const float* bottom, float* parts, int* counter, float* top, int64_t count, int fenced,
                     void* stream);
// value: [1], flags: [2] of zeros, top: [1]. One thread of each of three blocks: the first writes value and raises
// a flag, the second sees it and raises another one, the third sees that and reads value; fenced: the second
// calls __threadfence() between its two flags.
int races_relay(int* value, int* flags, int* top, int fenced, void* stream);
// Neighbouring bytes, each written by a thread of its own, then the thread's own byte is read.
int races_bytes(int8_t* top, int64_t count, void* stream);
// In place, each its own element; all read bottom[0].
int races_in_place(const float* bottom, float* top, int64_t count, void* stream);
int races_short_warp(int* top, int threads, void* stream);
