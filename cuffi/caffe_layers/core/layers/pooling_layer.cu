// Pooling on the GPU. In Backward each thread has one element of the bottom, and adds up the windows that
// contain it.

#include "caffe/layers/pooling_layer.hpp"

namespace caffe {

namespace {

// The geometry for the kernels.
struct Pool {
  int height, width, pooled_height, pooled_width, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w;
};

// The window of an element of the top: its rows and columns in the image.
struct Window {
  int plane, top, left, bottom, right, size;  // size: with padding; an average is divided by it
  __device__ Window(const Pool& p, int index) {
    const int pw = index % p.pooled_width, ph = index / p.pooled_width % p.pooled_height;
    plane = index / p.pooled_width / p.pooled_height * p.height * p.width;
    top = ph * p.stride_h - p.pad_h;
    left = pw * p.stride_w - p.pad_w;
    bottom = min(top + p.kernel_h, p.height + p.pad_h);
    right = min(left + p.kernel_w, p.width + p.pad_w);
    size = (bottom - top) * (right - left);
    top = max(top, 0);
    left = max(left, 0);
    bottom = min(bottom, p.height);
    right = min(right, p.width);
  }
};

// The windows that contain an element of the bottom: [first_h, end_h) x [first_w, end_w) in its plane
// of the top.
struct Windows {
  int element, plane, first_h, end_h, first_w, end_w;
  __device__ Windows(const Pool& p, int index) {
    const int w = index % p.width + p.pad_w, h = index / p.width % p.height + p.pad_h;
    element = index % (p.width * p.height);
    plane = index / (p.width * p.height) * p.pooled_height * p.pooled_width;
    first_h = h < p.kernel_h ? 0 : (h - p.kernel_h) / p.stride_h + 1;
    first_w = w < p.kernel_w ? 0 : (w - p.kernel_w) / p.stride_w + 1;
    end_h = min(h / p.stride_h + 1, p.pooled_height);
    end_w = min(w / p.stride_w + 1, p.pooled_width);
  }
};

// Index is int, or Dtype if the second top gets the indices.
template <typename Dtype, typename Index>
__global__ void max_forward(const int n, const Pool pool, const Dtype* x, Dtype* y, Index* found) {
  CUDA_KERNEL_LOOP(i, n) {
    const Window window(pool, i);
    Dtype largest = -FLT_MAX;
    int at = -1;
    for (int h = window.top; h < window.bottom; ++h) {
      for (int w = window.left; w < window.right; ++w) {
        const Dtype value = x[window.plane + h * pool.width + w];
        if (at < 0 || value > largest) {
          largest = value;
          at = h * pool.width + w;
        }
      }
    }
    y[i] = largest;
    found[i] = at;
  }
}

template <typename Dtype, typename Index>
__global__ void max_backward(const int n, const Pool pool, const Dtype* dy, const Index* found, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    const Windows windows(pool, i);
    Dtype sum = 0;
    for (int ph = windows.first_h; ph < windows.end_h; ++ph) {
      for (int pw = windows.first_w; pw < windows.end_w; ++pw) {
        const int at = windows.plane + ph * pool.pooled_width + pw;
        if (found[at] == windows.element) sum += dy[at];
      }
    }
    dx[i] = sum;
  }
}

template <typename Dtype>
__global__ void average_forward(const int n, const Pool pool, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    const Window window(pool, i);
    Dtype sum = 0;
    for (int h = window.top; h < window.bottom; ++h)
      for (int w = window.left; w < window.right; ++w) sum += x[window.plane + h * pool.width + w];
    y[i] = sum / window.size;
  }
}

template <typename Dtype>
__global__ void average_backward(const int n, const Pool pool, const Dtype* dy, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    const Windows windows(pool, i);
    Dtype sum = 0;
    for (int ph = windows.first_h; ph < windows.end_h; ++ph) {
      for (int pw = windows.first_w; pw < windows.end_w; ++pw) {
        const int at = windows.plane + ph * pool.pooled_width + pw;
        sum += dy[at] / Window(pool, at).size;
      }
    }
    dx[i] = sum;
  }
}

