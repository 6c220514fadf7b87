// Runs a launcher that is data: steps made from the PTX of its C++ (cuffi/loading/ptx.py).
//
// NVRTC compiles a launcher for the GPU together with its kernels. So its expressions, the file's macros and constants,
// the layout of structs and the conversions of arguments are those of the compiler. No GPU runs it: its PTX computes the
// caffe_launch, from the call's words, and is run here. A step has the number of its operation, and those of registers.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "caffe_half.h"
#include "caffe_launch.h"

namespace caffe {
namespace steps {

struct Step {
  uint16_t op, to, a, b, c;  // of a jump, b is a step; of a `put`, a place in the launch, in words of 4 bytes
};

template <typename T>
T as(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
template <typename T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(value));
  return bits;
}

// As PTX: towards the nearest value that there is, and 0 for what is no number.
template <typename To, typename From>
To rounded(From value) {
  if (value != value) return 0;
  const From most = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (value >= most) return std::numeric_limits<To>::max();
  if (value <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

template <typename T>
uint64_t shifted_right(uint64_t a, uint64_t b) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned by = static_cast<uint32_t>(b);
  const T value = as<T>(a);
  if (by < kBits) return bits_of<T>(static_cast<T>(value >> by));
  return bits_of<T>(value < T(0) ? T(-1) : T(0));
}

template <typename T>
bool divided(uint64_t a, uint64_t b, bool remainder, uint64_t* to) {
  const T x = as<T>(a), y = as<T>(b);
  if (y == 0) return false;
  if (std::is_signed<T>::value && y == static_cast<T>(-1))  // the least number has no opposite
    *to = bits_of<T>(remainder ? T(0) : static_cast<T>(0 - a));
  else
    *to = bits_of<T>(static_cast<T>(remainder ? x % y : x / y));
  return true;
}

template <typename T>
uint64_t half_of_product(uint64_t a, uint64_t b) {
  using Wide = std::conditional_t<std::is_signed<T>::value, __int128, unsigned __int128>;
  return bits_of<T>(static_cast<T>(static_cast<Wide>(as<T>(a)) * as<T>(b) >> 8 * sizeof(T)));
}

// The first one is the upper half.
template <typename Format>
uint64_t two_halves(uint64_t a, uint64_t b) {
  return uint64_t{Format::encode(as<float>(a))} << 16 | Format::encode(as<float>(b));
}

// clang-format off
// X(name, PTX, statement): A, B, C are the operands' bits, TO the result's.
#define CAFFE_STEPS_OF_INTEGER(X, t, T) \
  X(add_##t, "add." #t, TO = bits_of<T>(static_cast<T>(A + B))) \
  X(sub_##t, "sub." #t, TO = bits_of<T>(static_cast<T>(A - B))) \
  X(mul_lo_##t, "mul.lo." #t, TO = bits_of<T>(static_cast<T>(A * B))) \
  X(mad_lo_##t, "mad.lo." #t, TO = bits_of<T>(static_cast<T>(A * B + C))) \
  X(mul_hi_##t, "mul.hi." #t, TO = half_of_product<T>(A, B)) \
  X(div_##t, "div." #t, if (!divided<T>(A, B, false, &TO)) return "it divides by 0") \
  X(rem_##t, "rem." #t, if (!divided<T>(A, B, true, &TO)) return "it divides by 0") \
  X(neg_##t, "neg." #t, TO = bits_of<T>(static_cast<T>(0 - A))) \
  X(abs_##t, "abs." #t, TO = bits_of<T>(static_cast<T>(as<T>(A) < T(0) ? 0 - A : A))) \
  X(min_##t, "min." #t, TO = bits_of<T>(std::min(as<T>(A), as<T>(B)))) \
  X(max_##t, "max." #t, TO = bits_of<T>(std::max(as<T>(A), as<T>(B)))) \
  X(shr_##t, "shr." #t, TO = shifted_right<T>(A, B)) \
  X(f32_of_##t, "cvt.rn.f32." #t, TO = bits_of<float>(static_cast<float>(as<T>(A)))) \
  X(f64_of_##t, "cvt.rn.f64." #t, TO = bits_of<double>(static_cast<double>(as<T>(A)))) \
  CAFFE_STEPS_OF_COMPARISON(X, t, T) \
  X(ne_##t, "setp.ne." #t, TO = as<T>(A) != as<T>(B)) \
  CAFFE_STEPS_OF_ROUNDING(X, rzi, trunc, t, T) \
  CAFFE_STEPS_OF_ROUNDING(X, rni, nearbyint, t, T) \
  CAFFE_STEPS_OF_ROUNDING(X, rmi, floor, t, T) \
  CAFFE_STEPS_OF_ROUNDING(X, rpi, ceil, t, T) \
  X(s8_of_##t, "cvt.s8." #t, TO = bits_of<int8_t>(static_cast<int8_t>(A))) \
  X(u8_of_##t, "cvt.u8." #t, TO = static_cast<uint8_t>(A)) \
  X(s16_of_##t, "cvt.s16." #t, TO = bits_of<int16_t>(static_cast<int16_t>(as<T>(A)))) \
  X(u16_of_##t, "cvt.u16." #t, TO = bits_of<uint16_t>(static_cast<uint16_t>(as<T>(A)))) \
  X(s32_of_##t, "cvt.s32." #t, TO = bits_of<int32_t>(static_cast<int32_t>(as<T>(A)))) \
  X(u32_of_##t, "cvt.u32." #t, TO = bits_of<uint32_t>(static_cast<uint32_t>(as<T>(A)))) \
  X(s64_of_##t, "cvt.s64." #t, TO = bits_of<int64_t>(static_cast<int64_t>(as<T>(A)))) \
  X(u64_of_##t, "cvt.u64." #t, TO = static_cast<uint64_t>(as<T>(A)))
#define CAFFE_STEPS_OF_ROUNDING(X, how, function, t, T) \
  X(how##_##t##_f32, "cvt." #how "." #t ".f32", TO = bits_of<T>(rounded<T>(std::function(as<float>(A))))) \
  X(how##_##t##_f64, "cvt." #how "." #t ".f64", TO = bits_of<T>(rounded<T>(std::function(as<double>(A)))))
#define CAFFE_STEPS_OF_COMPARISON(X, t, T) \
  X(eq_##t, "setp.eq." #t, TO = as<T>(A) == as<T>(B)) \
  X(lt_##t, "setp.lt." #t, TO = as<T>(A) < as<T>(B)) \
  X(le_##t, "setp.le." #t, TO = as<T>(A) <= as<T>(B)) \
  X(gt_##t, "setp.gt." #t, TO = as<T>(A) > as<T>(B)) \
  X(ge_##t, "setp.ge." #t, TO = as<T>(A) >= as<T>(B))
// The host's compiler rounds a product before it adds to it, so `fma` does.
#define CAFFE_STEPS_OF_REAL(X, t, T) \
  X(add_##t, "add." #t, TO = bits_of<T>(as<T>(A) + as<T>(B))) \
  X(sub_##t, "sub." #t, TO = bits_of<T>(as<T>(A) - as<T>(B))) \
  X(mul_##t, "mul." #t, TO = bits_of<T>(as<T>(A) * as<T>(B))) \
  X(div_##t, "div." #t, TO = bits_of<T>(as<T>(A) / as<T>(B))) \
  X(fma_##t, "fma." #t, const volatile T product = as<T>(A) * as<T>(B); TO = bits_of<T>(product + as<T>(C))) \
  X(neg_##t, "neg." #t, TO = bits_of<T>(-as<T>(A))) \
  X(abs_##t, "abs." #t, TO = bits_of<T>(std::fabs(as<T>(A)))) \
  X(min_##t, "min." #t, TO = bits_of<T>(std::fmin(as<T>(A), as<T>(B)))) \
  X(max_##t, "max." #t, TO = bits_of<T>(std::fmax(as<T>(A), as<T>(B)))) \
  X(sqrt_##t, "sqrt." #t, TO = bits_of<T>(std::sqrt(as<T>(A)))) \
  X(rzi_##t, "cvt.rzi." #t "." #t, TO = bits_of<T>(std::trunc(as<T>(A)))) \
  X(rni_##t, "cvt.rni." #t "." #t, TO = bits_of<T>(std::nearbyint(as<T>(A)))) \
  X(rmi_##t, "cvt.rmi." #t "." #t, TO = bits_of<T>(std::floor(as<T>(A)))) \
  X(rpi_##t, "cvt.rpi." #t "." #t, TO = bits_of<T>(std::ceil(as<T>(A)))) \
  CAFFE_STEPS_OF_COMPARISON(X, t, T) \
  X(ne_##t, "setp.ne." #t, TO = as<T>(A) < as<T>(B) || as<T>(A) > as<T>(B)) \
  X(equ_##t, "setp.equ." #t, TO = !(as<T>(A) != as<T>(B)) || as<T>(A) != as<T>(A) || as<T>(B) != as<T>(B)) \
  X(neu_##t, "setp.neu." #t, TO = as<T>(A) != as<T>(B)) \
  X(ltu_##t, "setp.ltu." #t, TO = !(as<T>(A) >= as<T>(B))) \
  X(leu_##t, "setp.leu." #t, TO = !(as<T>(A) > as<T>(B))) \
  X(gtu_##t, "setp.gtu." #t, TO = !(as<T>(A) <= as<T>(B))) \
  X(geu_##t, "setp.geu." #t, TO = !(as<T>(A) < as<T>(B))) \
  X(nan_##t, "setp.nan." #t, TO = as<T>(A) != as<T>(A) || as<T>(B) != as<T>(B)) \
  X(num_##t, "setp.num." #t, TO = as<T>(A) == as<T>(A) && as<T>(B) == as<T>(B))
#define CAFFE_STEPS_OF_BITS(X, t, T) \
  X(and_##t, "and." #t, TO = A & B) \
  X(or_##t, "or." #t, TO = A | B) \
  X(xor_##t, "xor." #t, TO = A ^ B) \
  X(not_##t, "not." #t, TO = static_cast<T>(~A)) \
  X(shl_##t, "shl." #t, TO = static_cast<uint32_t>(B) < 8 * sizeof(T) ? static_cast<T>(A << (B & 63)) : 0)
#define CAFFE_STEPS_OF_MEMORY(X, t, T) \
  X(ld_##t, "ld." #t, if (!load<T>(A + B, &TO)) return kAstray) \
  X(st_##t, "st." #t, if (!store<T>(A + B, C)) return kAstray)
#define CAFFE_STEPS(X) \
  CAFFE_STEPS_OF_INTEGER(X, s8, int8_t) \
  CAFFE_STEPS_OF_INTEGER(X, u8, uint8_t) \
  CAFFE_STEPS_OF_INTEGER(X, s16, int16_t) \
  CAFFE_STEPS_OF_INTEGER(X, u16, uint16_t) \
  CAFFE_STEPS_OF_INTEGER(X, s32, int32_t) \
  CAFFE_STEPS_OF_INTEGER(X, u32, uint32_t) \
  CAFFE_STEPS_OF_INTEGER(X, s64, int64_t) \
  CAFFE_STEPS_OF_INTEGER(X, u64, uint64_t) \
  CAFFE_STEPS_OF_REAL(X, f32, float) \
  CAFFE_STEPS_OF_REAL(X, f64, double) \
  CAFFE_STEPS_OF_BITS(X, b16, uint16_t) \
  CAFFE_STEPS_OF_BITS(X, b32, uint32_t) \
  CAFFE_STEPS_OF_BITS(X, b64, uint64_t) \
  CAFFE_STEPS_OF_MEMORY(X, s8, int8_t) \
  CAFFE_STEPS_OF_MEMORY(X, u8, uint8_t) \
  CAFFE_STEPS_OF_MEMORY(X, s16, int16_t) \
  CAFFE_STEPS_OF_MEMORY(X, u16, uint16_t) \
  CAFFE_STEPS_OF_MEMORY(X, u32, uint32_t) \
  CAFFE_STEPS_OF_MEMORY(X, u64, uint64_t) \
  X(put_u32, "put.u32", put<uint32_t>(s.b, A)) \
  X(put_u64, "put.u64", put<uint64_t>(s.b, A)) \
  X(not_pred, "not.pred", TO = !A) \
  X(wide_s16, "mul.wide.s16", TO = bits_of<int32_t>(int32_t{as<int16_t>(A)} * as<int16_t>(B))) \
  X(wide_u16, "mul.wide.u16", TO = bits_of<uint32_t>(uint32_t{as<uint16_t>(A)} * as<uint16_t>(B))) \
  X(wide_s32, "mul.wide.s32", TO = bits_of<int64_t>(int64_t{as<int32_t>(A)} * as<int32_t>(B))) \
  X(wide_u32, "mul.wide.u32", TO = uint64_t{as<uint32_t>(A)} * as<uint32_t>(B)) \
  X(mad_wide_s32, "mad.wide.s32", TO = bits_of<int64_t>(int64_t{as<int32_t>(A)} * as<int32_t>(B)) + C) \
  X(mad_wide_u32, "mad.wide.u32", TO = uint64_t{as<uint32_t>(A)} * as<uint32_t>(B) + C) \
  X(f32_of_f64, "cvt.rn.f32.f64", TO = bits_of<float>(static_cast<float>(as<double>(A)))) \
  X(f64_of_f32, "cvt.f64.f32", TO = bits_of<double>(as<float>(A))) \
  X(f16_of_f32, "cvt.rn.f16.f32", TO = cuffi::types::half_detail::Ieee::encode(as<float>(A))) \
  X(bf16_of_f32, "cvt.rn.bf16.f32", TO = cuffi::types::half_detail::Brain::encode(as<float>(A))) \
  X(f16x2_of_f32, "cvt.rn.f16x2.f32", TO = two_halves<cuffi::types::half_detail::Ieee>(A, B)) \
  X(bf16x2_of_f32, "cvt.rn.bf16x2.f32", TO = two_halves<cuffi::types::half_detail::Brain>(A, B)) \
  X(f32_of_f16, "cvt.f32.f16", \
    TO = bits_of<float>(cuffi::types::half_detail::Ieee::decode(static_cast<uint16_t>(A)))) \
  X(mov, "mov", TO = A) \
  X(selp, "selp", TO = C ? A : B) \
  X(low_high, "low.high", TO = static_cast<uint32_t>(A) | B << 32) \
  X(low, "low", TO = static_cast<uint32_t>(A)) \
  X(high, "high", TO = A >> 32) \
  X(bra, "bra", at = s.b) \
  X(bra_if, "bra.if", if (A) at = s.b) \
  X(bra_unless, "bra.unless", if (!A) at = s.b) \
  X(ret, "ret", return nullptr)
// clang-format on

enum Operation : uint16_t {
#define CAFFE_STEP(name, ptx, ...) k_##name,
  CAFFE_STEPS(CAFFE_STEP)
#undef CAFFE_STEP
};
// What PTX calls each.
constexpr const char* kNames[] = {
#define CAFFE_STEP(name, ptx, ...) ptx,
    CAFFE_STEPS(CAFFE_STEP)
#undef CAFFE_STEP
};
constexpr size_t kOperations = sizeof(kNames) / sizeof(*kNames);

constexpr const char* kAstray = "its launcher reads or writes beside its memory";
// A step's numbers are below the first, so that each reads registers, whatever it means.
constexpr size_t kMostRegisters = 4096, kMostLocal = 8192, kMostRun = 1000000;
// Where the texts and the local variables begin.
constexpr uint64_t kDataAt = 0x20000, kLocalAt = 0x40000;
// The first of the kernels' variables, which have an address each, 2^32 apart.
constexpr uint64_t kSymbolsAt = uint64_t{1} << 40;

// One run of a launcher's steps.
class Machine {
 public:
  Machine(const std::vector<unsigned char>& data, caffe_launch* launch, unsigned char* local,
          size_t local_bytes)
      : data_(data), launch_(launch), local_(local), local_bytes_(local_bytes) {}

  // Returns why it went wrong, or null.
  const char* run(const std::vector<Step>& steps, uint64_t* r) {
    size_t at = 0;
    for (size_t count = 0; count < kMostRun && at < steps.size(); ++count) {
      const Step s = steps[at++];
      const uint64_t A = r[s.a], B = r[s.b], C = r[s.c];
      uint64_t& TO = r[s.to];
      switch (s.op) {
#define CAFFE_STEP(name, ptx, ...) \
  case k_##name: {                 \
    __VA_ARGS__;                   \
  } break;
        CAFFE_STEPS(CAFFE_STEP)
#undef CAFFE_STEP
        default:
          return "its launcher has an unknown step";
      }
    }
    return "its launcher does not end";
  }

 private:
  unsigned char* place(uint64_t address, size_t bytes, bool writes) {
    if (address - CAFFE_LAUNCH_AT <= sizeof(caffe_launch) - bytes)
      return reinterpret_cast<unsigned char*>(launch_) + (address - CAFFE_LAUNCH_AT);
    if (bytes <= local_bytes_ && address - kLocalAt <= local_bytes_ - bytes)
      return local_ + (address - kLocalAt);
    if (!writes && bytes <= data_.size() && address - kDataAt <= data_.size() - bytes)
      return const_cast<unsigned char*>(data_.data()) + (address - kDataAt);
    return nullptr;
  }
  // A place in the launch, which was checked when the steps were read.
  template <typename T>
  void put(size_t word, uint64_t value) {
    memcpy(reinterpret_cast<unsigned char*>(launch_) + 4 * word, &value, sizeof(T));
  }
  template <typename T>
  bool load(uint64_t address, uint64_t* to) {
    const unsigned char* const from = place(address, sizeof(T), false);
    if (!from) return false;
    T value;
    memcpy(&value, from, sizeof(T));
    *to = static_cast<uint64_t>(
        static_cast<std::conditional_t<std::is_signed<T>::value, int64_t, uint64_t>>(value));
    return true;
  }
  template <typename T>
  bool store(uint64_t address, uint64_t value) {
    unsigned char* const to = place(address, sizeof(T), true);
    if (to) memcpy(to, &value, sizeof(T));
    return to != nullptr;
  }

  const std::vector<unsigned char>& data_;
  caffe_launch* const launch_;
  unsigned char* const local_;
  const size_t local_bytes_;
};

}  // namespace steps
}  // namespace caffe
