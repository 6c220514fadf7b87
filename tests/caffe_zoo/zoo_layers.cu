#include <vector>

#include "caffe/layers/zoo_layers.hpp"
#include "caffe/net.hpp"
#include "caffe/util/gpu_util.cuh"
#include "caffe/util/math_functions.hpp"

namespace caffe {

#define ZOO_FORWARD_GPU(name) \
  template <typename Dtype>   \
  void name##Layer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top)
#define ZOO_BACKWARD_GPU(name)                                                                               \
  template <typename Dtype>                                                                                  \
  void name##Layer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, \
                                        const vector<Blob<Dtype>*>& bottom)

// ------------------------------------------------------------------------------------------- Ramp

template <typename Dtype>
__global__ void RampForward(const int n, const Dtype slope, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    // Of a float and a double: a template of the standard library's, at which nobody wrote __device__.
    y[i] = x[i] > 0 ? x[i] : slope * fmin(x[i], 0.0);
  }
}

template <typename Dtype>
__global__ void RampBackward(const int n, const Dtype slope, const Dtype* y, const Dtype* dy, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
  }
}

// Ramp does not look whether its launches were taken. `memory` names the function that asks for more threads than
// a block may have.
template <typename Layer>
int RampThreads(const Layer& layer, const char* function) {
  return layer.layer_param().zoo_param().memory() == function ? 4096 : CAFFE_CUDA_NUM_THREADS;
}

// Not by a macro, so that the build sees which results they overwrite, as in a fork's files.
template <typename Dtype>
void RampLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  const Dtype slope = this->layer_param_.zoo_param().slope();
  const Dtype* x = bottom[0]->gpu_data();
  RampForward<Dtype>
      <<<CAFFE_GET_BLOCKS(n), RampThreads(*this, "Forward")>>>(n, slope, x, top[0]->mutable_gpu_data());
}

template <typename Dtype>
void RampLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  const Dtype slope = this->layer_param_.zoo_param().slope();
  const Dtype* y = top[0]->gpu_data();
  const Dtype* dy = top[0]->gpu_diff();
  RampBackward<Dtype><<<CAFFE_GET_BLOCKS(n), RampThreads(*this, "Backward")>>>(n, slope, y, dy,
                                                                               bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(RampLayer);

// ------------------------------------------------------------------------------------------- Pair

template <typename Dtype>
__global__ void PairBackward(const int n, const Dtype* other, const Dtype* sum, const Dtype* product,
                             const bool first, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    const Dtype diff = sum[i] + other[i] * product[i];
    dx[i] = first ? diff : dx[i] + diff;
  }
}

ZOO_FORWARD_GPU(Pair) {
  const int n = bottom[0]->count();
  for (int i = 0; i < top.size(); ++i) {
    if (i % 2 == 0)
      caffe_gpu_add(n, bottom[0]->gpu_data(), bottom[1]->gpu_data(), top[i]->mutable_gpu_data());
    else
      caffe_gpu_mul(n, bottom[0]->gpu_data(), bottom[1]->gpu_data(), top[i]->mutable_gpu_data());
  }
}

ZOO_BACKWARD_GPU(Pair) {
  const int n = bottom[0]->count();
  CHECK_EQ(top.size() % 2, 0) << "sums go with products";
  for (int i = 0; i < 2; ++i) {
    if (!propagate_down[i]) continue;
    Dtype* dx = bottom[i]->mutable_gpu_diff();
    for (int j = 0; j < top.size(); j += 2)
      PairBackward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
          n, bottom[1 - i]->gpu_data(), top[j]->gpu_diff(), top[j + 1]->gpu_diff(), j == 0, dx);
    CUDA_POST_KERNEL_CHECK;
  }
}

INSTANTIATE_LAYER_GPU_FUNCS(PairLayer);

// -------------------------------------------------------------------------------------- Rewriting

ZOO_FORWARD_GPU(Rewriting) {
  const int count = bottom[0]->count();
  caffe_gpu_sub(count, bottom[0]->gpu_data(), bottom[1]->gpu_data(), diff_.mutable_gpu_data());
  Dtype dot;
  caffe_gpu_dot(count, diff_.gpu_data(), diff_.gpu_data(), &dot);
  top[0]->mutable_cpu_data()[0] = dot / count / 2;
}

