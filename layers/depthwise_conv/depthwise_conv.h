// Depthwise 2-d and 1-d convolution. All tensors are of dtype, in the backend's memory, contiguous, or, if
// channels_last, with the channels innermost. bias may be NULL for none. Beside a half dtype, weight and bias
// may be float: weight_dtype and bias_dtype say so, also of their gradients.
// activation: of each top: 0 none, 1 ReLU, 2 ReLU6, 3 SiLU, 4 GELU.
//
//   bottom, bottom_diff: [num, channels, height, width]
//   weight, weight_diff: [channels, 1, kernel_h, kernel_w]
//   bias, bias_diff: [channels]
//   top, top_diff: [num, channels, (height + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1,
//                   (width + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1]

int depthwise_conv_forward(const void* bottom, const void* weight, const void* bias, void* top, int64_t num,
                           int64_t channels, int64_t height, int64_t width, int kernel_h, int kernel_w,
                           int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,
                           int channels_last, int activation, int dtype, int weight_dtype, int bias_dtype,
                           void* stream);

// bottom_diff, weight_diff, bias_diff: NULL if not wanted. The same bits on every run.
// bottom, workspace: may be NULL if neither weight_diff nor bias_diff is wanted.
// workspace: bytes for partial sums, as many floats (doubles for double tensors) as
// depthwise_conv_backward_workspace says; contents before and after do not matter.
int depthwise_conv_backward(const void* bottom, const void* top_diff, const void* weight, void* bottom_diff,
                            void* weight_diff, void* bias_diff, uint8_t* workspace, int64_t num,
                            int64_t channels, int64_t height, int64_t width, int kernel_h, int kernel_w,
                            int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,
                            int channels_last, int dtype, int weight_dtype, int bias_dtype, void* stream);

// The number of elements (not bytes) of the workspace above; needs no device.
int64_t depthwise_conv_backward_workspace(int64_t num, int64_t channels, int64_t height, int64_t width,
                                          int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h,
                                          int pad_w, int dilation_h, int dilation_w, int channels_last,
                                          int dtype);

// The gradient through an activation: sums, of a forward with activation 0, become the gradient to themselves.
//   top_diff, sums: [count]
int depthwise_conv_activation_backward(const void* top_diff, void* sums, int64_t count, int activation,
                                       int dtype, void* stream);

// Weights and biases of a convolution that computes the batch norm behind it, too, by running statistics:
// scale * (conv - mean) / sqrt(variance + eps) + shift. bias, scale, shift: may be NULL for none.
//   weight, folded_weight: [channels, taps]
//   bias, mean, variance, scale, shift, folded_bias: [channels]
int depthwise_conv_fold(const void* weight, const void* bias, const void* mean, const void* variance,
                        const void* scale, const void* shift, void* folded_weight, void* folded_bias,
                        int64_t channels, int64_t taps, double eps, int dtype, void* stream);

// The same along one axis:
//
//   bottom, bottom_diff: [num, channels, length]
//   weight, weight_diff: [channels, 1, kernel]
//   bias, bias_diff: [channels]
//   top, top_diff: [num, channels, top_length]
//
// The first column of top begins pad_left columns before bottom. Columns outside of bottom count 0, so that
// top_length says how much padding there is on the right. starts: where packed sequences begin, from
// depthwise_conv1d_starts; may be NULL if each row is one sequence. Each is convolved by itself, causally: stride and
// dilation are 1, pad_left is kernel - 1, and top_length is length.
//   starts: [num, (length + 31) / 32 + 2]
int depthwise_conv1d_forward(const void* bottom, const void* weight, const void* bias, const int32_t* starts,
                             void* top, int64_t num, int64_t channels, int64_t length, int64_t top_length,
                             int kernel, int stride, int pad_left, int dilation, int activation, int dtype,
                             int weight_dtype, int bias_dtype, void* stream);

// Where sequences begin, a bit for each position. sequences: their first positions in ascending order (num is 1), or, if
// by_index, [num, length], the number of the sequence that each position is of.
//   sequences: [count]
//   starts: [num, (length + 31) / 32 + 2]
int depthwise_conv1d_starts(const int32_t* sequences, int32_t* starts, int64_t count, int64_t num,
                            int64_t length, int by_index, void* stream);

// As depthwise_conv_backward.
//   starts: [num, (length + 31) / 32 + 2]
// starts: may be NULL if each row is one sequence.
int depthwise_conv1d_backward(const void* bottom, const void* top_diff, const void* weight,
                              const int32_t* starts, void* bottom_diff, void* weight_diff, void* bias_diff,
                              uint8_t* workspace, int64_t num, int64_t channels, int64_t length,
                              int64_t top_length, int kernel, int stride, int pad_left, int dilation,
                              int dtype, int weight_dtype, int bias_dtype, void* stream);

int64_t depthwise_conv1d_backward_workspace(int64_t num, int64_t channels, int64_t length, int64_t top_length,
                                            int kernel, int stride, int pad_left, int dilation, int dtype);
