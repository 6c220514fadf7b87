// CUDA's special functions that are not in C's <math.h>. They compute in double; those for float round the result.
#pragma once

#include <math.h>

#include <cmath>

// A template, so that a source's own function of that name is preferred.
#define CAFFE_HOST_OURS \
  template <int = 0>    \
  inline

CAFFE_HOST_OURS double rcbrt(double x) { return 1.0 / cbrt(x); }
CAFFE_HOST_OURS double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
CAFFE_HOST_OURS double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
CAFFE_HOST_OURS double norm4d(double x, double y, double z, double w) {
  return hypot(hypot(x, y), hypot(z, w));
}
CAFFE_HOST_OURS double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
CAFFE_HOST_OURS double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }

// sin and cos of pi * x, computed from the nearest quarter turn.
CAFFE_HOST_OURS void sincospi(double x, double* sine, double* cosine) {
  const double turn = x - 2.0 * nearbyint(x / 2.0), quarters = nearbyint(2.0 * turn);
  const double angle = M_PI * (turn - quarters / 2.0), s = sin(angle), c = cos(angle);
  const int q = std::isfinite(x) ? static_cast<int>(quarters) & 3 : 0;
  *sine = q == 0 ? s : q == 1 ? c : q == 2 ? -s : -c;
  *cosine = q == 0 ? c : q == 1 ? -s : q == 2 ? -c : s;
}
CAFFE_HOST_OURS double sinpi(double x) {
  double sine, cosine;
  sincospi(x, &sine, &cosine);
  return sine;
}
CAFFE_HOST_OURS double cospi(double x) {
  double sine, cosine;
  sincospi(x, &sine, &cosine);
  return cosine;
}

// The inverse of erfc: a first guess (Numerical Recipes, 6.2.22), then Halley's method.
CAFFE_HOST_OURS double erfcinv(double x) {
  if (!(x > 0.0 && x < 2.0)) return x == 0.0 ? INFINITY : x == 2.0 ? -INFINITY : NAN;
  if (x > 1.0) return -erfcinv(2.0 - x);
  const double t = sqrt(-2.0 * log(x / 2.0));
  double y = M_SQRT1_2 * (t - (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481)));
  for (int i = 0; i < 3; ++i) {
    const double error = erfc(y) - x;
    y += error / (M_2_SQRTPI * exp(-y * y) - y * error);
  }
  return y;
}
CAFFE_HOST_OURS double erfinv(double x) {
  if (fabs(x) >= 0.5) return copysign(erfcinv(1.0 - fabs(x)), x);
  double y = x / M_2_SQRTPI;
  for (int i = 0; i < 4; ++i) {
    const double error = erf(y) - x;
    y -= error / (M_2_SQRTPI * exp(-y * y) + y * error);
  }
  return y;
}
CAFFE_HOST_OURS double normcdf(double x) { return 0.5 * erfc(-M_SQRT1_2 * x); }
CAFFE_HOST_OURS double normcdfinv(double x) { return -M_SQRT2 * erfcinv(2.0 * x); }
// exp(x * x) * erfc(x).
CAFFE_HOST_OURS double erfcx(double x) {
  if (x < 0.0) return 2.0 * exp(x * x) - erfcx(-x);
  const double square = x * x;
  if (x < 25.0) return exp(square) * (1.0 + fma(x, x, -square)) * erfc(x);
  const double r = 0.5 / square;
  return M_2_SQRTPI / (2.0 * x) * (1.0 - r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r))));
}
// Beyond 714 they are larger than any double.
CAFFE_HOST_OURS double cyl_bessel_i0(double x) {
  return fabs(x) < 714.0 ? std::cyl_bessel_i(0.0, fabs(x)) : x * x;
}
CAFFE_HOST_OURS double cyl_bessel_i1(double x) {
  return copysign(fabs(x) < 714.0 ? std::cyl_bessel_i(1.0, fabs(x)) : x * x, x);
}

CAFFE_HOST_OURS float rhypotf(float x, float y) { return static_cast<float>(rhypot(x, y)); }
CAFFE_HOST_OURS float norm3df(float x, float y, float z) { return static_cast<float>(norm3d(x, y, z)); }
CAFFE_HOST_OURS float norm4df(float x, float y, float z, float w) {
  return static_cast<float>(norm4d(x, y, z, w));
}
CAFFE_HOST_OURS float rnorm3df(float x, float y, float z) { return static_cast<float>(rnorm3d(x, y, z)); }
CAFFE_HOST_OURS float rnorm4df(float x, float y, float z, float w) {
  return static_cast<float>(rnorm4d(x, y, z, w));
}
CAFFE_HOST_OURS void sincospif(float x, float* sine, float* cosine) {
  double s, c;
  sincospi(x, &s, &c);
  *sine = static_cast<float>(s), *cosine = static_cast<float>(c);
}
#define CAFFE_HOST_IN_FLOAT(name) \
  CAFFE_HOST_OURS float name##f(float x) { return static_cast<float>(name(static_cast<double>(x))); }
CAFFE_HOST_IN_FLOAT(sinpi)
CAFFE_HOST_IN_FLOAT(cospi)
CAFFE_HOST_IN_FLOAT(erfcinv)
CAFFE_HOST_IN_FLOAT(erfinv)
CAFFE_HOST_IN_FLOAT(normcdf)
CAFFE_HOST_IN_FLOAT(normcdfinv)
CAFFE_HOST_IN_FLOAT(erfcx)
CAFFE_HOST_IN_FLOAT(cyl_bessel_i0)
CAFFE_HOST_IN_FLOAT(cyl_bessel_i1)
#undef CAFFE_HOST_IN_FLOAT
