// gates: [batch, 3 * state] before their bias, bias: [3 * state], NULL if gates hold it,
// old_cell, new_h, new_cell: [batch, state]
int lltm_forward(const void* gates, const void* bias, const void* old_cell, void* new_h, void* new_cell,
                 int64_t batch, int64_t state, int dtype, void* stream);

// new_h_diff: [batch, state] with strides [h_row, h_column]; NULL where it is 0.
// new_cell_diff: [batch, state] with strides [cell_row, cell_column]; NULL where it is 0.
// gates_diff: [batch, 3 * state], bias_diff: [3 * state], old_cell_diff: [batch, state];
// each NULL where it is not wanted.
// partial_sums: bytes for as many floats, or doubles if dtype is, as lltm_backward_workspace says; may be NULL
// if that is 0, or bias_diff is.
// All others: rows one after another.
int lltm_backward(const void* gates, const void* bias, const void* new_cell, const void* new_h_diff,
                  const void* new_cell_diff, void* gates_diff, void* bias_diff, void* old_cell_diff,
                  uint8_t* partial_sums, int64_t batch, int64_t state, int64_t h_row, int64_t h_column,
                  int64_t cell_row, int64_t cell_column, int dtype, void* stream);

// The number of elements (not bytes) of partial_sums; needs no device.
int64_t lltm_backward_workspace(int64_t batch, int64_t state);
