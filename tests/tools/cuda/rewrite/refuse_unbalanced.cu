// error: 3: do not surely match
__global__ void a(float* x) {
#ifdef CAREFUL
  if (x) {
#endif
    x[0] = 1;
#ifdef CAREFUL
  }
#endif
}
