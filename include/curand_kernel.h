// cuRAND's functions for kernels, on all backends. The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// curandStatePhilox4_32_10_t gives cuRAND's own numbers: the same bits and uniform numbers, and normal numbers up to
// rounding. curandState is a XORWOW generator in cuRAND. Here it is Philox, too, so its numbers differ from cuRAND's,
// but have the same distribution, and are the same on the host and on a GPU. A state has 64 bytes, and curand_init
// takes the time of one or two numbers.
#ifndef CAFFE_CURAND_KERNEL_H_
#define CAFFE_CURAND_KERNEL_H_

#include <cuda_runtime.h>
#include <math.h>

#ifdef CAFFE_HOST_BACKEND  // a real number becomes an integer as on a GPU
#define CAFFE_CURAND_WHOLE ::cuda_host::UInt64
#else
#define CAFFE_CURAND_WHOLE unsigned long long
#endif

struct curandStatePhilox4_32_10 {
  uint4 counter, output;
  uint2 key;
  unsigned int used;  // how many numbers of output were used
  float spare;        // curand_normal makes two at a time
  double spare_double;
  bool has_spare, has_spare_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
struct curandStateXORWOW : curandStatePhilox4_32_10 {};
typedef curandStateXORWOW curandStateXORWOW_t, curandState, curandState_t;
typedef curandStateXORWOW curandStateMRG32k3a, curandStateMRG32k3a_t;

namespace caffe_curand {

constexpr float TINY = 2.3283064365386963e-10f;         // 2^-32
constexpr double TINY_DOUBLE = 1.1102230246251565e-16;  // 2^-53
constexpr float TURN = 6.2831853071795865f;
constexpr double TURN_DOUBLE = 6.283185307179586477;

__device__ inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * counter.x, b = 0xCD9E8D57ull * counter.z;
    counter =
        make_uint4(static_cast<unsigned int>(b >> 32) ^ counter.y ^ key.x, static_cast<unsigned int>(b),
                   static_cast<unsigned int>(a >> 32) ^ counter.w ^ key.y, static_cast<unsigned int>(a));
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

// Add 64 bits to a counter of 128 bits.
__device__ inline void advance(uint4* counter, unsigned long long n) {
  const unsigned long long low = (static_cast<unsigned long long>(counter->y) << 32) | counter->x,
                           sum = low + n;
  counter->x = static_cast<unsigned int>(sum);
  counter->y = static_cast<unsigned int>(sum >> 32);
  if (sum < low && ++counter->z == 0) ++counter->w;
}

// (0, 1]
__device__ inline float uniform(unsigned int bits) { return bits * TINY + TINY / 2; }
__device__ inline double uniform_double(unsigned int low, unsigned int high) {
  const unsigned long long bits = low ^ (static_cast<unsigned long long>(high) << 21);
  return bits * TINY_DOUBLE + TINY_DOUBLE / 2;
}

// Two independent normal numbers from two uniform ones (Box and Muller, 1958).
__device__ inline float2 normal(unsigned int a, unsigned int b) {
  const float length = sqrtf(-2.0f * logf(uniform(a))), angle = TURN * uniform(b);
  return make_float2(length * sinf(angle), length * cosf(angle));
}
__device__ inline double2 normal_double(uint4 bits) {
  const double length = sqrt(-2.0 * log(uniform_double(bits.x, bits.y)));
  const double angle = TURN_DOUBLE * uniform_double(bits.z, bits.w);
  return make_double2(length * sin(angle), length * cos(angle));
}

}  // namespace caffe_curand

// Skip n numbers of the sequence.
__device__ inline void skipahead(CAFFE_CURAND_WHOLE n, curandStatePhilox4_32_10* state) {
  state->used += static_cast<unsigned int>(n & 3);
  caffe_curand::advance(&state->counter, n / 4 + state->used / 4);
  state->used &= 3;
  state->output = caffe_curand::philox(state->counter, state->key);
}

// Skip n sequences.
__device__ inline void skipahead_sequence(CAFFE_CURAND_WHOLE n, curandStatePhilox4_32_10* state) {
  const unsigned int low = static_cast<unsigned int>(n);
  state->counter.z += low;
  state->counter.w += static_cast<unsigned int>(n >> 32) + (state->counter.z < low);
  state->output = caffe_curand::philox(state->counter, state->key);
}

__device__ inline void curand_init(CAFFE_CURAND_WHOLE seed, CAFFE_CURAND_WHOLE sequence,
                                   CAFFE_CURAND_WHOLE offset, curandStatePhilox4_32_10* state) {
  state->counter = make_uint4(0, 0, 0, 0);
  state->key = make_uint2(static_cast<unsigned int>(seed), static_cast<unsigned int>(seed >> 32));
  state->used = 0;
  state->has_spare = state->has_spare_double = false;
  skipahead_sequence(sequence, state);
  skipahead(offset, state);
}

__device__ inline unsigned int curand(curandStatePhilox4_32_10* state) {
  const uint4 output = state->output;
  const unsigned int used = state->used++;
  if (used == 3) {
    state->used = 0;
    caffe_curand::advance(&state->counter, 1);
    state->output = caffe_curand::philox(state->counter, state->key);
  }
  return used == 0 ? output.x : used == 1 ? output.y : used == 2 ? output.z : output.w;
}

__device__ inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned int x = curand(state), y = curand(state), z = curand(state);
  return make_uint4(x, y, z, curand(state));
}

__device__ inline float curand_uniform(curandStatePhilox4_32_10* state) {
  return caffe_curand::uniform(curand(state));
}

__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return make_float4(caffe_curand::uniform(bits.x), caffe_curand::uniform(bits.y),
                     caffe_curand::uniform(bits.z), caffe_curand::uniform(bits.w));
}

// From one number of 32 bits, as in cuRAND. A curandState uses two.
__device__ inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
  return curand(state) * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}
__device__ inline double curand_uniform_double(curandStateXORWOW* state) {
  const unsigned int low = curand(state);
  return caffe_curand::uniform_double(low, curand(state));
}

__device__ inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return make_double2(caffe_curand::uniform_double(bits.x, bits.y),
                      caffe_curand::uniform_double(bits.z, bits.w));
}

__device__ inline float2 curand_normal2(curandStatePhilox4_32_10* state) {
  const unsigned int first = curand(state);
  return caffe_curand::normal(first, curand(state));
}

__device__ inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const float2 a = curand_normal2(state), b = curand_normal2(state);
  return make_float4(a.x, a.y, b.x, b.y);
}

__device__ inline double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  return caffe_curand::normal_double(curand4(state));
}

__device__ inline float curand_normal(curandStatePhilox4_32_10* state) {
  state->has_spare = !state->has_spare;
  if (!state->has_spare) return state->spare;
  const float2 two = curand_normal2(state);
  state->spare = two.y;
  return two.x;
}

__device__ inline double curand_normal_double(curandStatePhilox4_32_10* state) {
  state->has_spare_double = !state->has_spare_double;
  if (!state->has_spare_double) return state->spare_double;
  const double2 two = curand_normal2_double(state);
  state->spare_double = two.y;
  return two.x;
}

__device__ inline float curand_log_normal(curandStatePhilox4_32_10* state, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(state));
}

__device__ inline double curand_log_normal_double(curandStatePhilox4_32_10* state, double mean,
                                                  double deviation) {
  return exp(mean + deviation * curand_normal_double(state));
}

#undef CAFFE_CURAND_WHOLE

#endif  // CAFFE_CURAND_KERNEL_H_
