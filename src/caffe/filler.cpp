#include "caffe/filler.hpp"

namespace caffe {

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

template Filler<float>* GetFiller(const FillerParameter& param);
template Filler<double>* GetFiller(const FillerParameter& param);

}  // namespace caffe
