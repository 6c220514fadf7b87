#include "caffe/blob.hpp"

#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
Blob<Dtype>::Blob(const int num, const int channels, const int height, const int width) : Blob() {
  Reshape(num, channels, height, width);
}

template <typename Dtype>
Blob<Dtype>::Blob(const vector<int>& shape) : Blob() {
  Reshape(shape);
}

template <typename Dtype>
void Blob<Dtype>::Reshape(const int num, const int channels, const int height, const int width) {
  const int shape[] = {num, channels, height, width};
  Resize(shape, 4);
}

template <typename Dtype>
void Blob<Dtype>::Reshape(const vector<int>& shape) {
  Resize(shape.data(), static_cast<int>(shape.size()));
}

template <typename Dtype>
void Blob<Dtype>::Reshape(const BlobShape& shape) {
  const vector<int64_t> axes(shape.dim().begin(), shape.dim().end());
  Resize(axes.data(), static_cast<int>(axes.size()));
}

template <typename Dtype>
template <typename Size>
void Blob<Dtype>::Resize(const Size* shape, int axes) {
  CHECK_LE(axes, kMaxBlobAxes);
  const bool same = data_ && axes == num_axes() && std::equal(shape, shape + axes, shape_.begin());
  if (same) return;
  int count = 1;
  for (int i = 0; i < axes; ++i) {
    CHECK_GE(shape[i], 0);
    CHECK_LE(shape[i], INT_MAX) << "axis " << i << ": Caffe counts in int";
    if (count != 0) CHECK_LE(shape[i], INT_MAX / count) << "blob size exceeds INT_MAX";
    count *= static_cast<int>(shape[i]);
  }
  shape_.assign(shape, shape + axes);
  count_ = count;
  shape_data_.reset();
  if (count_ > capacity_ || !data_) {
    MakeMemory();
  } else {
    data_->fit(count_ * sizeof(Dtype));
    diff_->fit(count_ * sizeof(Dtype));
  }
}

template <typename Dtype>
void Blob<Dtype>::MakeMemory() {
  capacity_ = count_;
  data_.reset(new SyncedMemory(count_ * sizeof(Dtype)));
  diff_.reset(new SyncedMemory(count_ * sizeof(Dtype)));
  data_->maker = diff_->maker = this;
}

template <typename Dtype>
string Blob<Dtype>::shape_string() const {
  string text;
  for (int axis : shape_) text += std::to_string(axis) + " ";
  return text + "(" + std::to_string(count_) + ")";
}

template <typename Dtype>
int Blob<Dtype>::offset(const vector<int>& indices) const {
  CHECK_LE(indices.size(), num_axes());
  int offset = 0;
  for (int i = 0; i < num_axes(); ++i) {
    offset *= shape(i);
    if (i < static_cast<int>(indices.size())) {
      CHECK_GE(indices[i], 0);
      CHECK_LT(indices[i], shape(i));
      offset += indices[i];
    }
  }
  return offset;
}

template <typename Dtype>
void Blob<Dtype>::set_cpu_data(Dtype* data) {
  CHECK(data);
  // The given memory has exactly this size.
  if (data_->size() != count_ * sizeof(Dtype)) MakeMemory();
  data_->set_cpu_data(data);
}

template <typename Dtype>
void Blob<Dtype>::set_gpu_data(Dtype* data) {
  CHECK(data);
  if (data_->size() != count_ * sizeof(Dtype)) MakeMemory();
  data_->set_gpu_data(data);
}

template <typename Dtype>
const int* Blob<Dtype>::gpu_shape() const {
  if (!shape_data_) {
    shape_data_.reset(new SyncedMemory(shape_.size() * sizeof(int)));
    std::copy(shape_.begin(), shape_.end(), static_cast<int*>(shape_data_->mutable_cpu_data()));
  }
  return static_cast<const int*>(shape_data_->gpu_data());
}

template <typename Dtype>
void Blob<Dtype>::ShareData(const Blob& other) {
  CHECK_EQ(count_, other.count());
  data_ = other.data();
}

