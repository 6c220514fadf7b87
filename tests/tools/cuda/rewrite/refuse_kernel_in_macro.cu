// error: 2: __global__ inside a macro
#define DEFINE(name) __global__ void name(float* x) { x[0] = 1; }
DEFINE(a)
