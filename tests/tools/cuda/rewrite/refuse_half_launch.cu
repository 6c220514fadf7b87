// error: 2: write the launch outside the macro
#define ON_GPU(...) <<<__VA_ARGS__>>>
__global__ void a(float* x) { x[0] = 1; }
void launch(float* x) { a ON_GPU(1, 2)(x); }
