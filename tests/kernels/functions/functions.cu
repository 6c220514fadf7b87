#include "caffe_cuda_macro.h"

#define IS_LIKE(vector, size, alignment) \
  static_assert(sizeof(vector) == size && alignof(vector) == alignment, "as on a GPU");
IS_LIKE(char1, 1, 1)
IS_LIKE(uchar2, 2, 2)
IS_LIKE(char3, 3, 1)
IS_LIKE(uchar4, 4, 4)
IS_LIKE(short2, 4, 4)
IS_LIKE(ushort3, 6, 2)
IS_LIKE(short4, 8, 8)
IS_LIKE(int2, 8, 8)
IS_LIKE(uint3, 12, 4)
IS_LIKE(uint4, 16, 16)
IS_LIKE(longlong1, 8, 8)
IS_LIKE(ulonglong2, 16, 16)
IS_LIKE(float1, 4, 4)
IS_LIKE(float2, 8, 8)
IS_LIKE(float3, 12, 4)
IS_LIKE(float4, 16, 16)
IS_LIKE(double2, 16, 16)
IS_LIKE(double3, 24, 8)

#define UNARY(X) \
  X(0, rcbrt)    \
  X(1, sinpi)    \
  X(2, cospi)    \
  X(3, erfcinv)  \
  X(4, erfinv) X(5, normcdf) X(6, normcdfinv) X(7, erfcx) X(8, cyl_bessel_i0) X(9, cyl_bessel_i1)
#define IN_DOUBLE(k, name) \
  case k:                  \
    y[i] = name(x[i]);     \
    break;
#define IN_FLOAT(k, name) \
  case k:                 \
    y[i] = name##f(x[i]); \
    break;

// Four cases: an operation in each of the modes.
#define MODES(k, f, ...)          \
  case 4 * k:                     \
    top[i] = f##_rn(__VA_ARGS__); \
    break;                        \
  case 4 * k + 1:                 \
    top[i] = f##_rz(__VA_ARGS__); \
    break;                        \
  case 4 * k + 2:                 \
    top[i] = f##_rd(__VA_ARGS__); \
    break;                        \
  case 4 * k + 3:                 \
    top[i] = f##_ru(__VA_ARGS__); \
    break;
#define INTEGERS(real)           \
  MODES(0, __##real##2int, x[i]) \
  MODES(1, __##real##2uint, x[i]) MODES(2, __##real##2ll, x[i]) MODES(3, __##real##2ull, x[i])

__global__ void unary_float(const int64_t n, int which, const float* x, float* y) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) { UNARY(IN_FLOAT) }
  }
}

__global__ void unary_double(const int64_t n, int which, const double* x, double* y) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) { UNARY(IN_DOUBLE) }
  }
}

// Of each four numbers ten results.
__global__ void norms(const int64_t n, const double* all, double* tops) {
  CUDA_KERNEL_LOOP(i, n) {
    const double* x = all + 4 * i;
    double* top = tops + 10 * i;
    top[0] = rhypot(x[0], x[1]);
    top[1] = norm3d(x[0], x[1], x[2]);
    top[2] = norm4d(x[0], x[1], x[2], x[3]);
    top[3] = rnorm3d(x[0], x[1], x[2]);
    top[4] = rnorm4d(x[0], x[1], x[2], x[3]);
    sincospi(x[0], top + 5, top + 6);
    float s, c;
    sincospif(float(x[0]), &s, &c);
    top[7] = s, top[8] = c;
    top[9] = fdividef(float(x[0]), float(x[1]));
  }
}

__global__ void rounded_float(const int64_t n, int which, const float* x, const float* y, const float* z,
                              float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) {
      MODES(0, __fadd, x[i], y[i])
      MODES(1, __fsub, x[i], y[i])
      MODES(2, __fmul, x[i], y[i])
      MODES(3, __fdiv, x[i], y[i])
      MODES(4, __fmaf, x[i], y[i], z[i])
      MODES(5, __frcp, x[i])
      MODES(6, __fsqrt, x[i])
    }
  }
}

__global__ void rounded_double(const int64_t n, int which, const double* x, const double* y, const double* z,
                               double* top) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) {
      MODES(0, __dadd, x[i], y[i])
      MODES(1, __dsub, x[i], y[i])
      MODES(2, __dmul, x[i], y[i])
      MODES(3, __ddiv, x[i], y[i])
      MODES(4, __fma, x[i], y[i], z[i])
      MODES(5, __drcp, x[i])
      MODES(6, __dsqrt, x[i])
      MODES(7, __double2float, x[i])
    }
  }
}

__global__ void integer_of_float(const int64_t n, int which, const float* x, int64_t* top) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) { INTEGERS(float) }
  }
}

