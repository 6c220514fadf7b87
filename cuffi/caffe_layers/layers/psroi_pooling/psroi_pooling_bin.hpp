#ifndef CAFFE_PSROI_POOLING_BIN_HPP_
#define CAFFE_PSROI_POOLING_BIN_HPP_

#ifdef __CUDACC__
#define PSROI_HOST_DEVICE __host__ __device__
#else
#include <cmath>
#define PSROI_HOST_DEVICE
#endif

namespace caffe {

// The number of a region's image, which is stored as a floating-point number.
template <typename Dtype>
PSROI_HOST_DEVICE inline int PSROIImage(const Dtype* region) {
  return static_cast<int>(floor(region[0] + Dtype(0.5)));
}

// The pixels [begin, end) of a bin along an axis of `size` pixels. The region has `bins` bins, from pixel
// `low` to `high` of the image. Computed in double, and without a product inside a sum, so that every
// compiler rounds a bin's edges in the same way.
struct PSROISpan {
  int begin, end;

  PSROI_HOST_DEVICE inline PSROISpan(double low, double high, double scale, int bin, int bins, int size) {
    low = round(low) * scale;
    high = (round(high) + 1) * scale;
    const double length = high - low > 0.1 ? high - low : 0.1;
    const double from = low + bin * length / bins, to = low + (bin + 1) * length / bins;
    begin = clip(floor(from), size);
    end = clip(ceil(to), size);
  }

  static PSROI_HOST_DEVICE inline int clip(double edge, int size) {
    return edge > 0 ? (edge < size ? static_cast<int>(edge) : size) : 0;
  }
};

}  // namespace caffe

#endif  // CAFFE_PSROI_POOLING_BIN_HPP_
