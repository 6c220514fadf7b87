int old_round(THCudaTensor* bottom, THCudaTensor* top);
int old_rows(THCudaTensor* matrix, THCudaIntTensor* counts, THCudaLongTensor* places);
int old_matmul(THCudaTensor* a, THCudaTensor* b, THCudaTensor* c, int transposed);
int old_to_cpu(THCudaLongTensor* from, THLongTensor* to);
int old_bad_index(THCudaTensor* tensor);
int old_fill(THFloatTensor* out, long rows, long columns, float value);
