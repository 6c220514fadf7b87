// Fillers set the initial values of parameter blobs. Their random numbers follow torch's seed.
#ifndef CAFFE_FILLER_HPP
#define CAFFE_FILLER_HPP

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/syncedmem.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
class Filler {
 public:
  explicit Filler(const FillerParameter& param) : filler_param_(param) {}
  virtual ~Filler() {}
  virtual void Fill(Blob<Dtype>* blob) = 0;

 protected:
  void refuse_sparse() const {
    CHECK_EQ(filler_param_.sparse(), -1) << "Sparsity not supported by this Filler.";
  }

  // n of the Xavier and MSRA rules: the number of inputs or outputs of an element, or the mean of both.
  Dtype fan(const Blob<Dtype>& blob) const {
    CHECK(blob.count());
    const int fan_in = blob.count() / blob.shape(0);
    const int fan_out = blob.num_axes() > 1 ? blob.count() / blob.shape(1) : blob.count();
    switch (filler_param_.variance_norm()) {
      case FillerParameter_VarianceNorm_AVERAGE:
        return (fan_in + fan_out) / Dtype(2);
      case FillerParameter_VarianceNorm_FAN_OUT:
        return fan_out;
      default:
        return fan_in;
    }
  }

  FillerParameter filler_param_;
};

template <typename Dtype>
class ConstantFiller : public Filler<Dtype> {
 public:
  explicit ConstantFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    CHECK(blob->count());
    caffe_set(blob->count(), Dtype(this->filler_param_.value()), blob->mutable_cpu_data());
    this->refuse_sparse();
  }
};

template <typename Dtype>
class UniformFiller : public Filler<Dtype> {
 public:
  explicit UniformFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    CHECK(blob->count());
    caffe_rng_uniform<Dtype>(blob->count(), Dtype(this->filler_param_.min()),
                             Dtype(this->filler_param_.max()), blob->mutable_cpu_data());
    this->refuse_sparse();
  }
};

// With `sparse`, an element keeps its value with probability sparse / outputs, and is 0 otherwise.
template <typename Dtype>
class GaussianFiller : public Filler<Dtype> {
 public:
  explicit GaussianFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    CHECK(blob->count());
    Dtype* data = blob->mutable_cpu_data();
    caffe_rng_gaussian<Dtype>(blob->count(), Dtype(this->filler_param_.mean()),
                              Dtype(this->filler_param_.std()), data);
    const int sparse = this->filler_param_.sparse();
    CHECK_GE(sparse, -1);
    if (sparse == -1) return;
    CHECK_GE(blob->num_axes(), 1);
    rand_vec_.reset(new SyncedMemory(blob->count() * sizeof(int)));
    int* mask = static_cast<int*>(rand_vec_->mutable_cpu_data());
    caffe_rng_bernoulli<Dtype>(blob->count(), Dtype(sparse) / Dtype(blob->shape(0)), mask);
    for (int i = 0; i < blob->count(); ++i) data[i] *= mask[i];
  }

 protected:
  shared_ptr<SyncedMemory> rand_vec_;
};

// Positive, and along the first axis each slice sums to 1.
template <typename Dtype>
class PositiveUnitballFiller : public Filler<Dtype> {
 public:
  explicit PositiveUnitballFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    Dtype* data = blob->mutable_cpu_data();
    caffe_rng_uniform<Dtype>(blob->count(), 0, 1, data);
    const int dim = blob->count(1);
    CHECK(dim);
    for (int i = 0; i < blob->shape(0); ++i, data += dim) {
      Dtype sum = 0;
      for (int j = 0; j < dim; ++j) sum += data[j];
      for (int j = 0; j < dim; ++j) data[j] /= sum;
    }
    this->refuse_sparse();
  }
};

template <typename Dtype>
class XavierFiller : public Filler<Dtype> {
 public:
  explicit XavierFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    const Dtype scale = std::sqrt(Dtype(3) / this->fan(*blob));
    caffe_rng_uniform<Dtype>(blob->count(), -scale, scale, blob->mutable_cpu_data());
    this->refuse_sparse();
  }
};

template <typename Dtype>
class MSRAFiller : public Filler<Dtype> {
 public:
  explicit MSRAFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    const Dtype deviation = std::sqrt(Dtype(2) / this->fan(*blob));
    caffe_rng_gaussian<Dtype>(blob->count(), Dtype(0), deviation, blob->mutable_cpu_data());
    this->refuse_sparse();
  }
};

// Bilinear interpolation, for a deconvolution that enlarges.
template <typename Dtype>
class BilinearFiller : public Filler<Dtype> {
 public:
  explicit BilinearFiller(const FillerParameter& param) : Filler<Dtype>(param) {}
  virtual void Fill(Blob<Dtype>* blob) {
    CHECK_EQ(blob->num_axes(), 4) << "Blob must be 4 dim.";
    CHECK_EQ(blob->width(), blob->height()) << "Filter must be square";
    Dtype* data = blob->mutable_cpu_data();
    const int size = blob->width(), half = (size + 1) / 2;
    const Dtype center = (size - 1) / (Dtype(2) * half);
    for (int i = 0; i < blob->count(); ++i) {
      const Dtype x = i % size, y = (i / size) % size;
      data[i] = (1 - std::fabs(x / half - center)) * (1 - std::fabs(y / half - center));
    }
    this->refuse_sparse();
  }
};

// The caller owns the filler. A template, because it must read the layer's own FillerParameter: some forks
// use variance_norm's field number for another field.
template <typename Dtype>
Filler<Dtype>* GetFiller(const FillerParameter& param) {
  const string& type = param.type();
  if (type == "constant") return new ConstantFiller<Dtype>(param);
  if (type == "gaussian") return new GaussianFiller<Dtype>(param);
  if (type == "positive_unitball") return new PositiveUnitballFiller<Dtype>(param);
  if (type == "uniform") return new UniformFiller<Dtype>(param);
  if (type == "xavier") return new XavierFiller<Dtype>(param);
  if (type == "msra") return new MSRAFiller<Dtype>(param);
  if (type == "bilinear") return new BilinearFiller<Dtype>(param);
  LOG(FATAL) << "Unknown filler name: " << type;
  return NULL;
}

}  // namespace caffe

#endif  // CAFFE_FILLER_HPP
