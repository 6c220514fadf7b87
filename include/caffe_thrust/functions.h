// thrust's function objects, and those that expressions of _1 and _2 make.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "caffe_thrust/memory.h"
#include "caffe_thrust/old_functions.h"

namespace thrust {

// Without a type, as plus<>, of whatever types it is called with.
#define CAFFE_THRUST_FUNCTION_(name, Result, value)                                       \
  template <typename T = void>                                                            \
  struct name {                                                                           \
    __host__ __device__ Result operator()(const T& a, const T& b) const { return value; } \
  };                                                                                      \
  template <>                                                                             \
  struct name<void> {                                                                     \
    template <typename A, typename B>                                                     \
    __host__ __device__ auto operator()(const A& a, const B& b) const {                   \
      return value;                                                                       \
    }                                                                                     \
  };
CAFFE_THRUST_FUNCTION_(plus, T, a + b)
CAFFE_THRUST_FUNCTION_(minus, T, a - b)
CAFFE_THRUST_FUNCTION_(multiplies, T, a* b)
CAFFE_THRUST_FUNCTION_(divides, T, a / b)
CAFFE_THRUST_FUNCTION_(modulus, T, a % b)
CAFFE_THRUST_FUNCTION_(bit_and, T, a& b)
CAFFE_THRUST_FUNCTION_(bit_or, T, a | b)
CAFFE_THRUST_FUNCTION_(bit_xor, T, a ^ b)
CAFFE_THRUST_FUNCTION_(maximum, T, a < b ? b : a)
CAFFE_THRUST_FUNCTION_(minimum, T, b < a ? b : a)
CAFFE_THRUST_FUNCTION_(less, bool, a < b)
CAFFE_THRUST_FUNCTION_(greater, bool, b < a)
CAFFE_THRUST_FUNCTION_(less_equal, bool, a <= b)
CAFFE_THRUST_FUNCTION_(greater_equal, bool, a >= b)
CAFFE_THRUST_FUNCTION_(equal_to, bool, a == b)
CAFFE_THRUST_FUNCTION_(not_equal_to, bool, a != b)
CAFFE_THRUST_FUNCTION_(logical_and, bool, a&& b)
CAFFE_THRUST_FUNCTION_(logical_or, bool, a || b)
#undef CAFFE_THRUST_FUNCTION_

#define CAFFE_THRUST_FUNCTION_(name, Result, value)                           \
  template <typename T = void>                                                \
  struct name {                                                               \
    __host__ __device__ Result operator()(const T& a) const { return value; } \
  };                                                                          \
  template <>                                                                 \
  struct name<void> {                                                         \
    template <typename A>                                                     \
    __host__ __device__ auto operator()(const A& a) const {                   \
      return value;                                                           \
    }                                                                         \
  };
CAFFE_THRUST_FUNCTION_(identity, const T&, a)
CAFFE_THRUST_FUNCTION_(negate, T, -a)
CAFFE_THRUST_FUNCTION_(square, T, a* a)
CAFFE_THRUST_FUNCTION_(logical_not, bool, !a)
CAFFE_THRUST_FUNCTION_(bit_not, T, ~a)
#undef CAFFE_THRUST_FUNCTION_
using std::not_fn;

template <typename A = void, typename B = void>
struct project1st {
  template <typename First, typename Second>
  __host__ __device__ First operator()(const First& first, const Second&) const {
    return first;
  }
};
template <typename A = void, typename B = void>
struct project2nd {
  template <typename First, typename Second>
  __host__ __device__ Second operator()(const First&, const Second& second) const {
    return second;
  }
};

// A function of several arguments as one of their tuple, for the elements of a zip_iterator.
template <typename Function>
struct zip_function {
  mutable Function function;
  template <typename Tuple>
  __host__ __device__ decltype(auto) operator()(Tuple&& arguments) const {
    return std::apply(function, std::forward<Tuple>(arguments));
  }
};
template <typename Function>
zip_function<std::decay_t<Function>> make_zip_function(Function&& function) {
  return {std::forward<Function>(function)};
}

// Function objects from expressions: _1 * 2 > _2 is a function of two arguments.
namespace placeholders {

template <typename Function>
struct expression {
  Function value;
  template <typename... Arguments>
  auto operator()(const Arguments&... arguments) const {
    return value(std::tie(arguments...));
  }
};
template <typename Function>
expression<Function> make_expression(Function function) {
  return {function};
}
template <typename Constant>
auto value_of(const Constant& constant) {
  return [constant](const auto&) { return constant; };
}
template <typename Function>
Function value_of(const expression<Function>& one) {
  return one.value;
}
template <typename T>
struct is_expression : std::false_type {};
template <typename Function>
struct is_expression<expression<Function>> : std::true_type {};

#define CAFFE_THRUST_OPERATOR_(op)                                                                           \
  template <typename A, typename B,                                                                          \
            typename = std::enable_if_t<is_expression<A>::value || is_expression<B>::value>>                 \
  auto operator op(const A& a, const B& b) {                                                                 \
    return make_expression(                                                                                  \
        [x = value_of(a), y = value_of(b)](const auto& arguments) { return x(arguments) op y(arguments); }); \
  }
CAFFE_THRUST_OPERATOR_(+)
CAFFE_THRUST_OPERATOR_(-)
CAFFE_THRUST_OPERATOR_(*)
CAFFE_THRUST_OPERATOR_(/)
CAFFE_THRUST_OPERATOR_(%)
CAFFE_THRUST_OPERATOR_(==)
CAFFE_THRUST_OPERATOR_(!=)
CAFFE_THRUST_OPERATOR_(<)
CAFFE_THRUST_OPERATOR_(>)
CAFFE_THRUST_OPERATOR_(<=)
CAFFE_THRUST_OPERATOR_(>=)
CAFFE_THRUST_OPERATOR_(&&)
CAFFE_THRUST_OPERATOR_(||)
CAFFE_THRUST_OPERATOR_(&)
CAFFE_THRUST_OPERATOR_(|)
CAFFE_THRUST_OPERATOR_(^)
#undef CAFFE_THRUST_OPERATOR_

template <std::size_t N>
struct argument {
  template <typename Arguments>
  auto operator()(const Arguments& arguments) const {
    return std::get<N>(arguments);
  }
};
template <typename A, typename = std::enable_if_t<is_expression<A>::value>>
auto operator-(const A& a) {
  return make_expression([x = value_of(a)](const auto& arguments) { return -x(arguments); });
}
template <typename A, typename = std::enable_if_t<is_expression<A>::value>>
auto operator!(const A& a) {
  return make_expression([x = value_of(a)](const auto& arguments) { return !x(arguments); });
}
static const expression<argument<0>> _1{};
static const expression<argument<1>> _2{};
static const expression<argument<2>> _3{};
static const expression<argument<3>> _4{};

}  // namespace placeholders

}  // namespace thrust
