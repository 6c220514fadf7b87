// thrust's complex numbers are those of std, with thrust's names; and its exceptions.
#pragma once

#include <complex>
#include <system_error>

namespace thrust {

using std::abs;
using std::acos;
using std::acosh;
using std::arg;
using std::asin;
using std::asinh;
using std::atan;
using std::atanh;
using std::complex;
using std::conj;
using std::cos;
using std::cosh;
using std::error_code;
using std::exp;
using std::log;
using std::log10;
using std::norm;
using std::polar;
using std::pow;
using std::proj;
using std::sin;
using std::sinh;
using std::sqrt;
using std::system_error;
using std::tan;
using std::tanh;
inline const std::error_category& cuda_category() { return std::generic_category(); }

}  // namespace thrust
