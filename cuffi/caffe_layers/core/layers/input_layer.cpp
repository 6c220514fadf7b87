#include "caffe/layers/input_layer.hpp"

namespace caffe {

template <typename Dtype>
void InputLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const InputParameter& param = this->layer_param_.input_param();
  const int shapes = param.shape_size(), tops = static_cast<int>(top.size());
  CHECK(shapes == 0 || shapes == 1 || shapes == tops)
      << "Must specify 'shape' once, once per top blob, or not at all: " << tops << " tops vs. " << shapes
      << " shapes.";
  for (int i = 0; i < tops && shapes > 0; ++i) top[i]->Reshape(param.shape(shapes == 1 ? 0 : i));
}

INSTANTIATE_CLASS(InputLayer);

}  // namespace caffe
