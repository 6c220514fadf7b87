// error: 4: dynamic parallelism
__global__ void child(float* x) { x[0] = 1; }
__global__ void parent(float* x) {
  child<<<1, 2>>>(x);
}
