// error: 3: unusual form
__global__ void a(float* x) {
  extern __shared__ float rows[][4];
  x[0] = rows[0][0];
}