// Training: draws an element with a probability proportional to its value. `drawn` holds a uniform random
// number, and gets the element's place in the bottom.
template <typename Dtype>
__global__ void stochastic_forward(const int n, const Pool pool, const Dtype* x, Dtype* drawn, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    const Window window(pool, i);
    Dtype sum = 0;
    for (int h = window.top; h < window.bottom; ++h)
      for (int w = window.left; w < window.right; ++w) sum += x[window.plane + h * pool.width + w];
    const Dtype threshold = drawn[i] * sum;
    Dtype passed = 0;
    int at = window.plane + window.top * pool.width + window.left;
    bool found = false;
    for (int h = window.top; h < window.bottom && !found; ++h) {
      for (int w = window.left; w < window.right && !found; ++w) {
        at = window.plane + h * pool.width + w;
        passed += x[at];
        found = passed >= threshold;
      }
    }
    drawn[i] = at;
    y[i] = x[at];
  }
}

// Testing: the mean of the elements, weighted by their own values.
template <typename Dtype>
__global__ void stochastic_test(const int n, const Pool pool, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    const Window window(pool, i);
    Dtype sum = 0, squares = 0;
    for (int h = window.top; h < window.bottom; ++h) {
      for (int w = window.left; w < window.right; ++w) {
        const Dtype value = x[window.plane + h * pool.width + w];
        sum += value;
        squares += value * value;
      }
    }
    y[i] = sum > 0 ? squares / sum : Dtype(0);
  }
}

template <typename Dtype>
__global__ void stochastic_backward(const int n, const Pool pool, const Dtype* dy, const Dtype* drawn,
                                    Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    const Windows windows(pool, i);
    Dtype sum = 0;
    for (int ph = windows.first_h; ph < windows.end_h; ++ph) {
      for (int pw = windows.first_w; pw < windows.end_w; ++pw) {
        const int at = windows.plane + ph * pool.pooled_width + pw;
        if (i == static_cast<int>(drawn[at])) sum += dy[at];
      }
    }
    dx[i] = sum;
  }
}

}  // namespace

template <typename Dtype>
void PoolingLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Pool pool{height_,   width_, pooled_height_, pooled_width_, kernel_h_,
                  kernel_w_, pad_h_, pad_w_,         stride_h_,     stride_w_};
  const int n = top[0]->count();
  const Dtype* const x = bottom[0]->gpu_data();
  Dtype* const y = top[0]->mutable_gpu_data();
  switch (this->layer_param_.pooling_param().pool()) {
    case PoolingParameter_PoolMethod_MAX:
      if (top.size() > 1) {
        max_forward<Dtype>
            <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, x, y, top[1]->mutable_gpu_data());
      } else {
        max_forward<Dtype>
            <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, x, y, max_idx_.mutable_gpu_data());
      }
      break;
    case PoolingParameter_PoolMethod_AVE:
      average_forward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, x, y);
      break;
    case PoolingParameter_PoolMethod_STOCHASTIC:
      if (this->phase_ == TRAIN) {
        Dtype* const drawn = rand_idx_.mutable_gpu_data();
        caffe_gpu_rng_uniform(n, Dtype(0), Dtype(1), drawn);
        stochastic_forward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, x, drawn, y);
      } else {
        stochastic_test<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, x, y);
      }
      break;
  }
}

template <typename Dtype>
void PoolingLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const Pool pool{height_,   width_, pooled_height_, pooled_width_, kernel_h_,
                  kernel_w_, pad_h_, pad_w_,         stride_h_,     stride_w_};
  const int n = bottom[0]->count();
  const Dtype* const dy = top[0]->gpu_diff();
  Dtype* const dx = bottom[0]->mutable_gpu_diff();
  switch (this->layer_param_.pooling_param().pool()) {
    case PoolingParameter_PoolMethod_MAX:
      if (top.size() > 1) {
        max_backward<Dtype>
            <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, dy, top[1]->gpu_data(), dx);
      } else {
        max_backward<Dtype>
            <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, dy, max_idx_.gpu_data(), dx);
      }
      break;
    case PoolingParameter_PoolMethod_AVE:
      average_backward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, dy, dx);
      break;
    case PoolingParameter_PoolMethod_STOCHASTIC:
      stochastic_backward<Dtype>
          <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, pool, dy, rand_idx_.gpu_data(), dx);
      break;
  }
}

INSTANTIATE_LAYER_GPU_FUNCS(PoolingLayer);

}  // namespace caffe
