#include "caffe/layer_factory.hpp"

namespace caffe {

template <typename Dtype>
typename LayerRegistry<Dtype>::CreatorRegistry& LayerRegistry<Dtype>::Registry() {
  static CreatorRegistry* registry = new CreatorRegistry();  // outlives every registerer
  return *registry;
}

template <typename Dtype>
void LayerRegistry<Dtype>::AddCreator(const string& type, Creator creator) {
  CHECK_EQ(Registry().count(type), 0) << "Layer type " << type << " already registered.";
  Registry()[type] = creator;
}

template LayerRegistry<float>::CreatorRegistry& LayerRegistry<float>::Registry();
template LayerRegistry<double>::CreatorRegistry& LayerRegistry<double>::Registry();
template void LayerRegistry<float>::AddCreator(const string& type, Creator creator);
template void LayerRegistry<double>::AddCreator(const string& type, Creator creator);

}  // namespace caffe