template <typename Dtype>
void Blob<Dtype>::ShareDiff(const Blob& other) {
  CHECK_EQ(count_, other.count());
  diff_ = other.diff();
}

template <typename Dtype>
void Blob<Dtype>::CopyFrom(const Blob& source, bool copy_diff, bool reshape) {
  if (source.shape() != shape_) {
    CHECK(reshape) << "Trying to copy blobs of different sizes.";
    ReshapeLike(source);
  }
  if (Caffe::mode() == Caffe::GPU) {
    caffe_copy(count_, copy_diff ? source.gpu_diff() : source.gpu_data(),
               copy_diff ? mutable_gpu_diff() : mutable_gpu_data());
  } else {
    caffe_copy(count_, copy_diff ? source.cpu_diff() : source.cpu_data(),
               copy_diff ? mutable_cpu_diff() : mutable_cpu_data());
  }
}

namespace {

// Only blobs of real numbers have arithmetic. Blobs of integers hold indices.
template <typename Dtype>
constexpr bool kIsReal = std::is_floating_point<Dtype>::value;

// Does the device have the latest values? Then the next operation runs there.
bool on_device(const SyncedMemory& memory) {
  return memory.head() == SyncedMemory::HEAD_AT_GPU || memory.head() == SyncedMemory::SYNCED;
}

template <typename Dtype>
Dtype absolute_sum(int count, SyncedMemory* memory) {
  if constexpr (kIsReal<Dtype>) {
    if (!memory || memory->head() == SyncedMemory::UNINITIALIZED) return 0;
    if (!on_device(*memory)) return caffe_cpu_asum(count, static_cast<const Dtype*>(memory->cpu_data()));
    Dtype sum = 0;
    caffe_gpu_asum(count, static_cast<const Dtype*>(memory->gpu_data()), &sum);
    return sum;
  } else {
    NOT_IMPLEMENTED;
    return 0;
  }
}

template <typename Dtype>
Dtype sum_of_squares(int count, SyncedMemory* memory) {
  if constexpr (kIsReal<Dtype>) {
    if (!memory || memory->head() == SyncedMemory::UNINITIALIZED) return 0;
    if (!on_device(*memory)) {
      const Dtype* values = static_cast<const Dtype*>(memory->cpu_data());
      return caffe_cpu_dot(count, values, values);
    }
    const Dtype* values = static_cast<const Dtype*>(memory->gpu_data());
    Dtype sum = 0;
    caffe_gpu_dot(count, values, values, &sum);
    return sum;
  } else {
    NOT_IMPLEMENTED;
    return 0;
  }
}

template <typename Dtype>
void scale(int count, Dtype factor, SyncedMemory* memory) {
  if constexpr (kIsReal<Dtype>) {
    if (!memory || memory->head() == SyncedMemory::UNINITIALIZED) return;
    if (on_device(*memory)) {
      caffe_gpu_scal(count, factor, static_cast<Dtype*>(memory->mutable_gpu_data()));
    } else {
      caffe_scal(count, factor, static_cast<Dtype*>(memory->mutable_cpu_data()));
    }
  } else {
    NOT_IMPLEMENTED;
  }
}

}  // namespace

template <typename Dtype>
void Blob<Dtype>::Update() {
  if constexpr (kIsReal<Dtype>) {
    CHECK_NE(data()->head(), SyncedMemory::UNINITIALIZED) << "Syncedmem not initialized.";
    if (on_device(*data_)) {
      caffe_gpu_axpy<Dtype>(count_, Dtype(-1), gpu_diff(), mutable_gpu_data());
    } else {
      caffe_axpy<Dtype>(count_, Dtype(-1), cpu_diff(), mutable_cpu_data());
    }
  } else {
    NOT_IMPLEMENTED;
  }
}