ZOO_BACKWARD_GPU(Rewriting) {
  const int count = bottom[0]->count();
  caffe_gpu_scal(count, top[0]->cpu_diff()[0] / count, diff_.mutable_gpu_data());
  for (int i = 0; i < 2; ++i) {
    if (!propagate_down[i]) continue;
    caffe_gpu_axpby(count, Dtype(i == 0 ? 1 : -1), diff_.gpu_data(), Dtype(0), bottom[i]->mutable_gpu_diff());
  }
}

INSTANTIATE_LAYER_GPU_FUNCS(RewritingLayer);

// ------------------------------------------------------------------------------------------ Noise

template <typename Dtype>
__global__ void NoiseThreshold(const int n, Dtype* mask) {
  CUDA_KERNEL_LOOP(i, n) {
    mask[i] = mask[i] >= Dtype(0.5);
  }
}

ZOO_FORWARD_GPU(Noise) {
  const int n = bottom[0]->count();
  Dtype* mask = mask_.mutable_gpu_data();
  caffe_gpu_set(n, Dtype(1), mask);
  if (this->phase_ == TRAIN) {
    caffe_gpu_rng_uniform(n, Dtype(0), Dtype(1), mask);
    NoiseThreshold<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, mask);
  }
  caffe_gpu_mul(n, bottom[0]->gpu_data(), mask_.gpu_data(), top[0]->mutable_gpu_data());
}

