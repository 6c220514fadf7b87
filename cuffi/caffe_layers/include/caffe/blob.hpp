// An n-dimensional array of data and of its gradient (diff).
#ifndef CAFFE_BLOB_HPP_
#define CAFFE_BLOB_HPP_

#include "caffe/common.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/syncedmem.hpp"

const int kMaxBlobAxes = 32;

namespace caffe {

const char kNoShape[] = "a bottom or top that the layer was not given, or a blob that was never shaped";

// The most axes with which a blob may be asked for num(), channels(), height() and width(). A layer of a fork whose
// Blob allows others sets it in its library (cuffi/caffe_layers/port/write_folder.py).
inline int& most_legacy_axes() {
  static int most = 4;
  return most;
}

template <typename Dtype>
class Blob {
 public:
  Blob() : data_(), diff_(), count_(0), capacity_(0) {}
  explicit Blob(const int num, const int channels, const int height, const int width);
  explicit Blob(const vector<int>& shape);

  // If the memory is too small, it is replaced, and the contents are lost. More than INT_MAX elements
  // are an error.
  void Reshape(const int num, const int channels, const int height, const int width);
  void Reshape(const vector<int>& shape);
  void Reshape(const BlobShape& shape);
  // Not Caffe's: checks 64-bit sizes.
  void Reshape(const int64_t* shape, int axes) { Resize(shape, axes); }
  void ReshapeLike(const Blob& other) { Reshape(other.shape()); }

  string shape_string() const;
  const vector<int>& shape() const { return shape_; }
  int shape(int index) const { return shape_[CanonicalAxisIndex(index)]; }
  int num_axes() const { return static_cast<int>(shape_.size()); }
  int count() const { return count_; }
  // The product of the axes in [start_axis, end_axis).
  int count(int start_axis, int end_axis) const {
    CHECK_LE(start_axis, end_axis);
    CHECK_GE(start_axis, 0);
    CHECK_GE(end_axis, 0);
    CHECK_LE(start_axis, num_axes());
    CHECK_LE(end_axis, num_axes());
    int64_t product = 1;  // 64 bits, because it may exceed INT_MAX if another axis is 0
    for (int i = start_axis; i < end_axis; ++i) {
      product *= shape_[i];
      CHECK_LE(product, INT_MAX) << "elements of axes " << start_axis << " to " << end_axis
                                 << ", of a blob with shape " << shape_string();
    }
    return static_cast<int>(product);
  }
  int count(int start_axis) const { return count(start_axis, num_axes()); }

  // -1 is the last axis.
  int CanonicalAxisIndex(int axis_index) const {
    CHECK_GE(axis_index, -num_axes()) << "axis " << axis_index << " out of range for " << num_axes()
                                      << "-D Blob with shape " << shape_string();
    CHECK_LT(axis_index, num_axes()) << "axis " << axis_index << " out of range for " << num_axes()
                                     << "-D Blob with shape " << shape_string();
    return axis_index < 0 ? axis_index + num_axes() : axis_index;
  }

  // The sizes of a blob of at most most_legacy_axes() axes as (num, channels, height, width). Missing axes count as 1.
  int num() const { return LegacyShape(0); }
  int channels() const { return LegacyShape(1); }
  int height() const { return LegacyShape(2); }
  int width() const { return LegacyShape(3); }
  int LegacyShape(int index) const {
    CHECK_LE(num_axes(), most_legacy_axes())
        << "Cannot use legacy accessors on Blobs with > " << most_legacy_axes() << " axes.";
    CHECK_LT(index, most_legacy_axes());
    CHECK_GE(index, -most_legacy_axes());
    return index >= num_axes() || index < -num_axes() ? 1 : shape(index);
  }

  int offset(const int n, const int c = 0, const int h = 0, const int w = 0) const {
    CHECK_GE(n, 0);
    CHECK_LE(n, num());
    CHECK_LE(c, channels());
    CHECK_LE(h, height());
    CHECK_LE(w, width());
    return ((n * channels() + c) * height() + h) * width() + w;
  }
  int offset(const vector<int>& indices) const;

  void CopyFrom(const Blob<Dtype>& source, bool copy_diff = false, bool reshape = false);

  Dtype data_at(const int n, const int c, const int h, const int w) const {
    return cpu_data()[offset(n, c, h, w)];
  }
  Dtype diff_at(const int n, const int c, const int h, const int w) const {
    return cpu_diff()[offset(n, c, h, w)];
  }
  Dtype data_at(const vector<int>& index) const { return cpu_data()[offset(index)]; }
  Dtype diff_at(const vector<int>& index) const { return cpu_diff()[offset(index)]; }

