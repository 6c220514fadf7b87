// The entrances of the fast kernels. They are compiled for one dtype at a time, in forward_<dtype>.cu and
// backward_<dtype>.cu, so that a make with several jobs has something to share out.
#ifndef DEPTHWISE_FAST_H_
#define DEPTHWISE_FAST_H_

#include "depthwise_shape.h"

namespace depthwise {

// Is a fast kernel made for this shape? Then it has been launched. `turned`: with the weights turned by 180
// degrees, which makes the gradient to bottom out of a forward of stride 1.
template <typename Dtype>
bool forward_fast(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight, Parameters<Dtype> bias,
                  Dtype* top, bool channels_last, bool turned, cudaStream_t stream);

// A backward call. Gradients that are not wanted are NULL.
template <typename Dtype>
struct Backward {
  const Dtype *bottom, *top_diff;
  Dtype* bottom_diff;
  Parameters<Dtype> weight, weight_diff, bias_diff;
  caffe::accumulate_t<Dtype>* workspace;  // [channels, taps + 1, parts]; bias_diff's sums are the last
  bool channels_last;
  bool weight_wanted() const { return weight_diff || bias_diff; }
};

// What of it has been launched.
struct Launched {
  bool input, weight;
};

// Stage one of the weight gradient: into how many parts it divides the sums (0: no kernel takes the shape), and
// whether the same launch computes bottom_diff.
struct Parts {
  int64_t count;
  bool with_input;
};

template <typename Dtype>
Launched backward_fast(const Shape& shape, const Backward<Dtype>& call, cudaStream_t stream);

// Into how many parts it divides the sums of weight_diff, by the shape alone; 0: it does not take the shape.
template <typename Dtype>
int64_t backward_fast_parts(const Shape& shape, bool channels_last);

// Adds the parts: stage two of the weight gradient.
template <typename Dtype>
void add_parts(const Shape& shape, int64_t parts, const float* workspace, Parameters<Dtype> weight_diff,
               Parameters<Dtype> bias_diff, cudaStream_t stream);

// The same three for lines: 1-d, a Shape of height 1 whose padding on the right is what top_width leaves.
template <typename Dtype>
bool line_forward(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight, Parameters<Dtype> bias,
                  Dtype* top, bool turned, cudaStream_t stream);
template <typename Dtype>
Launched line_backward(const Shape& shape, const Backward<Dtype>& call, cudaStream_t stream);
template <typename Dtype>
int64_t line_parts(const Shape& shape);

}  // namespace depthwise

#endif  // DEPTHWISE_FAST_H_
