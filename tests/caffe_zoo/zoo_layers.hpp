#ifndef CAFFE_ZOO_LAYERS_HPP_
#define CAFFE_ZOO_LAYERS_HPP_

#include <cudnn.h>

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/layers/neuron_layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

#define ZOO_PASS(name)                                                                          \
  virtual void name##_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top); \
  virtual void name##_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
#define ZOO_BACK(name)                                                                         \
  virtual void name##_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, \
                          const vector<Blob<Dtype>*>& bottom);                                 \
  virtual void name##_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, \
                          const vector<Blob<Dtype>*>& bottom);

// x where x > 0, else slope * x; reads the top's sign in Backward, so that it may work in place. At
// most 4 axes.
template <typename Dtype>
class RampLayer : public NeuronLayer<Dtype> {
 public:
  explicit RampLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Ramp"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// No source has its functions, because it needs cuDNN. The layers beside it do not.
template <typename Dtype>
class CuDNNRampLayer : public RampLayer<Dtype> {
 public:
  explicit CuDNNRampLayer(const LayerParameter& param) : RampLayer<Dtype>(param) {}

 protected:
  cudnnHandle_t* handle_;
  vector<cudnnTensorDescriptor_t> bottom_descs_, top_descs_;
  cudnnActivationDescriptor_t activation_desc_;
  cudnnConvolutionFwdAlgo_t* algorithms_;
};

// Two bottoms of one shape; tops: their sum, their product, and again so, as many as are named. No CPU code.
template <typename Dtype>
class PairLayer : public Layer<Dtype> {
 public:
  explicit PairLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Pair"; }
  virtual inline int ExactNumBottomBlobs() const { return 2; }
  virtual inline int MinTopBlobs() const { return 2; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// Half the squared distance, by element; Backward scales the difference that Forward left, in place.
template <typename Dtype>
class RewritingLayer : public LossLayer<Dtype> {
 public:
  explicit RewritingLayer(const LayerParameter& param) : LossLayer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Rewriting"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
  Blob<Dtype> diff_;
};

// Dropout of a half when training, without scaling. The kernels draw their numbers in another way than the
// CPU code.
template <typename Dtype>
class NoiseLayer : public NeuronLayer<Dtype> {
 public:
  explicit NoiseLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Noise"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
  Blob<Dtype> mask_;
};

// weight_c * x + bias_c over axis 1, whose size is fixed by the first call.
template <typename Dtype>
class AffineLayer : public Layer<Dtype> {
 public:
  explicit AffineLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Affine"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// The positive elements: the top's shape is known in Forward only.
template <typename Dtype>
class PositiveLayer : public Layer<Dtype> {
 public:
  explicit PositiveLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Positive"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// The bottom as a vector, by sharing its memory both ways.
template <typename Dtype>
class SharedLayer : public Layer<Dtype> {
 public:
  explicit SharedLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Shared"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// Twice the bottom. Backward is there as a kernel only, and with a slope not at all.
template <typename Dtype>
class KernelsLayer : public NeuronLayer<Dtype> {
 public:
  explicit KernelsLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Kernels"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// One more at each call of this object. Has no Backward.
template <typename Dtype>
class CountingLayer : public NeuronLayer<Dtype> {
 public:
  explicit CountingLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param), calls_(0) {}
  virtual inline const char* type() const { return "Counting"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
  int calls_;
};

// The bottom; Backward does nothing at all.
template <typename Dtype>
class StoppingLayer : public NeuronLayer<Dtype> {
 public:
  explicit StoppingLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Stopping"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// x * table[channel], whose kernels are handed the host mirrors of the bottom and of the table. No CPU code.
// Its destructor counts on LayerSetUp.
template <typename Dtype>
class MirroredLayer : public Layer<Dtype> {
 public:
  explicit MirroredLayer(const LayerParameter& param)
      : Layer<Dtype>(param), held_(reinterpret_cast<int*>(8)) {}
  virtual ~MirroredLayer() { delete held_; }
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Mirrored"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
  Blob<Dtype> table_;
  int* held_;
  static const Dtype kFirst = 1;  // as compilers of 2014 took it
};

// x times the training loop's iteration, which it asks its net for.
template <typename Dtype>
class ScheduledLayer : public NeuronLayer<Dtype> {
 public:
  explicit ScheduledLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Scheduled"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
  Dtype rate_;
};

// The product of two bottoms and, with a slope, a second top. Does not say how many of either.
// CPU code alone.
template <typename Dtype>
class CarelessLayer : public Layer<Dtype> {
 public:
  explicit CarelessLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Careless"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
};

// Adds the bottom to its top, and the top's diff to the bottom's: both are new, and so zero.
template <typename Dtype>
class AddingLayer : public Layer<Dtype> {
 public:
  explicit AddingLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Adding"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// The same. The file `overwrites` says of its Forward_cpu that it overwrites its top.
template <typename Dtype>
class AddingNeuronLayer : public NeuronLayer<Dtype> {
 public:
  explicit AddingNeuronLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "AddingNeuron"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// x, and 1 from the CPU code or 2 from a kernel, whose gradient is twice that of the CPU code: tells which of
// them ran.
template <typename Dtype>
class SidedLayer : public NeuronLayer<Dtype> {
 public:
  explicit SidedLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Sided"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// Half the square. Forward leaves the gradient in the bottom's diff, Backward only scales it.
template <typename Dtype>
class EarlyLayer : public Layer<Dtype> {
 public:
  explicit EarlyLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Early"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// The same as a NeuronLayer.
template <typename Dtype>
class EarlyNeuronLayer : public NeuronLayer<Dtype> {
 public:
  explicit EarlyNeuronLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "EarlyNeuron"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// Half the square, with the whole gradient in Forward: the loss weight, which Caffe keeps in the top's diff.
template <typename Dtype>
class EarlyLossLayer : public Layer<Dtype> {
 public:
  explicit EarlyLossLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "EarlyLoss"; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// Twice the bottom. Forward counts into its parameter blobs, as BatchNorm keeps its running means. If `early`, SetUp
// says that the first is not to be trained, and that the second decays less.
template <typename Dtype>
class RunningLayer : public Layer<Dtype> {
 public:
  explicit RunningLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Running"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

// Looks at its bottom and has no top, and does not say so. CPU code alone.
template <typename Dtype>
class FiniteLayer : public Layer<Dtype> {
 public:
  explicit FiniteLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Finite"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
};

// Tops: e^x, and twice; Backward multiplies by the e^x that Forward kept. The second top's memory is, by
// zoo_param.memory, also that of what is kept ("kept"), of the first top ("top"), of the bottom, which
// it then shows ("bottom"), or a buffer of the layer's own ("buffer"); or what is kept lies in the
// second top ("in top"). It becomes so in Forward, or, if zoo_param.early, in Reshape. The second top's
// gradient is ignored.
template <typename Dtype>
class ExposingLayer : public Layer<Dtype> {
 public:
  explicit ExposingLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Exposing"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 2; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
  void Share(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  Blob<Dtype> kept_;
  vector<Dtype> buffer_;
};

// Tops: the left and the right halves of the bottom's rows, by copies of two axes. The right half goes by way
// of the host, which negates it.
template <typename Dtype>
class HalvesLayer : public Layer<Dtype> {
 public:
  explicit HalvesLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Halves"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 2; }

 protected:
  ZOO_PASS(Forward)
  ZOO_BACK(Backward)
};

}  // namespace caffe

#endif  // CAFFE_ZOO_LAYERS_HPP_
