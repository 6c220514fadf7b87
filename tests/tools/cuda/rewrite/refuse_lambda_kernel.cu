// error: 2: lambda
auto kernel = [] __global__ (float* x) { x[0] = 1; };
