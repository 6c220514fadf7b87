// c10::complex: two numbers, for the processor and for kernels. std::complex has no functions for a GPU.
#pragma once

#include <math.h>

#include <complex>
#include <type_traits>

#ifdef __CUDACC__
#define ATEN_COMPLEX __host__ __device__ inline
#else
#define ATEN_COMPLEX inline
#endif

namespace c10 {

template <typename T>
struct alignas(2 * sizeof(T)) complex {
  using value_type = T;
  T real_ = 0, imag_ = 0;

  constexpr complex() = default;
  ATEN_COMPLEX constexpr complex(T real, T imag = T()) : real_(real), imag_(imag) {}
  template <typename U, typename = std::enable_if_t<!std::is_same<T, U>::value>>
  ATEN_COMPLEX constexpr complex(const complex<U>& other)
      : real_(static_cast<T>(other.real_)), imag_(static_cast<T>(other.imag_)) {}
  complex(const std::complex<T>& other) : real_(other.real()), imag_(other.imag()) {}
  operator std::complex<T>() const { return std::complex<T>(real_, imag_); }
  ATEN_COMPLEX constexpr T real() const { return real_; }
  ATEN_COMPLEX constexpr T imag() const { return imag_; }
  ATEN_COMPLEX void real(T value) { real_ = value; }
  ATEN_COMPLEX void imag(T value) { imag_ = value; }

  ATEN_COMPLEX complex& operator+=(const complex& b) { return real_ += b.real_, imag_ += b.imag_, *this; }
  ATEN_COMPLEX complex& operator-=(const complex& b) { return real_ -= b.real_, imag_ -= b.imag_, *this; }
  ATEN_COMPLEX complex& operator*=(const complex& b) {
    const T real = real_ * b.real_ - imag_ * b.imag_;
    imag_ = real_ * b.imag_ + imag_ * b.real_, real_ = real;
    return *this;
  }
  // Scaled by the larger part of b, so that its square does not overflow.
  ATEN_COMPLEX complex& operator/=(const complex& b) {
    const T scale = fabs(b.real_) > fabs(b.imag_) ? fabs(b.real_) : fabs(b.imag_);
    const T x = b.real_ / scale, y = b.imag_ / scale, d = (x * x + y * y) * scale;
    const T real = (real_ * x + imag_ * y) / d;
    imag_ = (imag_ * x - real_ * y) / d, real_ = real;
    return *this;
  }
  friend ATEN_COMPLEX complex operator+(complex a, const complex& b) { return a += b; }
  friend ATEN_COMPLEX complex operator-(complex a, const complex& b) { return a -= b; }
  friend ATEN_COMPLEX complex operator*(complex a, const complex& b) { return a *= b; }
  friend ATEN_COMPLEX complex operator/(complex a, const complex& b) { return a /= b; }
  friend ATEN_COMPLEX complex operator-(const complex& a) { return complex(-a.real_, -a.imag_); }
  friend ATEN_COMPLEX complex operator+(const complex& a) { return a; }
  friend ATEN_COMPLEX bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  friend ATEN_COMPLEX bool operator!=(const complex& a, const complex& b) { return !(a == b); }
};

template <typename T>
struct is_complex : std::false_type {};
template <typename T>
struct is_complex<complex<T>> : std::true_type {};

}  // namespace c10

// torch defines these in std.
namespace std {
template <typename T>
ATEN_COMPLEX T real(const c10::complex<T>& z) {
  return z.real_;
}
template <typename T>
ATEN_COMPLEX T imag(const c10::complex<T>& z) {
  return z.imag_;
}
template <typename T>
ATEN_COMPLEX T abs(const c10::complex<T>& z) {
  return hypot(z.real_, z.imag_);
}
template <typename T>
ATEN_COMPLEX T arg(const c10::complex<T>& z) {
  return atan2(z.imag_, z.real_);
}
template <typename T>
ATEN_COMPLEX T norm(const c10::complex<T>& z) {
  return z.real_ * z.real_ + z.imag_ * z.imag_;
}
template <typename T>
ATEN_COMPLEX c10::complex<T> conj(const c10::complex<T>& z) {
  return c10::complex<T>(z.real_, -z.imag_);
}
template <typename T>
ATEN_COMPLEX c10::complex<T> exp(const c10::complex<T>& z) {
  const T size = exp(z.real_);
  return c10::complex<T>(size * cos(z.imag_), size * sin(z.imag_));
}
}  // namespace std
namespace c10_complex_math {
using std::abs;
using std::arg;
using std::conj;
using std::exp;
using std::norm;
}  // namespace c10_complex_math
