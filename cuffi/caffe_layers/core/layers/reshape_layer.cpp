#include "caffe/layers/reshape_layer.hpp"

namespace caffe {

namespace {

int multiplied(int64_t count, int64_t size) {
  CHECK_LE(count * size, INT_MAX) << "product of the specified dimensions";
  return static_cast<int>(count * size);
}

}  // namespace

template <typename Dtype>
void ReshapeLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_NE(top[0], bottom[0]) << this->type() << " Layer does not allow in-place computation.";
  const BlobShape& shape = this->layer_param_.reshape_param().shape();
  inferred_axis_ = -1;
  copy_axes_.clear();
  constant_count_ = 1;
  for (int i = 0; i < shape.dim_size(); ++i) {
    const int64_t size = shape.dim(i);
    CHECK_GE(size, -1) << "dim " << i << " of the new shape";
    CHECK_LE(size, INT_MAX) << "dim " << i << " of the new shape";
    if (size == 0) {
      copy_axes_.push_back(i);
    } else if (size == -1) {
      CHECK_EQ(inferred_axis_, -1) << "new shape contains multiple -1 dims; at most a single (1) value of -1 "
                                      "may be specified";
      inferred_axis_ = i;
    } else {
      constant_count_ = multiplied(constant_count_, size);
    }
  }
}

template <typename Dtype>
void ReshapeLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const ReshapeParameter& param = this->layer_param_.reshape_param();
  const vector<int>& from = bottom[0]->shape();
  const int axes = bottom[0]->num_axes();
  // The bottom's axes [start, end) are replaced. axis == -1 means behind the last axis.
  const int start = param.axis() >= 0 ? param.axis() : axes + param.axis() + 1;
  CHECK_GE(start, 0) << "axis " << param.axis() << " out of range";
  CHECK_LE(start, axes) << "axis " << param.axis() << " out of range for " << axes << "-D input blob";
  CHECK_GE(param.num_axes(), -1) << "num_axes must be >= 0, or -1 for all";
  const int end = param.num_axes() == -1 ? axes : start + param.num_axes();
  CHECK_LE(end, axes) << "end_axis = axis + num_axes is out of range";

  vector<int> shape(from.begin(), from.begin() + start);
  for (int i = 0; i < param.shape().dim_size(); ++i) shape.push_back(static_cast<int>(param.shape().dim(i)));
  shape.insert(shape.end(), from.begin() + end, from.end());
  int explicit_count =
      multiplied(multiplied(constant_count_, bottom[0]->count(0, start)), bottom[0]->count(end));
  for (int axis : copy_axes_) {
    CHECK_GT(axes, start + axis)
        << "new shape contains a 0, but there was no corresponding bottom axis to copy";
    shape[start + axis] = from[start + axis];
    explicit_count = multiplied(explicit_count, from[start + axis]);
  }
  if (inferred_axis_ >= 0) {
    CHECK(explicit_count != 0 && bottom[0]->count() % explicit_count == 0)
        << "bottom count (" << bottom[0]->count()
        << ") must be divisible by the product of the specified dimensions (" << explicit_count << ")";
    shape[start + inferred_axis_] = bottom[0]->count() / explicit_count;
  }
  top[0]->Reshape(shape);
  CHECK_EQ(top[0]->count(), bottom[0]->count()) << "output count must match input count";
  top[0]->ShareData(*bottom[0]);
  top[0]->ShareDiff(*bottom[0]);
}

INSTANTIATE_CLASS(ReshapeLayer);

}  // namespace caffe
