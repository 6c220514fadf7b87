#include <THC/THC.h>
#include "old_kernels.h"

extern THCState *state;

int old_round(THCudaTensor *bottom, THCudaTensor *top) {
  THCudaTensor_resizeAs(state, top, bottom);
  round_launcher(THCudaTensor_data(state, bottom), THCudaTensor_data(state, top),
                 THCudaTensor_nElement(state, bottom), THCState_getCurrentStream(state));
  THCudaCheck(cudaGetLastError());
  return 1;
}

/* counts: of the elements above 0 in each row; places: the number of each row. The matrix may have any strides. */
int old_rows(THCudaTensor *matrix, THCudaIntTensor *counts, THCudaLongTensor *places) {
  long rows = THCudaTensor_size(state, matrix, 0);
  THCAssertSameGPU(THCudaTensor_checkGPU(state, 3, matrix, counts, places));
  THCudaIntTensor_resize1d(state, counts, rows);
  THCudaIntTensor_zero(state, counts);
  THCudaLongTensor_resize1d(state, places, rows);
  count_launcher(THCudaTensor_data(state, matrix), rows, matrix->size[1], THCudaTensor_stride(state, matrix, 0),
                 matrix->stride[1], THCudaIntTensor_data(state, counts), THCudaLongTensor_data(state, places),
                 THCState_getCurrentStream(state));
  return 1;
}

/* c = a b by BLAS, which has columns: c' = b' a'. */
int old_matmul(THCudaTensor *a, THCudaTensor *b, THCudaTensor *c, int transposed) {
  long m = a->size[0], k = a->size[1], n = transposed ? b->size[0] : b->size[1];
  THCudaTensor_resize2d(state, c, m, n);
  THCudaTensor_fill(state, c, 2);
  THCudaBlas_Sgemm(state, transposed ? 't' : 'n', 'n', n, m, k, 1.0f, THCudaTensor_data(state, b),
                   transposed ? k : n, THCudaTensor_data(state, a), k, 0.5f, THCudaTensor_data(state, c), n);
  return 1;
}

int old_to_cpu(THCudaLongTensor *from, THLongTensor *to) {
  THLongTensor *made = THLongTensor_newWithSize1d(from->size[0]);
  THLongTensor_copyCuda(state, made, from);
  THLongTensor_resize1d(to, from->size[0]);
  THLongTensor_copy(to, made);
  return 1;
}

int old_bad_index(THCudaTensor *tensor) {
  (void)tensor;
  launcher_that_exits();
  return 1;
}
