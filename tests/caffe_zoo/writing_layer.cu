#include <vector>

#include "caffe/layers/writing_layer.hpp"
#include "caffe/util/gpu_util.cuh"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
__global__ void WritingClip(const int n, Dtype* x) {
  CUDA_KERNEL_LOOP(i, n) {
    x[i] = x[i] > 1 ? Dtype(1) : x[i] < -1 ? Dtype(-1) : x[i];
  }
}

template <typename Dtype>
__global__ void WritingCount(const int n, Dtype* w) {
  CUDA_KERNEL_LOOP(i, n) {
    w[i] += 1;
  }
}

template <typename Dtype>
__global__ void WritingForward(const int n, const Dtype* w, const Dtype* a, const Dtype* b, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = w[0] * a[i] * b[i] * b[i];
  }
}

template <typename Dtype>
__global__ void WritingWeight(const int n, const Dtype* w, const Dtype* dy, const Dtype* y, Dtype* dw) {
  CUDA_KERNEL_LOOP(i, n) {
    caffe_gpu_atomic_add(dy[i] * y[i] / w[0], dw);
  }
}

template <typename Dtype>
__global__ void WritingFirst(const int n, const Dtype* w, const Dtype* dy, const Dtype* b, Dtype* da) {
  CUDA_KERNEL_LOOP(i, n) {
    da[i] = dy[i] * w[0] * b[i] * b[i];
  }
}

template <typename Dtype>
__global__ void WritingSecond(const int n, const Dtype* w, const Dtype* dy, const Dtype* y, const Dtype* a,
                              const Dtype* b, Dtype* db) {
  CUDA_KERNEL_LOOP(i, n) {
    db[i] = 2 * dy[i] * (y == a ? y[i] / b[i] : w[0] * a[i] * b[i]);
  }
}

template <typename Dtype>
void WritingLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const string what = this->layer_param_.zoo_param().memory();
  const int n = bottom[0]->count();
  if (what == "whole") {
    WritingClip<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, bottom[0]->mutable_gpu_data());
    WritingClip<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, bottom[1]->mutable_gpu_data());
  } else if (what == "part") {
    const int half = n / 2;
    WritingClip<Dtype>
        <<<CAFFE_GET_BLOCKS(half), CAFFE_CUDA_NUM_THREADS>>>(half, bottom[1]->mutable_gpu_data());
  } else if (what == "weight") {
    WritingClip<Dtype><<<1, 1>>>(1, this->blobs_[0]->mutable_gpu_data());
  } else if (what == "running") {
    WritingCount<Dtype><<<1, 1>>>(1, this->blobs_[0]->mutable_gpu_data());
  } else {
    Write(bottom);
  }
  WritingForward<Dtype>
      <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, this->blobs_[0]->gpu_data(), bottom[0]->gpu_data(),
                                                        bottom[1]->gpu_data(), top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void WritingLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  const int n = bottom[0]->count();
  const Dtype* w = this->blobs_[0]->gpu_data();
  const Dtype* dy = top[0]->gpu_diff();
  const Dtype* y = top[0]->gpu_data();
  const Dtype* a = bottom[0]->gpu_data();
  const Dtype* b = bottom[1]->gpu_data();
  if (this->param_propagate_down_[0])
    WritingWeight<Dtype>
        <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, w, dy, y, this->blobs_[0]->mutable_gpu_diff());
  if (propagate_down[1])
    WritingSecond<Dtype>
        <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, w, dy, y, a, b, bottom[1]->mutable_gpu_diff());
  if (propagate_down[0])
    WritingFirst<Dtype>
        <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, w, dy, b, bottom[0]->mutable_gpu_diff());
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(WritingLayer);

}  // namespace caffe
