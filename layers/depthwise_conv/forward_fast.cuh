// The choice among the fast forward kernels.
#ifndef DEPTHWISE_FORWARD_FAST_CUH_
#define DEPTHWISE_FORWARD_FAST_CUH_

#include "depthwise_fast.h"
#include "forward_nchw_planes.cuh"
#include "forward_nchw_rows.cuh"
#include "forward_nhwc.cuh"

namespace depthwise {

template <typename Dtype>
bool forward_fast(const Shape& s, const Dtype* bottom, Parameters<Dtype> weight, Epilogue<Dtype> after,
                  Dtype* top, bool channels_last, bool turned, cudaStream_t stream) {
  if (!s.fits_int() || s.pad_h < 0 || s.pad_w < 0) return false;
  if (channels_last) return forward_nhwc(s, bottom, weight, after, top, turned, stream);
  if (forward_nchw_planes(s, bottom, weight, after, top, turned, stream)) return true;
  return forward_nchw_rows(s, bottom, weight, after, top, turned, stream);
}

}  // namespace depthwise

#endif  // DEPTHWISE_FORWARD_FAST_CUH_
