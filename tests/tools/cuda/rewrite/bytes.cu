// Carriage returns and foreign bytes (ÄãºÃ) are kept.
__global__ void foreign(int* x) {
  x[0] = 1;  // ºÃ
}
void launch_foreign(int* x) {
  foreign
      <<<1,
         2>>>(x);
}
