#include "caffe/layers/correlation_layer.hpp"

#include <cmath>
#include <vector>

#include "caffe/util/math_functions.hpp"

namespace caffe {

namespace {

// Positions and bytes of shared memory are small multiples of these numbers. With this limit they fit
// into an int.
const uint32_t kMostPixels = 1 << 20;

int Pixels(const char* name, uint32_t value) {
  CHECK_LE(value, kMostPixels) << name << ", in pixels";
  return static_cast<int>(value);
}

int Product(const char* name, int64_t a, int64_t b, int64_t c) {
  CHECK_LE(a * b, INT_MAX) << name;
  CHECK_LE(a * b * c, INT_MAX) << name;
  return static_cast<int>(a * b * c);
}

}  // namespace

template <typename Dtype>
void CorrelationLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                         const vector<Blob<Dtype>*>& top) {
  const CorrelationParameter& param = this->layer_param_.correlation_param();
  CHECK(param.has_kernel_size()) << "kernel_size must be given";
  CHECK(param.has_max_displacement()) << "max_displacement must be given";
  CHECK(!param.do_abs()) << "do_abs is not offered: FlowNet's own layer reads it and does nothing with it";
  sizes_.pad = Pixels("pad", param.pad());
  sizes_.kernel_size = Pixels("kernel_size", param.kernel_size());
  sizes_.max_displacement = Pixels("max_displacement", param.max_displacement());
  sizes_.stride_1 = Pixels("stride_1", param.stride_1());
  sizes_.stride_2 = Pixels("stride_2", param.stride_2());
  CHECK_EQ(sizes_.kernel_size % 2, 1) << "kernel_size must be odd, so that a patch has a centre";
  CHECK_GT(sizes_.stride_1, 0) << "stride_1 must be positive";
  CHECK_GT(sizes_.stride_2, 0) << "stride_2 must be positive";
  sizes_.radius = sizes_.max_displacement / sizes_.stride_2;
  sizes_.side = 2 * sizes_.radius + 1;
  subtract_ = param.correlation_type() == CorrelationParameter_CorrelationType_SUBTRACT;
}

template <typename Dtype>
void CorrelationLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_EQ(bottom[0]->num_axes(), 4) << "expected images x channels x height x width";
  CHECK(bottom[0]->shape() == bottom[1]->shape())
      << "the images' shapes differ: " << bottom[0]->shape_string() << " and " << bottom[1]->shape_string();
  CorrelationSizes& s = sizes_;
  s.num = bottom[0]->shape(0);
  s.channels = bottom[0]->shape(1);
  s.height = Pixels("height", bottom[0]->shape(2));
  s.width = Pixels("width", bottom[0]->shape(3));
  // With this border a patch is inside the padded image at every displacement.
  const int border = 2 * s.max_displacement + s.kernel_size;
  CHECK_GE(s.height + 2 * s.pad, border) << "patches and displacements do not fit into the padded height";
  CHECK_GE(s.width + 2 * s.pad, border) << "patches and displacements do not fit into the padded width";
  s.top_height = (s.height + 2 * s.pad - border) / s.stride_1 + 1;
  s.top_width = (s.width + 2 * s.pad - border) / s.stride_1 + 1;
  s.reach_height = (s.top_height - 1) * s.stride_1 + s.kernel_size;
  s.reach_width = (s.top_width - 1) * s.stride_1 + s.kernel_size;
  s.patch_count = Product("values of a patch", s.kernel_size, s.kernel_size, s.channels);
  top[0]->Reshape(s.num, Product("displacements", s.side, s.side, 1), s.top_height, s.top_width);
}

namespace {

// The index of an image's pixel at a position of the padded image; -1 in the padding.
struct PaddedPlane {
  int pad, height, width;
  int operator()(int y, int x) const {
    y -= pad;
    x -= pad;
    return y >= 0 && y < height && x >= 0 && x < width ? y * width + x : -1;
  }
};

// Calls visit(index in top, index in first or -1, index in second or -1) for each product of the sums.
template <typename Visit>
void ForEachProduct(const CorrelationSizes& s, Visit* visit) {
  const PaddedPlane at = {s.pad, s.height, s.width};
  int top = 0;
  for (int n = 0; n < s.num; ++n) {
    for (int displacement = 0; displacement < s.side * s.side; ++displacement) {
      const int dy = (displacement / s.side - s.radius) * s.stride_2;
      const int dx = (displacement % s.side - s.radius) * s.stride_2;
      for (int y = 0; y < s.top_height; ++y) {
        for (int x = 0; x < s.top_width; ++x, ++top) {
          for (int k = 0; k < s.kernel_size * s.kernel_size; ++k) {
            const int py = s.max_displacement + y * s.stride_1 + k / s.kernel_size;
            const int px = s.max_displacement + x * s.stride_1 + k % s.kernel_size;
            const int first = at(py, px), second = at(py + dy, px + dx);
            if (first < 0 && second < 0) continue;
            for (int c = n * s.channels; c < (n + 1) * s.channels; ++c) {
              const int plane = c * s.height * s.width;
              visit->product(top, first < 0 ? -1 : plane + first, second < 0 ? -1 : plane + second);
            }
          }
        }
      }
    }
  }
}

template <typename Dtype>
struct Adder {
  bool subtract;
  const Dtype *first, *second;
  Dtype* top;
  void product(int t, int a, int b) {
    const Dtype one = a < 0 ? 0 : first[a], other = b < 0 ? 0 : second[b];
    top[t] += subtract ? std::abs(one - other) : one * other;
  }
};

template <typename Dtype>
struct Differentiator {
  bool subtract;
  const Dtype *first, *second, *top_diff;
  Dtype *first_diff, *second_diff;
  Dtype mean;
  void product(int t, int a, int b) {
    const Dtype one = a < 0 ? 0 : first[a], other = b < 0 ? 0 : second[b], diff = mean * top_diff[t];
    const Dtype sign = (one > other) - (one < other);
    if (first_diff && a >= 0) first_diff[a] += diff * (subtract ? sign : other);
    if (second_diff && b >= 0) second_diff[b] += diff * (subtract ? -sign : one);
  }
};

}  // namespace

template <typename Dtype>
void CorrelationLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  Dtype* top_data = top[0]->mutable_cpu_data();
  caffe_set(top[0]->count(), Dtype(0), top_data);
  Adder<Dtype> adder = {subtract_, bottom[0]->cpu_data(), bottom[1]->cpu_data(), top_data};
  ForEachProduct(sizes_, &adder);
  caffe_scal(top[0]->count(), Dtype(1) / sizes_.patch_count, top_data);
}

template <typename Dtype>
void CorrelationLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                           const vector<bool>& propagate_down,
                                           const vector<Blob<Dtype>*>& bottom) {
  Dtype* diffs[2];
  for (int i = 0; i < 2; ++i) {
    diffs[i] = propagate_down[i] ? bottom[i]->mutable_cpu_diff() : NULL;
    if (diffs[i]) caffe_set(bottom[i]->count(), Dtype(0), diffs[i]);
  }
  Differentiator<Dtype> differentiator = {
      subtract_, bottom[0]->cpu_data(),        bottom[1]->cpu_data(), top[0]->cpu_diff(), diffs[0],
      diffs[1],  Dtype(1) / sizes_.patch_count};
  ForEachProduct(sizes_, &differentiator);
}

#ifdef CPU_ONLY
STUB_GPU(CorrelationLayer);
#endif

INSTANTIATE_CLASS(CorrelationLayer);
REGISTER_LAYER_CLASS(Correlation);

}  // namespace caffe