ZOO_BACKWARD_GPU(Noise) {
  caffe_gpu_mul(bottom[0]->count(), top[0]->gpu_diff(), mask_.gpu_data(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(NoiseLayer);

// ----------------------------------------------------------------------------------------- Affine

template <typename Dtype>
__global__ void AffineForward(const int n, const int inner, const int channels, const Dtype* x,
                              const Dtype* weight, const Dtype* bias, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    const int c = i / inner % channels;
    y[i] = weight[c] * x[i] + bias[c];
  }
}

// As layers copy it out of upstream's gpu_util.cuh.
template <typename Dtype>
inline __device__ Dtype caffe_gpu_atomic_add(const Dtype value, Dtype* address);
template <>
inline __device__ float caffe_gpu_atomic_add(const float value, float* address) {
  return atomicAdd(address, value);
}

template <typename Dtype>
__global__ void AffineBackward(const int n, const int inner, const int channels, const Dtype* x,
                               const Dtype* dy, const Dtype* weight, Dtype* dx, Dtype* dweight,
                               Dtype* dbias) {
  CUDA_KERNEL_LOOP(i, n) {
    const int c = i / inner % channels;
    if (dx) dx[i] = weight[c] * dy[i];
    if (dweight) caffe_gpu_atomic_add(dy[i] * x[i], dweight + c);
    if (dbias) caffe_gpu_atomic_add(dy[i], dbias + c);
  }
}

ZOO_FORWARD_GPU(Affine) {
  const int n = bottom[0]->count();
  AffineForward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, bottom[0]->count(2), bottom[0]->shape(1), bottom[0]->gpu_data(), this->blobs_[0]->gpu_data(),
      this->blobs_[1]->gpu_data(), top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

ZOO_BACKWARD_GPU(Affine) {
  const int n = bottom[0]->count();
  Dtype* dx = propagate_down[0] ? bottom[0]->mutable_gpu_diff() : NULL;
  Dtype* dweight = this->param_propagate_down_[0] ? this->blobs_[0]->mutable_gpu_diff() : NULL;
  Dtype* dbias = this->param_propagate_down_[1] ? this->blobs_[1]->mutable_gpu_diff() : NULL;
  AffineBackward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, bottom[0]->count(2), bottom[0]->shape(1), bottom[0]->gpu_data(), top[0]->gpu_diff(),
      this->blobs_[0]->gpu_data(), dx, dweight, dbias);
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(AffineLayer);

// --------------------------------------------------------------------------------------- Positive

ZOO_FORWARD_GPU(Positive) { Forward_cpu(bottom, top); }
ZOO_BACKWARD_GPU(Positive) { Backward_cpu(top, propagate_down, bottom); }

INSTANTIATE_LAYER_GPU_FUNCS(PositiveLayer);

// ----------------------------------------------------------------------------------------- Shared

ZOO_FORWARD_GPU(Shared) {}
ZOO_BACKWARD_GPU(Shared) {}

INSTANTIATE_LAYER_GPU_FUNCS(SharedLayer);

// ---------------------------------------------------------------------------------------- Kernels

ZOO_FORWARD_GPU(Kernels) {
  caffe_gpu_scale(bottom[0]->count(), Dtype(2), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}
ZOO_BACKWARD_GPU(Kernels) {
  if (this->layer_param_.zoo_param().slope()) NOT_IMPLEMENTED;
  caffe_gpu_scale(bottom[0]->count(), Dtype(2), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(KernelsLayer);

// --------------------------------------------------------------------------------------- Counting

ZOO_FORWARD_GPU(Counting) { caffe_gpu_set(bottom[0]->count(), Dtype(++calls_), top[0]->mutable_gpu_data()); }
ZOO_BACKWARD_GPU(Counting) {
  if (propagate_down[0]) NOT_IMPLEMENTED;
}

INSTANTIATE_LAYER_GPU_FUNCS(CountingLayer);

// --------------------------------------------------------------------------------------- Stopping

ZOO_FORWARD_GPU(Stopping) {
  caffe_copy(bottom[0]->count(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}
ZOO_BACKWARD_GPU(Stopping) {}

INSTANTIATE_LAYER_GPU_FUNCS(StoppingLayer);

// --------------------------------------------------------------------------------------- Mirrored

template <typename Dtype>
__global__ void MirroredKernel(const int n, const int channels, const int inner, const Dtype* x,
                               const Dtype* table, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = x[i] * table[i / inner % channels];
  }
}

ZOO_FORWARD_GPU(Mirrored) {
  const int n = bottom[0]->count();
  MirroredKernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, table_.count(), bottom[0]->count(2), bottom[0]->cpu_data(), table_.cpu_data(),
      top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}
ZOO_BACKWARD_GPU(Mirrored) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  MirroredKernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, table_.count(), bottom[0]->count(2), top[0]->cpu_diff(), table_.cpu_data(),
      bottom[0]->mutable_gpu_diff());
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(MirroredLayer);

// -------------------------------------------------------------------------------------- Scheduled

ZOO_FORWARD_GPU(Scheduled) {
  rate_ = this->iter_;
  caffe_gpu_scale(bottom[0]->count(), rate_, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}
ZOO_BACKWARD_GPU(Scheduled) {
  caffe_gpu_scale(top[0]->count(), rate_, top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(ScheduledLayer);

// ---------------------------------------------------------------------------------------- Adding

#define ZOO_ADDING_GPU(name)                                                                         \
  ZOO_FORWARD_GPU(name) {                                                                            \
    caffe_gpu_axpy(bottom[0]->count(), Dtype(1), bottom[0]->gpu_data(), top[0]->mutable_gpu_data()); \
  }                                                                                                  \
  ZOO_BACKWARD_GPU(name) {                                                                           \
    caffe_gpu_axpy(top[0]->count(), Dtype(1), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());    \
  }

ZOO_ADDING_GPU(Adding)
ZOO_ADDING_GPU(AddingNeuron)

INSTANTIATE_LAYER_GPU_FUNCS(AddingLayer);
INSTANTIATE_LAYER_GPU_FUNCS(AddingNeuronLayer);

// ----------------------------------------------------------------------------------------- Sided

ZOO_FORWARD_GPU(Sided) {
  caffe_copy(bottom[0]->count(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
  caffe_gpu_add_scalar(bottom[0]->count(), Dtype(2), top[0]->mutable_gpu_data());
}
ZOO_BACKWARD_GPU(Sided) {
  caffe_gpu_scale(top[0]->count(), Dtype(2), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(SidedLayer);

// ----------------------------------------------------------------------------------------- Early

#define ZOO_EARLY_GPU(name)                                                                     \
  ZOO_FORWARD_GPU(name) {                                                                       \
    const int n = bottom[0]->count();                                                           \
    caffe_copy(n, bottom[0]->gpu_data(), bottom[0]->mutable_gpu_diff());                        \
    caffe_gpu_mul(n, bottom[0]->gpu_data(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data()); \
    caffe_gpu_scal(n, Dtype(0.5), top[0]->mutable_gpu_data());                                  \
  }                                                                                             \
  ZOO_BACKWARD_GPU(name) {                                                                      \
    caffe_gpu_mul(top[0]->count(), top[0]->gpu_diff(), bottom[0]->gpu_diff(),                   \
                  bottom[0]->mutable_gpu_diff());                                               \
  }

ZOO_EARLY_GPU(Early)
INSTANTIATE_LAYER_GPU_FUNCS(EarlyLayer);
ZOO_EARLY_GPU(EarlyNeuron)
INSTANTIATE_LAYER_GPU_FUNCS(EarlyNeuronLayer);

ZOO_FORWARD_GPU(EarlyLoss) {
  const int n = bottom[0]->count();
  caffe_gpu_mul(n, bottom[0]->gpu_data(), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
  caffe_gpu_mul(n, bottom[0]->gpu_data(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
  caffe_gpu_scal(n, Dtype(0.5), top[0]->mutable_gpu_data());
}
ZOO_BACKWARD_GPU(EarlyLoss) {}
INSTANTIATE_LAYER_GPU_FUNCS(EarlyLossLayer);

// --------------------------------------------------------------------------------------- Running

ZOO_FORWARD_GPU(Running) {
  for (int i = 0; i < 2; ++i)
    if (this->blobs_[i]->cpu_data()[0] >= 0)
      caffe_gpu_add_scalar(1, Dtype(1 + i), this->blobs_[i]->mutable_gpu_data());
  caffe_gpu_scale(bottom[0]->count(), Dtype(2), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}
ZOO_BACKWARD_GPU(Running) {
  caffe_gpu_scale(top[0]->count(), Dtype(2), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(RunningLayer);

// --------------------------------------------------------------------------------------- Exposing

ZOO_FORWARD_GPU(Exposing) {
  const int n = bottom[0]->count();
  if (!this->layer_param_.zoo_param().early()) Share(bottom, top);
  caffe_gpu_exp(n, bottom[0]->gpu_data(), kept_.mutable_gpu_data());
  caffe_copy(n, kept_.gpu_data(), top[0]->mutable_gpu_data());
  if (this->layer_param_.zoo_param().memory() == "buffer")
    caffe_copy(n, kept_.gpu_data(), top[1]->mutable_gpu_data());
}

ZOO_BACKWARD_GPU(Exposing) {
  caffe_gpu_mul(bottom[0]->count(), top[0]->gpu_diff(), kept_.gpu_data(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(ExposingLayer);

// ----------------------------------------------------------------------------------------- Halves

ZOO_FORWARD_GPU(Halves) {
  const int columns = top[0]->shape(-1), rows = top[0]->count() / columns;
  const size_t width = columns * sizeof(Dtype), pitch = 2 * width;
  const Dtype* x = bottom[0]->gpu_data();
  CUDA_CHECK(
      cudaMemcpy2DAsync(top[0]->mutable_gpu_data(), width, x, pitch, width, rows, cudaMemcpyDeviceToDevice));
  vector<Dtype> right(rows * columns);
  CUDA_CHECK(cudaMemcpy2D(right.data(), width, x + columns, pitch, width, rows, cudaMemcpyDeviceToHost));
  for (Dtype& value : right) value = -value;
  CUDA_CHECK(cudaMemcpy2D(top[1]->mutable_gpu_data(), width, right.data(), width, width, rows,
                          cudaMemcpyHostToDevice));
}
ZOO_BACKWARD_GPU(Halves) { NOT_IMPLEMENTED; }

INSTANTIATE_LAYER_GPU_FUNCS(HalvesLayer);

}  // namespace caffe
