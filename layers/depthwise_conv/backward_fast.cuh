// The choice among the fast backward kernels.
#ifndef DEPTHWISE_BACKWARD_FAST_CUH_
#define DEPTHWISE_BACKWARD_FAST_CUH_

#include "backward_input_stride2.cuh"
#include "backward_nhwc.cuh"
#include "backward_weight.cuh"
#include "depthwise_fast.h"

namespace depthwise {

// For stride 1: the shape of the forward that computes bottom_diff from top_diff.
inline Shape turned_shape(const Shape& s) {
  Shape turned = s;
  std::swap(turned.height, turned.top_height);
  std::swap(turned.width, turned.top_width);
  turned.pad_h = s.dilation_h * (s.kernel_h - 1) - s.pad_h;
  turned.pad_w = s.dilation_w * (s.kernel_w - 1) - s.pad_w;
  return turned;
}

// Launches stage one of the weight gradient if `call` is given.
template <typename Dtype>
Parts backward_parts(const Shape& s, bool channels_last, const Backward<Dtype>* call, cudaStream_t stream) {
  if (!s.fits_int()) return {};
  if (channels_last) return {backward_nhwc(s, call, stream), true};
  return backward_nchw(s, call, stream);
}

template <typename Dtype>
int64_t backward_fast_parts(const Shape& s, bool channels_last) {
  return backward_parts<Dtype>(s, channels_last, nullptr, nullptr).count;
}

template <typename Dtype>
bool backward_input_fast(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  if (!s.fits_int()) return false;
  if (s.stride_h == 1 && s.stride_w == 1)
    return forward_fast<Dtype>(turned_shape(s), call.top_diff, call.weight, {}, call.bottom_diff,
                               call.channels_last, true, stream);
  if (call.channels_last) return backward_nhwc(s, &call, stream) > 0;
  return backward_input_stride2(s, call.top_diff, call.weight, call.bottom_diff, stream);
}

template <typename Dtype>
Launched backward_fast(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  Launched done = {};
  if (call.weight_wanted()) {
    const Parts parts = backward_parts(s, call.channels_last, &call, stream);
    done = {parts.count > 0 && parts.with_input, parts.count > 0};
    if (done.weight) add_parts(s, parts.count, call.workspace, call.weight_diff, call.bias_diff, stream);
  }
  if (call.bottom_diff && !done.input) done.input = backward_input_fast(s, call, stream);
  return done;
}

}  // namespace depthwise

#endif  // DEPTHWISE_BACKWARD_FAST_CUH_
