#include "caffe/layers/pooling_layer.hpp"

namespace caffe {

template <typename Dtype>
void PoolingLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const PoolingParameter& param = this->layer_param_.pooling_param();
  const bool kernel_by_side = param.has_kernel_h() && param.has_kernel_w();
  if (param.global_pooling()) {
    CHECK(!param.has_kernel_size() && !param.has_kernel_h() && !param.has_kernel_w())
        << "With Global_pooling: true Filter size cannot specified";
  } else {
    CHECK(param.has_kernel_size() != kernel_by_side)
        << "Filter size is kernel_size OR kernel_h and kernel_w; not both";
  }
  CHECK(param.has_pad_h() == param.has_pad_w() && !(param.has_pad() && param.has_pad_h()))
      << "pad is pad OR pad_h and pad_w are required.";
  CHECK(param.has_stride_h() == param.has_stride_w() && !(param.has_stride() && param.has_stride_h()))
      << "Stride is stride OR stride_h and stride_w are required.";
  global_pooling_ = param.global_pooling();
  round_mode_ = param.round_mode();
  kernel_h_ = global_pooling_ ? bottom[0]->height() : kernel_by_side ? param.kernel_h() : param.kernel_size();
  kernel_w_ = global_pooling_ ? bottom[0]->width() : kernel_by_side ? param.kernel_w() : param.kernel_size();
  pad_h_ = param.has_pad_h() ? param.pad_h() : param.pad();
  pad_w_ = param.has_pad_w() ? param.pad_w() : param.pad();
  stride_h_ = param.has_stride_h() ? param.stride_h() : param.stride();
  stride_w_ = param.has_stride_w() ? param.stride_w() : param.stride();
  // A number above INT_MAX is negative here.
  CHECK_GT(kernel_h_, 0) << "Filter dimensions cannot be zero.";
  CHECK_GT(kernel_w_, 0) << "Filter dimensions cannot be zero.";
  CHECK(stride_h_ > 0 && stride_w_ > 0) << "Stride cannot be zero.";
  CHECK(pad_h_ >= 0 && pad_w_ >= 0) << "pad is too large.";
  if (global_pooling_)
    CHECK(pad_h_ == 0 && pad_w_ == 0 && stride_h_ == 1 && stride_w_ == 1)
        << "With Global_pooling: true; only pad = 0 and stride = 1";
  if (pad_h_ != 0 || pad_w_ != 0) {
    CHECK(param.pool() != PoolingParameter_PoolMethod_STOCHASTIC)
        << "Padding implemented only for average and max pooling.";
    CHECK_LT(pad_h_, kernel_h_);
    CHECK_LT(pad_w_, kernel_w_);
  }
}

template <typename Dtype>
void PoolingLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_EQ(4, bottom[0]->num_axes())
      << "Input must have 4 axes, corresponding to (num, channels, height, width)";
  channels_ = bottom[0]->channels();
  height_ = bottom[0]->height();
  width_ = bottom[0]->width();
  if (global_pooling_) {
    kernel_h_ = height_;
    kernel_w_ = width_;
  }
  const bool up = round_mode_ == PoolingParameter_RoundMode_CEIL;
  const bool padded = pad_h_ || pad_w_;
  const auto windows = [up, padded](int64_t size, int64_t kernel, int64_t pad, int64_t stride) {
    const double steps = static_cast<double>(size + 2 * pad - kernel) / stride;
    int64_t count = static_cast<int64_t>(up ? std::ceil(steps) : std::floor(steps)) + 1;
    // As in Caffe: drop the last window if it starts behind the image, if either axis has padding.
    if (padded && (count - 1) * stride >= size + pad) --count;
    CHECK_LE(size + 2 * pad + stride, INT_MAX) << "pixels of an axis with its padding";
    return static_cast<int>(count);
  };
  pooled_height_ = windows(height_, kernel_h_, pad_h_, stride_h_);
  pooled_width_ = windows(width_, kernel_w_, pad_w_, stride_w_);
  const vector<int> shape{bottom[0]->num(), channels_, pooled_height_, pooled_width_};
  for (Blob<Dtype>* blob : top) blob->Reshape(shape);
  const PoolingParameter_PoolMethod pool = this->layer_param_.pooling_param().pool();
  if (pool == PoolingParameter_PoolMethod_MAX && top.size() == 1) max_idx_.Reshape(shape);
  if (pool == PoolingParameter_PoolMethod_STOCHASTIC) rand_idx_.Reshape(shape);
}

