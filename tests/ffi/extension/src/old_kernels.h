#ifdef __cplusplus
extern "C" {
#endif
__global__ void round_kernel(const int n, const float* bottom, float* top);
void round_launcher(const float* bottom, float* top, int n, cudaStream_t stream);
void count_launcher(const float* matrix, int rows, int columns, int row_step, int step, int* counts,
                    long* places, cudaStream_t stream);
void launcher_that_exits();
#ifdef __cplusplus
}
#endif
