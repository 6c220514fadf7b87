// error: 3: initial value
__global__ void a(float* x) {
  __shared__ int count = 0;
  x[0] = count;
}