namespace {

struct Axis {
  int size, windows, kernel, pad, stride;
};

// A window along one axis: its part inside the image, and its length with padding, by which an
// average is divided.
struct Span {
  int start, end, padded;
  Span(const Axis& axis, int window) {
    const int first = window * axis.stride - axis.pad;
    padded = std::min(first + axis.kernel, axis.size + axis.pad) - first;
    start = std::max(first, 0);
    end = std::min(first + axis.kernel, axis.size);
  }
};

// Calls visit(index of the plane's first element, index in the top, rows, columns) for each window
// of each plane.
template <typename Visit>
void each_window(int planes, const Axis& h, const Axis& w, const Visit& visit) {
  for (int plane = 0, window = 0; plane < planes; ++plane) {
    for (int ph = 0; ph < h.windows; ++ph) {
      const Span rows(h, ph);
      for (int pw = 0; pw < w.windows; ++pw, ++window)
        visit(plane * h.size * w.size, window, rows, Span(w, pw));
    }
  }
}

// Sets *largest to a window's largest element, and returns its place in the plane. Returns -1 if the window
// is outside the image, which happens if the stride is longer than the kernel.
template <typename Dtype>
int find_largest(const Dtype* plane, int width, const Span& rows, const Span& columns, Dtype* largest) {
  int found = -1;
  *largest = Dtype(-FLT_MAX);
  for (int h = rows.start; h < rows.end; ++h)
    for (int w = columns.start; w < columns.end; ++w)
      if (found < 0 || plane[h * width + w] > *largest) {
        found = h * width + w;
        *largest = plane[found];
      }
  return found;
}

}  // namespace

template <typename Dtype>
void PoolingLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Axis rows_of{height_, pooled_height_, kernel_h_, pad_h_, stride_h_};
  const Axis columns_of{width_, pooled_width_, kernel_w_, pad_w_, stride_w_};
  const int planes = bottom[0]->num() * channels_;
  const Dtype* const x = bottom[0]->cpu_data();
  Dtype* const y = top[0]->mutable_cpu_data();
  switch (this->layer_param_.pooling_param().pool()) {
    case PoolingParameter_PoolMethod_MAX: {
      Dtype* const mask = top.size() > 1 ? top[1]->mutable_cpu_data() : nullptr;
      int* const index = mask ? nullptr : max_idx_.mutable_cpu_data();
      each_window(planes, rows_of, columns_of,
                  [&](int plane, int window, const Span& rows, const Span& columns) {
                    const int found = find_largest(x + plane, width_, rows, columns, y + window);
                    if (mask) {
                      mask[window] = static_cast<Dtype>(found);
                    } else {
                      index[window] = found;
                    }
                  });
      break;
    }
    case PoolingParameter_PoolMethod_AVE:
      each_window(planes, rows_of, columns_of,
                  [&](int plane, int window, const Span& rows, const Span& columns) {
                    Dtype sum = 0;
                    for (int h = rows.start; h < rows.end; ++h)
                      for (int w = columns.start; w < columns.end; ++w) sum += x[plane + h * width_ + w];
                    y[window] = sum / (rows.padded * columns.padded);
                  });
      break;
    case PoolingParameter_PoolMethod_STOCHASTIC:
      NOT_IMPLEMENTED;
      break;
  }
}

template <typename Dtype>
void PoolingLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const Axis rows_of{height_, pooled_height_, kernel_h_, pad_h_, stride_h_};
  const Axis columns_of{width_, pooled_width_, kernel_w_, pad_w_, stride_w_};
  const int planes = bottom[0]->num() * channels_;
  const Dtype* const dy = top[0]->cpu_diff();
  Dtype* const dx = bottom[0]->mutable_cpu_diff();
  caffe_set(bottom[0]->count(), Dtype(0), dx);
  switch (this->layer_param_.pooling_param().pool()) {
    case PoolingParameter_PoolMethod_MAX: {
      const Dtype* const mask = top.size() > 1 ? top[1]->cpu_data() : nullptr;
      const int* const index = mask ? nullptr : max_idx_.cpu_data();
      each_window(planes, rows_of, columns_of, [&](int plane, int window, const Span&, const Span&) {
        const int found = mask ? static_cast<int>(mask[window]) : index[window];
        if (found >= 0) dx[plane + found] += dy[window];
      });
      break;
    }
    case PoolingParameter_PoolMethod_AVE:
      each_window(planes, rows_of, columns_of,
                  [&](int plane, int window, const Span& rows, const Span& columns) {
                    const Dtype share = dy[window] / (rows.padded * columns.padded);
                    for (int h = rows.start; h < rows.end; ++h)
                      for (int w = columns.start; w < columns.end; ++w) dx[plane + h * width_ + w] += share;
                  });
      break;
    case PoolingParameter_PoolMethod_STOCHASTIC:
      NOT_IMPLEMENTED;
      break;
  }
}

INSTANTIATE_CLASS(PoolingLayer);

}  // namespace caffe