__global__ void integer_of_double(const int64_t n, int which, const double* x, int64_t* top) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) { INTEGERS(double) }
  }
}

__global__ void real_of_integer(const int64_t n, int which, const int64_t* x, double* top) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (which) {
      MODES(0, __int2float, int(x[i]))
      MODES(1, __uint2float, unsigned(x[i]))
      MODES(2, __ll2float, (long long)(x[i]))
      MODES(3, __ull2float, (unsigned long long)(x[i]))
      MODES(4, __ll2double, (long long)(x[i]))
      MODES(5, __ull2double, (unsigned long long)(x[i]))
    }
  }
}

__global__ void bits(const int64_t n, int which, const int64_t* xs, const int64_t* ys, const int64_t* zs,
                     int64_t* tops) {
  CUDA_KERNEL_LOOP(i, n) {
    const int64_t x = xs[i], y = ys[i], z = zs[i];
    const int a = int(x), b = int(y);
    const unsigned int ua = unsigned(x), ub = unsigned(y), uc = unsigned(z);
    int64_t& top = tops[i];
    switch (which) {
      case 0:
        top = __brev(ua);
        break;
      case 1:
        top = int64_t(__brevll((unsigned long long)(x)));
        break;
      case 2:
        top = __byte_perm(ua, ub, uc);
        break;
      case 3:
        top = __mulhi(a, b);
        break;
      case 4:
        top = __umulhi(ua, ub);
        break;
      case 5:
        top = __mul64hi((long long)(x), (long long)(y));
        break;
      case 6:
        top = int64_t(__umul64hi((unsigned long long)(x), (unsigned long long)(y)));
        break;
      case 7:
        top = __mul24(a, b);
        break;
      case 8:
        top = __umul24(ua, ub);
        break;
      case 9:
        top = __sad(a, b, uc);
        break;
      case 10:
        top = __usad(ua, ub, uc);
        break;
      case 11:
        top = __hadd(a, b);
        break;
      case 12:
        top = __rhadd(a, b);
        break;
      case 13:
        top = __uhadd(ua, ub);
        break;
      case 14:
        top = __urhadd(ua, ub);
        break;
      case 15:
        top = __funnelshift_l(ua, ub, uc);
        break;
      case 16:
        top = __funnelshift_r(ua, ub, uc);
        break;
      case 17:
        top = __funnelshift_lc(ua, ub, uc);
        break;
      case 18:
        top = __funnelshift_rc(ua, ub, uc);
        break;
      case 19:
        top = __ffsll((long long)(x));
        break;
      case 20:
        top = __double_as_longlong(__hiloint2double(a, b));
        break;
      case 21:
        top = __double2hiint(__longlong_as_double(x)) + int64_t(__double2loint(__longlong_as_double(y)));
        break;
      case 22:
        top = llmax(x, y) - llmin(x, z);
        break;
      case 23:
        top = int64_t(umax(ua, ub)) - umin(ua, uc);
        break;
      case 24:
        top = __ldcg(xs + i) / 2 + __ldcs(ys + i) / 2;
        break;
    }
  }
}

#define CALL(kernel, ...)                                                                                   \
  kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, __VA_ARGS__); \
  return CAFFE_LAUNCH_STATUS();

extern "C" int functions_unary_float(int which, const float* x, float* y, int64_t count, void* stream) {
  CALL(unary_float, which, x, y)
}

extern "C" int functions_unary_double(int which, const double* x, double* y, int64_t count, void* stream) {
  CALL(unary_double, which, x, y)
}

extern "C" int functions_norms(const double* x, double* top, int64_t count, void* stream) {
  CALL(norms, x, top)
}

extern "C" int functions_rounded_float(int which, const float* x, const float* y, const float* z, float* top,
                                       int64_t count, void* stream) {
  CALL(rounded_float, which, x, y, z, top)
}

extern "C" int functions_rounded_double(int which, const double* x, const double* y, const double* z,
                                        double* top, int64_t count, void* stream) {
  CALL(rounded_double, which, x, y, z, top)
}

extern "C" int functions_integer_of_float(int which, const float* x, int64_t* y, int64_t count,
                                          void* stream) {
  CALL(integer_of_float, which, x, y)
}

extern "C" int functions_integer_of_double(int which, const double* x, int64_t* y, int64_t count,
                                           void* stream) {
  CALL(integer_of_double, which, x, y)
}

extern "C" int functions_real_of_integer(int which, const int64_t* x, double* y, int64_t count,
                                         void* stream) {
  CALL(real_of_integer, which, x, y)
}

extern "C" int functions_bits(int which, const int64_t* x, const int64_t* y, const int64_t* z, int64_t* top,
                              int64_t count, void* stream) {
  CALL(bits, which, x, y, z, top)
}
