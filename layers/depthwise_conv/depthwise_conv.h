// Depthwise 2-d and 1-d convolution. All tensors are of dtype, in the backend's memory, contiguous, or, if
// channels_last, with the channels innermost. bias may be NULL for none. Beside a half dtype, weight and bias
// may be float: weight_dtype and bias_dtype say so, also of their gradients.
//
//   bottom, bottom_diff: [num, channels, height, width]
//   weight, weight_diff: [channels, 1, kernel_h, kernel_w]
//   bias, bias_diff: [channels]
//   top, top_diff: [num, channels, (height + 2*pad_h - dilation_h*(kernel_h - 1) - 1) / stride_h + 1,
//                   (width + 2*pad_w - dilation_w*(kernel_w - 1) - 1) / stride_w + 1]

int depthwise_conv_forward(const void* bottom, const void* weight, const void* bias, void* top, int64_t num,
                           int64_t channels, int64_t height, int64_t width, int kernel_h, int kernel_w,
                           int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,
                           int channels_last, int dtype, int weight_dtype, int bias_dtype, void* stream);

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

// The same along one axis:
//
//   bottom, bottom_diff: [num, channels, length]
//   weight, weight_diff: [channels, 1, kernel]
//   bias, bias_diff: [channels]
//   top, top_diff: [num, channels, top_length]
//
// The first column of top begins pad_left columns before bottom. Columns outside of bottom count 0, so that
// top_length says how much padding there is on the right.
int depthwise_conv1d_forward(const void* bottom, const void* weight, const void* bias, void* top, int64_t num,
                             int64_t channels, int64_t length, int64_t top_length, int kernel, int stride,
                             int pad_left, int dilation, int dtype, int weight_dtype, int bias_dtype,
                             void* stream);

// As depthwise_conv_backward.
int depthwise_conv1d_backward(const void* bottom, const void* top_diff, const void* weight, void* bottom_diff,
                              void* weight_diff, void* bias_diff, uint8_t* workspace, int64_t num,
                              int64_t channels, int64_t length, int64_t top_length, int kernel, int stride,
                              int pad_left, int dilation, int dtype, int weight_dtype, int bias_dtype,
                              void* stream);

int64_t depthwise_conv1d_backward_workspace(int64_t num, int64_t channels, int64_t length, int64_t top_length,
                                            int kernel, int stride, int pad_left, int dilation, int dtype);
