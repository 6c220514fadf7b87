#include "caffe_cuda_macro.h"

__global__ void fill_kernel(const int64_t n, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] += i + 1;
  }
}

__global__ void fill_int_kernel(const int n, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] += i + 1;
  }
}

__global__ void two_kernel(const int64_t rows, const int64_t columns, float* top) {
  CUDA_2D_KERNEL_LOOP(row, rows, column, columns) {
    top[row * columns + column] += row * 1000 + column;
  }
}

// A thread's parameters are its own: what one does to them no other sees.
__global__ void own_parameters_kernel(const int64_t n, float scale, const float* bottom, float* top) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bottom += i;
  top += i;
  scale += i;
  *top = *bottom * scale;
}

// With a thread for each element, as here, `return` means: on to the next.
__global__ void return_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    if (bottom[i] < 0) return;
    top[i] = bottom[i];
  }
}

// As Caffe's ROI pooling does: right where a thread has one index alone, as here.
__global__ void moved_parameters_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    bottom += i;
    top[i] = bottom[0];
  }
}

__global__ void changed_parameters_kernel(const int64_t n, float scale, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    scale += i % 3;
    top[i] = bottom[i] * scale;
  }
}

__global__ void break_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    if (bottom[i] < 0) break;
    top[i] = bottom[i];
  }
}

__global__ void continue_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    if (bottom[i] < 0) continue;
    for (int k = 0; k < 10; ++k) {
      if (k == 2) break;
      top[i] += bottom[i];
    }
  }
}

__global__ void dangling_else_kernel(const int64_t n, const float* bottom, float* top) {
  if (n > 0)
    CUDA_KERNEL_LOOP(i, n)
      if (bottom[i] < 0)
        top[i] = -1;
      else
        top[i] = 1;
}

template <typename Dtype, int kScale = 3, typename Acc = double>
__global__ void default_arguments_kernel(const int64_t n, const Dtype* bottom, Dtype* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] = static_cast<Dtype>(Acc(bottom[i]) * kScale);
  }
}

__global__ void null_kernel(const int64_t n, const float* bottom, const float* bias, float* top,
                            float* again) {
  CUDA_KERNEL_LOOP(i, n) {
    const float value = bottom[i] + (bias ? bias[i] : 0.0f);
    if (top) top[i] = value;
    if (again) again[i] = value;
  }
}

__global__ void in_place_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] = bottom[i] * 2;
  }
}

static int blocks_or(int blocks, int64_t count) { return blocks ? blocks : CAFFE_GET_BLOCKS(count); }

extern "C" int loops_fill(float* top, int64_t count, int blocks, void* stream) {
  fill_kernel<<<blocks_or(blocks, count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_fill_int(float* top, int count, int blocks, void* stream) {
  fill_int_kernel<<<blocks_or(blocks, count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_two(float* top, int64_t rows, int64_t columns, int bx, int by, void* stream) {
  two_kernel<<<dim3(bx, by), dim3(16, 16), 0, CAFFE_STREAM(stream)>>>(rows, columns, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_own_parameters(const float* bottom, float* top, int64_t count, void* stream) {
  own_parameters_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      count, 1.0f, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_return(const float* bottom, float* top, int64_t count, void* stream) {
  return_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                              top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_moved_parameters(const float* bottom, float* top, int64_t count, void* stream) {
  moved_parameters_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_changed_parameters(const float* bottom, float* top, int64_t count, void* stream) {
  changed_parameters_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      count, 1.f, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_break(const float* bottom, float* top, int64_t count, void* stream) {
  break_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                             top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_continue(const float* bottom, float* top, int64_t count, void* stream) {
  continue_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                                top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_dangling_else(const float* bottom, float* top, int64_t count, void* stream) {
  dangling_else_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_default_arguments(const float* bottom, float* top, int64_t count, void* stream) {
  default_arguments_kernel<float>
      <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_null(const float* bottom, const float* bias, float* top, float* again, int64_t count,
                          void* stream) {
  null_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                            bias, top, again);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int loops_in_place(float* top, int64_t count, void* stream) {
  in_place_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top,
                                                                                                top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void blocks_kernel(int* top, int busy) {
  volatile int counted = 0;
  if (blockIdx.x % 97 == 0)
    for (int i = 0; i < busy; ++i) counted = counted + 1;
  atomicAdd(top + blockIdx.x, 1);
}

extern "C" int loops_blocks(int* top, int64_t blocks, int busy, void* stream) {
  blocks_kernel<<<static_cast<int>(blocks), 1, 0, CAFFE_STREAM(stream)>>>(top, busy);
  return CAFFE_LAUNCH_STATUS();
}
