#include "caffe/layers/slice_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void SliceLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const SliceParameter& param = this->layer_param_.slice_param();
  CHECK(!(param.has_axis() && param.has_slice_dim()))
      << "Either axis or slice_dim should be specified; not both.";
  slice_point_.assign(param.slice_point().begin(), param.slice_point().end());
}

template <typename Dtype>
void SliceLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const SliceParameter& param = this->layer_param_.slice_param();
  slice_axis_ = param.has_slice_dim() ? static_cast<int>(param.slice_dim())
                                      : bottom[0]->CanonicalAxisIndex(param.axis());
  CHECK_GE(slice_axis_, 0) << "slice_dim is not an axis.";
  CHECK_LT(slice_axis_, bottom[0]->num_axes()) << "slice_dim out of range.";
  num_slices_ = bottom[0]->count(0, slice_axis_);
  slice_size_ = bottom[0]->count(slice_axis_ + 1);
  const int whole = bottom[0]->shape(slice_axis_), tops = static_cast<int>(top.size());
  vector<int> ends = slice_point_;
  if (ends.empty()) {
    CHECK_EQ(whole % tops, 0) << "Number of top blobs (" << tops
                              << ") should evenly divide input slice axis (" << whole << ")";
    for (int i = 1; i < tops; ++i) ends.push_back(whole / tops * i);
  }
  CHECK_EQ(ends.size(), tops - 1) << "slice_point must be given once for each top but the last.";
  ends.push_back(whole);
  vector<int> shape = bottom[0]->shape();
  for (int i = 0, start = 0; i < tops; start = ends[i++]) {
    CHECK_GT(ends[i], start) << "slice_point must grow, and end before the axis does.";
    shape[slice_axis_] = ends[i] - start;
    top[i]->Reshape(shape);
  }
  if (tops == 1) {
    top[0]->ShareData(*bottom[0]);
    top[0]->ShareDiff(*bottom[0]);
  }
}

template <typename Dtype>
template <typename Side>
void SliceLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (top.size() == 1) return;
  const size_t pitch = sizeof(Dtype) * bottom[0]->count(slice_axis_);
  const Dtype* x = Side::data(*bottom[0]);
  for (Blob<Dtype>* blob : top) {
    const int size = blob->count(slice_axis_);
    Side::copy_rows(num_slices_, sizeof(Dtype) * size, x, pitch, Side::mutable_data(*blob),
                    sizeof(Dtype) * size);
    x += size;
  }
}

template <typename Dtype>
template <typename Side>
void SliceLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                   const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0] || top.size() == 1) return;
  const size_t pitch = sizeof(Dtype) * bottom[0]->count(slice_axis_);
  Dtype* dx = Side::mutable_diff(*bottom[0]);
  for (Blob<Dtype>* blob : top) {
    const int size = blob->count(slice_axis_);
    Side::copy_rows(num_slices_, sizeof(Dtype) * size, Side::diff(*blob), sizeof(Dtype) * size, dx, pitch);
    dx += size;
  }
}

CAFFE_BOTH_SIDES(SliceLayer)
INSTANTIATE_CLASS(SliceLayer);

}  // namespace caffe