  const shared_ptr<SyncedMemory>& data() const {
    CHECK(data_) << kNoShape;
    return data_;
  }
  const shared_ptr<SyncedMemory>& diff() const {
    CHECK(diff_) << kNoShape;
    return diff_;
  }

  const Dtype* cpu_data() const { return static_cast<const Dtype*>(data()->cpu_data()); }
  const Dtype* gpu_data() const { return static_cast<const Dtype*>(data()->gpu_data()); }
  const Dtype* cpu_diff() const { return static_cast<const Dtype*>(diff()->cpu_data()); }
  const Dtype* gpu_diff() const { return static_cast<const Dtype*>(diff()->gpu_data()); }
  Dtype* mutable_cpu_data() { return static_cast<Dtype*>(data()->mutable_cpu_data()); }
  Dtype* mutable_gpu_data() { return static_cast<Dtype*>(data()->mutable_gpu_data()); }
  Dtype* mutable_cpu_diff() { return static_cast<Dtype*>(diff()->mutable_cpu_data()); }
  Dtype* mutable_gpu_diff() { return static_cast<Dtype*>(diff()->mutable_gpu_data()); }
  void set_cpu_data(Dtype* data);
  void set_gpu_data(Dtype* data);
  const int* gpu_shape() const;

  // From DeepLab's forks: the address of an element.
  const Dtype* cpu_data_at(int n = 0, int c = 0, int h = 0, int w = 0) const {
    return cpu_data() + offset(n, c, h, w);
  }
  const Dtype* gpu_data_at(int n = 0, int c = 0, int h = 0, int w = 0) const {
    return gpu_data() + offset(n, c, h, w);
  }
  const Dtype* cpu_diff_at(int n = 0, int c = 0, int h = 0, int w = 0) const {
    return cpu_diff() + offset(n, c, h, w);
  }
  const Dtype* gpu_diff_at(int n = 0, int c = 0, int h = 0, int w = 0) const {
    return gpu_diff() + offset(n, c, h, w);
  }
  Dtype* mutable_cpu_data_at(int n = 0, int c = 0, int h = 0, int w = 0) {
    return mutable_cpu_data() + offset(n, c, h, w);
  }
  Dtype* mutable_gpu_data_at(int n = 0, int c = 0, int h = 0, int w = 0) {
    return mutable_gpu_data() + offset(n, c, h, w);
  }
  Dtype* mutable_cpu_diff_at(int n = 0, int c = 0, int h = 0, int w = 0) {
    return mutable_cpu_diff() + offset(n, c, h, w);
  }
  Dtype* mutable_gpu_diff_at(int n = 0, int c = 0, int h = 0, int w = 0) {
    return mutable_gpu_diff() + offset(n, c, h, w);
  }

  void Update();  // data -= diff
  void FromProto(const BlobProto& proto, bool reshape = true);
  void ToProto(BlobProto* proto, bool write_diff = false) const;

  Dtype asum_data() const;
  Dtype asum_diff() const;
  Dtype sumsq_data() const;
  Dtype sumsq_diff() const;
  void scale_data(Dtype scale_factor);
  void scale_diff(Dtype scale_factor);

  void ShareData(const Blob& other);
  void ShareDiff(const Blob& other);
  bool ShapeEquals(const BlobProto& other);

#if __has_include("additions_blob.hpp")
#include "additions_blob.hpp"  // what a layer's fork gave to Blob (cuffi/caffe_layers/port/cuts.py)
#endif

  // Not Caffe's: was the blob ever given a shape?
  bool has_memory() const { return data_ != nullptr; }
  // Not Caffe's: did this blob make the memory? Otherwise it shares another blob's.
  bool owns_data() const { return data_ && data_->maker == this; }
  bool owns_diff() const { return diff_ && diff_->maker == this; }

 protected:
  template <typename Size>
  void Resize(const Size* shape, int axes);
  // Makes data_ and diff_ anew, for count_ elements.
  void MakeMemory();

  shared_ptr<SyncedMemory> data_;
  shared_ptr<SyncedMemory> diff_;
  mutable shared_ptr<SyncedMemory> shape_data_;  // made by gpu_shape()
  vector<int> shape_;
  int count_;
  int capacity_;

  DISABLE_COPY_AND_ASSIGN(Blob);
};

}  // namespace caffe

#endif  // CAFFE_BLOB_HPP_
