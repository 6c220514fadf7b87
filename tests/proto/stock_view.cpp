// The core's side of a library: compiled with stock Caffe's messages, handed those of a fork.
#include "caffe/proto/caffe.pb.h"

using caffe::LayerParameter;

void StockView(const void* message, std::string* type, LayerParameter* copy) {
  const LayerParameter& layer = *static_cast<const LayerParameter*>(message);
  *type = layer.type();
  LayerParameter another = layer;
  another.set_name(layer.name() + " seen");
  *copy = another;
}
