// error: 3: member function
struct S {
  static __global__ void member(float* x) { x[0] = 1; }
};