template <typename Dtype>
Dtype Blob<Dtype>::asum_data() const {
  return absolute_sum<Dtype>(count_, data_.get());
}
template <typename Dtype>
Dtype Blob<Dtype>::asum_diff() const {
  return absolute_sum<Dtype>(count_, diff_.get());
}
template <typename Dtype>
Dtype Blob<Dtype>::sumsq_data() const {
  return sum_of_squares<Dtype>(count_, data_.get());
}
template <typename Dtype>
Dtype Blob<Dtype>::sumsq_diff() const {
  return sum_of_squares<Dtype>(count_, diff_.get());
}
template <typename Dtype>
void Blob<Dtype>::scale_data(Dtype scale_factor) {
  scale(count_, scale_factor, data_.get());
}
template <typename Dtype>
void Blob<Dtype>::scale_diff(Dtype scale_factor) {
  scale(count_, scale_factor, diff_.get());
}

namespace {

// Messages from before October 2014 have four axes instead of a shape.
bool has_legacy_shape(const BlobProto& proto) {
  return proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
}

vector<int64_t> shape_of(const BlobProto& proto) {
  if (has_legacy_shape(proto)) return {proto.num(), proto.channels(), proto.height(), proto.width()};
  return {proto.shape().dim().begin(), proto.shape().dim().end()};
}

// memory() allocates. It comes after the check, because a wrong shape may be huge.
template <typename Values, typename Memory>
void read(const Values& values, int count, const Memory& memory) {
  CHECK_EQ(count, values.size());
  std::copy(values.begin(), values.end(), memory());
}

}  // namespace

template <typename Dtype>
bool Blob<Dtype>::ShapeEquals(const BlobProto& other) {
  if (has_legacy_shape(other)) {
    // Compare from the last axis: an old parameter blob (1, 1, K, N) equals a new one (K, N).
    return num_axes() <= 4 && LegacyShape(-4) == other.num() && LegacyShape(-3) == other.channels() &&
           LegacyShape(-2) == other.height() && LegacyShape(-1) == other.width();
  }
  const vector<int64_t> shape = shape_of(other);
  return std::equal(shape_.begin(), shape_.end(), shape.begin(), shape.end());
}

template <typename Dtype>
void Blob<Dtype>::FromProto(const BlobProto& proto, bool reshape) {
  if (reshape) {
    const vector<int64_t> shape = shape_of(proto);
    Resize(shape.data(), static_cast<int>(shape.size()));
  } else {
    CHECK(ShapeEquals(proto)) << "shape mismatch (reshape not set)";
  }
  const auto data = [this] { return mutable_cpu_data(); };
  const auto diff = [this] { return mutable_cpu_diff(); };
  if (proto.double_data_size() > 0) {
    read(proto.double_data(), count_, data);
  } else {
    read(proto.data(), count_, data);
  }
  if (proto.double_diff_size() > 0) {
    read(proto.double_diff(), count_, diff);
  } else if (proto.diff_size() > 0) {
    read(proto.diff(), count_, diff);
  }
}

template <typename Dtype>
void Blob<Dtype>::ToProto(BlobProto* proto, bool write_diff) const {
  if constexpr (kIsReal<Dtype>) {
    proto->clear_shape();
    for (int axis : shape_) proto->mutable_shape()->add_dim(axis);
    proto->clear_data();
    proto->clear_diff();
    proto->clear_double_data();
    proto->clear_double_diff();
    const Dtype* values = cpu_data();
    const Dtype* slopes = write_diff ? cpu_diff() : nullptr;
    for (int i = 0; i < count_; ++i) {
      if constexpr (std::is_same<Dtype, double>::value) {
        proto->add_double_data(values[i]);
        if (slopes) proto->add_double_diff(slopes[i]);
      } else {
        proto->add_data(values[i]);
        if (slopes) proto->add_diff(slopes[i]);
      }
    }
  } else {
    NOT_IMPLEMENTED;
  }
}

INSTANTIATE_CLASS(Blob);
template class Blob<bool>;
template class Blob<char>;
template class Blob<int>;
template class Blob<unsigned int>;

}  // namespace caffe
