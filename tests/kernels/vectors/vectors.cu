// Each kernel's first comment line is what tools/cuda/for_nvcc.py must decide about its loop.
#include "caffe_cuda_macro.h"

__device__ inline void asm_free(float) {}

// vector loop (in read, out write)
template <typename Dtype>
__global__ void relu(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    out[i] = in[i] > Dtype(0) ? float(in[i]) : float(in[i]) * 0.5f;
  }
}

extern "C" int vectors_relu(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    relu<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (a return in the loop)
template <typename Dtype>
__global__ void early_return(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    if (in[i] < Dtype(0)) return;
    out[i] = in[i];
  }
}

extern "C" int vectors_early_return(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    early_return<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (a break out of the loop)
template <typename Dtype>
__global__ void broken_off(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    if (in[i] < Dtype(0)) break;
    out[i] = in[i];
  }
}

extern "C" int vectors_broken_off(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    broken_off<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read, out write)
template <typename Dtype>
__global__ void optional(const int count, const Dtype* in, const Dtype* bias, const int has_bias,
                         Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    float value = in[i];
    if (has_bias) value += bias[i];
    out[i] = value;
  }
}

extern "C" int vectors_optional(const void* in, const void* bias, int has_bias, void* out, int count,
                                int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    optional<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<const Dtype*>(bias), has_bias,
        static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read)
template <typename Dtype>
__global__ void conditional_write(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    if (in[i] > Dtype(0)) {
      out[i] = in[i];
    }
  }
}

extern "C" int vectors_conditional_write(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    conditional_write<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read)
template <typename Dtype>
__global__ void skipped(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    if (in[i] < Dtype(0)) continue;
    out[i] = in[i];
  }
}

extern "C" int vectors_skipped(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    skipped<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read, out update)
template <typename Dtype>
__global__ void accumulated(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    out[i] += in[i];
  }
}

extern "C" int vectors_accumulated(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    accumulated<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (2 writes to memory)
template <typename Dtype>
__global__ void two_writes(const int count, const Dtype* in, Dtype* out, Dtype* other) {
  CUDA_KERNEL_LOOP(i, count) {
    out[i] = in[i] * 2;
    other[i] = in[i] + out[i];
  }
}

extern "C" int vectors_two_writes(const void* in, void* out, void* other, int count, int dtype,
                                  void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    two_writes<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out), static_cast<Dtype*>(other));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (memory is read after the write)
template <typename Dtype>
__global__ void read_after_write(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    float value = 0;
    out[i] = in[i] * 2;
    value = in[i];
    if (value > 1e30f) asm_free(value);
  }
}

extern "C" int vectors_read_after_write(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    read_after_write<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read, out write)
template <typename Dtype>
__global__ void per_channel(const int count, const Dtype* in, const Dtype* scale, const int dim,
                            const int channels, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    const int c = (i / dim) % channels;
    out[i] = in[i] * scale[c];
  }
}

extern "C" int vectors_per_channel(const void* in, const void* scale, int dim, int channels, void* out,
                                   int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    per_channel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<const Dtype*>(scale), dim, channels,
        static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (out write)
template <typename Dtype>
__global__ void neighbour(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    out[i] = in[i + 1];
  }
}

extern "C" int vectors_neighbour(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    neighbour<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read)
template <typename Dtype>
__global__ void reversed_write(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    out[count - 1 - i] = in[i];
  }
}

extern "C" int vectors_reversed_write(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    reversed_write<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop ('for' in the loop)
template <typename Dtype>
__global__ void inner_loop(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    float sum = 0;
    for (int k = 0; k < 3; ++k) sum += in[i] * k;
    out[i] = sum;
  }
}

extern "C" int vectors_inner_loop(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    inner_loop<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (in is used other than as in[...])
template <typename Dtype>
__global__ void moved_pointer(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    const Dtype* mine = in + i;
    out[i] = *mine;
  }
}

extern "C" int vectors_moved_pointer(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    moved_pointer<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (a variable from outside of the loop is changed)
template <typename Dtype>
__global__ void changed_index(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    out[i] = in[i];
    i += 0;
  }
}

extern "C" int vectors_changed_index(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    changed_index<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (plain_loops says so)
template <typename Dtype>
__global__ void kept_plain(const int count, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, count) {
    out[i] = in[i];
  }
}

extern "C" int vectors_kept_plain(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    kept_plain<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// plain loop (no kernel loop)
template <typename Dtype>
__global__ void no_loop(const int count, const Dtype* in, Dtype* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] + 1.0f;
}

extern "C" int vectors_no_loop(const void* in, void* out, int count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    no_loop<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}

// vector loop (in read, at read, out write)
template <typename Dtype>
__global__ void mixed_types(const int64_t count, const Dtype* in, const int* at, double* out) {
  CUDA_KERNEL_LOOP(i, count) out[i] = double(in[i]) * at[i];
}

// Template arguments left to deduction, and any grid: the loop alone must see to every element.
extern "C" int vectors_mixed_types(const void* in, const int32_t* at, double* out, int64_t count, int blocks,
                                   int threads, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    if (blocks) {
      mixed_types<<<blocks, threads, 0, CAFFE_STREAM(stream)>>>(count, static_cast<const Dtype*>(in), at,
                                                                out);
    } else {
      mixed_types<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
          count, static_cast<const Dtype*>(in), at, out);
    }
  });
  return CAFFE_LAUNCH_STATUS();
}
