// error: 3: __global__ here
void f() {
  __global__ int x;
}
