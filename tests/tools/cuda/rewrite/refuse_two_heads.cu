// error: 5: __global__ here
#ifdef WIDE
__global__ void either(const int n, double* x) {
#else
__global__ void either(const int n, float* x) {
#endif
  x[0] = n;
}
