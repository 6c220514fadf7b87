// The functions that launch the fast kernels. Each dtype has its own files, forward_<dtype>.cu, backward_<dtype>.cu and
// conv1d_<dtype>.cu, so that make can compile them in parallel.
#ifndef DEPTHWISE_FAST_H_
#define DEPTHWISE_FAST_H_

#include "depthwise_shape.h"

namespace depthwise {

// Launches a fast kernel, or returns false if none takes this shape. `turned`: with the weights turned by 180
// degrees. Then a forward of stride 1 computes the gradient to bottom.
template <typename Dtype>
bool forward_fast(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight, Epilogue<Dtype> after,
                  Dtype* top, bool channels_last, bool turned, cudaStream_t stream);

// A backward call. Gradients that are not wanted are NULL.
template <typename Dtype>
struct Backward {
  const Dtype *bottom, *top_diff;
  Dtype* bottom_diff;
  Parameters<Dtype> weight, weight_diff, bias_diff;
  caffe::accumulate_t<Dtype>* workspace;  // [channels, taps + 1, parts]; the last sums are bias_diff's
  bool channels_last;
  bool weight_wanted() const { return weight_diff || bias_diff; }
};

// Which gradients' kernels were launched: to bottom (input), and to weight and bias.
struct Launched {
  bool input, weight;
};

// Stage one of the weight gradient: the number of parts of its sums (0: no kernel takes the shape), and
// whether the same launch computes bottom_diff.
struct Parts {
  int64_t count;
  bool with_input;
};

template <typename Dtype>
Launched backward_fast(const Shape& shape, const Backward<Dtype>& call, cudaStream_t stream);

// The number of parts of weight_diff's sums. It depends only on the shape. 0: no fast kernel takes the shape.
template <typename Dtype>
int64_t backward_fast_parts(const Shape& shape, bool channels_last);

// Adds the parts: stage two of the weight gradient.
template <typename Dtype>
void add_parts(const Shape& shape, int64_t parts, const float* workspace, Parameters<Dtype> weight_diff,
               Parameters<Dtype> bias_diff, cudaStream_t stream);

// The same three functions for lines, in 1-d. The Shape has height 1, and top_width determines the padding on
// the right.
template <typename Dtype>
bool line_forward(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight, Epilogue<Dtype> after,
                  Dtype* top, bool turned, cudaStream_t stream);
template <typename Dtype>
Launched line_backward(const Shape& shape, const Backward<Dtype>& call, cudaStream_t stream);
template <typename Dtype>
int64_t line_parts(const Shape& shape);

}  // namespace depthwise

#endif  // DEPTHWISE_FAST_H_
