// error: 4: # or ## inside the kernel launch
__global__ void a_kernel(float* x) { x[0] = 1; }
#define LAUNCH(name, x) \
  name##_kernel<<<1, 2>>>(x)
void launch(float* x) { LAUNCH(a, x); }
