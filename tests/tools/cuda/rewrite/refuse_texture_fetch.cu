// error: 3: texture or surface access
__global__ void read(cudaTextureObject_t table, float* x) {
  x[0] = tex1Dfetch<float>(table, 1);
}
