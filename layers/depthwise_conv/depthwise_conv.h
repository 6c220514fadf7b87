// Depthwise 2-d convolution. All tensors are contiguous, of dtype, in the backend's memory.
//
//   bottom, bottom_diff   [num, channels, height, width], or [num, height, width, channels] if channels_last
//   top, top_diff         the same with top_height and top_width, where
//                         top_height = (height + 2*pad_h - dilation_h*(kernel_h-1) - 1) / stride_h + 1
//   weight, weight_diff   [channels, 1, kernel_h, kernel_w]
//   bias, bias_diff       [channels]

// bias: NULL for none.
int depthwise_conv_forward(const void* bottom, const void* weight, const void* bias, void* top, int64_t num,
                           int64_t channels, int64_t height, int64_t width, int kernel_h, int kernel_w,
                           int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,
                           int channels_last, int dtype, void* stream);

// height, width: those of bottom_diff.
int depthwise_conv_backward_input(const void* top_diff, const void* weight, void* bottom_diff, int64_t num,
                                  int64_t channels, int64_t height, int64_t width, int kernel_h, int kernel_w,
                                  int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h,
                                  int dilation_w, int channels_last, int dtype, void* stream);

// weight_diff, bias_diff: NULL if not wanted. The same bits on every run.
// workspace: bytes for partial sums, as many floats (doubles for double tensors) as
// depthwise_conv_backward_weight_workspace says; contents before and after do not matter.
int depthwise_conv_backward_weight(const void* bottom, const void* top_diff, void* weight_diff,
                                   void* bias_diff, uint8_t* workspace, int64_t num, int64_t channels,
                                   int64_t height, int64_t width, int kernel_h, int kernel_w, int stride_h,
                                   int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,
                                   int channels_last, int dtype, void* stream);

// The number of elements (not bytes) of the workspace above; needs no device.
int64_t depthwise_conv_backward_weight_workspace(int64_t num, int64_t channels, int64_t height, int64_t width,
                                                 int kernel_h, int kernel_w, int stride_h, int stride_w,
                                                 int pad_h, int pad_w, int dilation_h, int dilation_w,
                                                 int channels_last, int dtype);
