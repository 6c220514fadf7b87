#include <TH/TH.h>
#include <omp.h>

int old_fill(THFloatTensor *out, long rows, long columns, float value) {
  THFloatTensor_resize2d(out, rows, columns);
  THFloatStorage_fill(THFloatTensor_storage(out), value);
  return 1;
}

void old_nothing(void) {}

int old_types(THDoubleTensor *d, THIntTensor *i, THLongTensor *l, THByteTensor *b, THHalfTensor *h) {
  THDoubleTensor_data(d)[0] += 1.5;
  THIntTensor_data(i)[0] += 2;
  THLongTensor_set1d(l, 0, THLongTensor_get1d(l, 0) + 3);
  THByteTensor_data(b)[0] += 4;
  THHalfTensor_data(h)[0].x = 0x3c00; /* 1 */
  return (int)(d->size[0] + i->size[0] + l->size[0] + b->nDimension);
}

int old_scale(THFloatTensor *in, THFloatTensor *out, float by) {
  long i, n = THFloatTensor_nElement(in);
  float *from = THFloatTensor_data(in), *to;
  THFloatTensor_resizeAs(out, in);
  to = THFloatTensor_data(out);
#pragma omp parallel for
  for (i = 0; i < n; i++) to[i] = by * from[i];
  return old_defined_later(1);
}

double old_mean(THDoubleTensor *values, bool squared) {
  double sum = 0, *x = THDoubleTensor_data(values);
  long i;
  THArgCheck(values->nDimension == 1, 1, "a row is wanted, not %d dimensions", values->nDimension);
  for (i = 0; i < values->size[0]; i++) sum += squared ? x[i] * x[i] : x[i];
  return sum / values->size[0];
}

int old_transposed(THFloatTensor *in, THFloatTensor *out) {
  long i, j;
  THFloatTensor_resize2d(out, in->size[1], in->size[0]);
  for (i = 0; i < in->size[0]; i++)
    for (j = 0; j < in->size[1]; j++)
      THFloatTensor_set2d(out, j, i, THFloatTensor_data(in)[i * in->stride[0] + j * in->stride[1]]);
  return 1;
}

/* out[i] = 10 * order[row i's last], by a temporary; frees its argument, as some did. */
int old_temporaries(THLongTensor *order, THLongTensor *out) {
  THLongTensor *row = THLongTensor_new(), *all = THLongTensor_newContiguous(order);
  THLongTensor *made = THLongTensor_newWithSize1d(order->size[0]);
  long i;
  for (i = 0; i < all->size[0]; i++) {
    THLongTensor_select(row, all, 0, i);
    THLongTensor_set1d(made, i, THLongTensor_get1d(row, row->size[0] - 1));
  }
  THLongTensor_cadd(made, made, 9, made);
  THLongTensor_resize1d(out, order->size[0]);
  THLongTensor_copy(out, made);
  THLongTensor_free(row);
  THLongTensor_free(all);
  THLongTensor_free(made);
  THLongTensor_free(order);
  return 1;
}

int old_error(int kind, THFloatTensor *tensor) {
  if (kind == 1) THError("no such mode: %d", kind);
  if (kind == 2) exit(-1);
  if (kind == 3) return (int)THFloatTensor_size(tensor, 7);
  if (kind == 4) THFloatTensor_resize1d(tensor, -5);
  if (kind == 5) THFloatTensor_zero(NULL);
  return 0;
}

size_t old_words(const char *text, unsigned char small, int *memory) {
  if (memory) memory[0] = small;
  return strlen(text);
}

int old_defined_later(int number) { return number; }
