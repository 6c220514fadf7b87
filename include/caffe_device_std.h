// What kernels use of C and C++'s headers, for NVRTC, which has none of them. It stands for each of the headers that
// cuffi/loading/nvrtc.py names.
#ifndef CAFFE_DEVICE_STD_H_
#define CAFFE_DEVICE_STD_H_

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
#ifdef CAFFE_LIBCUDACXX  // libcu++ has declared them so, and CUDA's newer headers include it
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t, intmax_t;
typedef uint64_t uintptr_t, uintmax_t;
#else  // as with nvcc
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t, intmax_t;
typedef unsigned long uintptr_t, uintmax_t;
#endif
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615ul
#define SIZE_MAX UINT64_MAX
#define CHAR_BIT 8
#define SCHAR_MIN INT8_MIN
#define SCHAR_MAX INT8_MAX
#define UCHAR_MAX UINT8_MAX
#define CHAR_MIN INT8_MIN
#define CHAR_MAX INT8_MAX
#define SHRT_MIN INT16_MIN
#define SHRT_MAX INT16_MAX
#define USHRT_MAX UINT16_MAX
#define INT_MIN INT32_MIN
#define INT_MAX INT32_MAX
#define UINT_MAX UINT32_MAX
#define LONG_MIN INT64_MIN
#define LONG_MAX INT64_MAX
#define ULONG_MAX UINT64_MAX
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ull

#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define FLT_DIG 6
#define DBL_DIG 15
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif

#define CAFFE_BOTH __host__ __device__ __forceinline__

namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
typedef decltype(nullptr) nullptr_t;

template <typename T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  CAFFE_BOTH constexpr operator T() const { return v; }
  CAFFE_BOTH constexpr T operator()() const { return v; }
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <typename A, typename B>
struct is_same : false_type {};
template <typename A>
struct is_same<A, A> : true_type {};
template <typename A, typename B>
inline constexpr bool is_same_v = is_same<A, B>::value;

template <bool condition, typename A, typename B>
struct conditional {
  typedef A type;
};
template <typename A, typename B>
struct conditional<false, A, B> {
  typedef B type;
};
template <bool condition, typename A, typename B>
using conditional_t = typename conditional<condition, A, B>::type;
template <bool condition, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool condition, typename T = void>
using enable_if_t = typename enable_if<condition, T>::type;
template <typename...>
using void_t = void;

#define CAFFE_CHANGES(name, from, to) \
  template <typename T>               \
  struct name {                       \
    typedef T type;                   \
  };                                  \
  template <typename T>               \
  struct name<from> {                 \
    typedef to type;                  \
  };                                  \
  template <typename T>               \
  using name##_t = typename name<T>::type;
CAFFE_CHANGES(remove_const, const T, T)
CAFFE_CHANGES(remove_volatile, volatile T, T)
CAFFE_CHANGES(add_const, T&, T&)
#undef CAFFE_CHANGES
template <typename T>
struct remove_reference {
  typedef T type;
};
template <typename T>
struct remove_reference<T&> {
  typedef T type;
};
template <typename T>
struct remove_reference<T&&> {
  typedef T type;
};
template <typename T>
using remove_reference_t = typename remove_reference<T>::type;
template <typename T>
struct remove_cv {
  typedef remove_const_t<remove_volatile_t<T>> type;
};
template <typename T>
using remove_cv_t = typename remove_cv<T>::type;
template <typename T>
struct remove_pointer {
  typedef T type;
};
template <typename T>
struct remove_pointer<T*> {
  typedef T type;
};
template <typename T>
struct remove_pointer<T* const> {
  typedef T type;
};
template <typename T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <typename T>
struct decay {
  typedef remove_cv_t<remove_reference_t<T>> type;
};
template <typename T>
using decay_t = typename decay<T>::type;
template <typename T>
struct remove_extent {
  typedef T type;
};
template <typename T, size_t n>
struct remove_extent<T[n]> {
  typedef T type;
};

template <typename T>
struct is_pointer : false_type {};
template <typename T>
struct is_pointer<T*> : true_type {};
template <typename T>
struct is_pointer<T* const> : true_type {};
template <typename T>
struct is_reference : false_type {};
template <typename T>
struct is_reference<T&> : true_type {};
template <typename T>
struct is_reference<T&&> : true_type {};
template <typename T>
struct is_const : false_type {};
template <typename T>
struct is_const<const T> : true_type {};
template <typename T>
struct is_void : is_same<remove_cv_t<T>, void> {};
template <typename T>
struct caffe_is_real : bool_constant<is_same_v<T, float> || is_same_v<T, double>> {};
template <typename T>
struct is_floating_point : caffe_is_real<remove_cv_t<T>> {};
template <typename T, typename... Several>
struct caffe_is_one_of : bool_constant<(is_same_v<T, Several> || ...)> {};
template <typename T>
struct is_integral
    : caffe_is_one_of<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, short, unsigned short,
                      int, unsigned int, long, unsigned long, long long, unsigned long long> {};
template <typename T>
struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <typename T>
struct is_signed : bool_constant<is_arithmetic<T>::value&& static_cast<T>(-1) < static_cast<T>(0)> {};
template <typename T>
struct is_unsigned : bool_constant<is_integral<T>::value && !is_signed<T>::value> {};
template <typename T>
struct is_enum : bool_constant<__is_enum(T)> {};
template <typename T>
struct is_class : bool_constant<__is_class(T)> {};
template <typename A, typename B>
struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <typename T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
#define CAFFE_VALUES(name) \
  template <typename T>    \
  inline constexpr bool name##_v = name<T>::value;
CAFFE_VALUES(is_pointer)
CAFFE_VALUES(is_const)
CAFFE_VALUES(is_void)
CAFFE_VALUES(is_floating_point)
CAFFE_VALUES(is_integral)
CAFFE_VALUES(is_arithmetic)
CAFFE_VALUES(is_signed)
CAFFE_VALUES(is_unsigned)
CAFFE_VALUES(is_enum)
CAFFE_VALUES(is_class)
CAFFE_VALUES(is_trivially_copyable)
#undef CAFFE_VALUES
template <typename T>
struct make_unsigned {
  typedef conditional_t<sizeof(T) == 1, unsigned char,
                        conditional_t<sizeof(T) == 2, unsigned short,
                                      conditional_t<sizeof(T) == 4, unsigned int, unsigned long>>>
      type;
};
template <typename T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <typename T>
struct make_signed {
  typedef conditional_t<sizeof(T) == 1, signed char,
                        conditional_t<sizeof(T) == 2, short, conditional_t<sizeof(T) == 4, int, long>>>
      type;
};
template <typename T>
using make_signed_t = typename make_signed<T>::type;

template <typename T>
__host__ __device__ T&& declval() noexcept;
template <typename T>
CAFFE_BOTH constexpr void swap(T& a, T& b) {
  T c = a;
  a = b;
  b = c;
}
template <typename A, typename B>
struct pair {
  A first;
  B second;
  pair() = default;
  CAFFE_BOTH constexpr pair(const A& a, const B& b) : first(a), second(b) {}
};
template <typename A, typename B>
CAFFE_BOTH constexpr pair<A, B> make_pair(A a, B b) {
  return pair<A, B>(a, b);
}
#define CAFFE_FUNCTION(name, symbol, Result)                                                    \
  template <typename T = void>                                                                  \
  struct name {                                                                                 \
    CAFFE_BOTH constexpr Result operator()(const T& a, const T& b) const { return a symbol b; } \
  };                                                                                            \
  template <>                                                                                   \
  struct name<void> {                                                                           \
    template <typename A, typename B>                                                           \
    CAFFE_BOTH constexpr auto operator()(const A& a, const B& b) const {                        \
      return a symbol b;                                                                        \
    }                                                                                           \
  };
CAFFE_FUNCTION(plus, +, T)
CAFFE_FUNCTION(minus, -, T)
CAFFE_FUNCTION(multiplies, *, T)
CAFFE_FUNCTION(divides, /, T)
CAFFE_FUNCTION(bit_and, &, T)
CAFFE_FUNCTION(bit_or, |, T)
CAFFE_FUNCTION(bit_xor, ^, T)
CAFFE_FUNCTION(equal_to, ==, bool)
CAFFE_FUNCTION(less, <, bool)
CAFFE_FUNCTION(greater, >, bool)
#undef CAFFE_FUNCTION
template <typename T>
CAFFE_BOTH constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <typename T>
CAFFE_BOTH constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <typename T>
CAFFE_BOTH constexpr const T& clamp(const T& v, const T& low, const T& high) {
  return v < low ? low : high < v ? high : v;
}
template <typename T, size_t n>
struct array {
  T values_[n];
  typedef T value_type;
  CAFFE_BOTH constexpr T& operator[](size_t i) { return values_[i]; }
  CAFFE_BOTH constexpr const T& operator[](size_t i) const { return values_[i]; }
  CAFFE_BOTH constexpr size_t size() const { return n; }
  CAFFE_BOTH constexpr T* data() { return values_; }
  CAFFE_BOTH constexpr const T* data() const { return values_; }
  CAFFE_BOTH constexpr T* begin() { return values_; }
  CAFFE_BOTH constexpr T* end() { return values_ + n; }
  CAFFE_BOTH constexpr const T* begin() const { return values_; }
  CAFFE_BOTH constexpr const T* end() const { return values_ + n; }
};
template <typename T, T... values>
struct integer_sequence {};
template <size_t... values>
using index_sequence = integer_sequence<size_t, values...>;
template <size_t n, size_t... values>
struct caffe_counted : caffe_counted<n - 1, n - 1, values...> {};
template <size_t... values>
struct caffe_counted<0, values...> {
  typedef index_sequence<values...> type;
};
template <size_t n>
using make_index_sequence = typename caffe_counted<n>::type;

template <typename T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};
#define CAFFE_LIMITS(T, least, low, most, step, inf, nan_, count, whole)      \
  template <>                                                                 \
  struct numeric_limits<T> {                                                  \
    static constexpr bool is_specialized = true, is_integer = whole;          \
    static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0); \
    static constexpr bool has_infinity = !whole, has_quiet_NaN = !whole;      \
    static constexpr int digits = count;                                      \
    CAFFE_BOTH static constexpr T min() { return least; }                     \
    CAFFE_BOTH static constexpr T lowest() { return low; }                    \
    CAFFE_BOTH static constexpr T max() { return most; }                      \
    CAFFE_BOTH static constexpr T epsilon() { return step; }                  \
    static __device__ __forceinline__ T infinity() { return inf; }            \
    static __device__ __forceinline__ T quiet_NaN() { return nan_; }          \
  };
#define CAFFE_LIMITS_OF_INTEGER(T, least, most, count) \
  CAFFE_LIMITS(T, least, least, most, 0, 0, 0, count, true)
CAFFE_LIMITS(float, FLT_MIN, -FLT_MAX, FLT_MAX, FLT_EPSILON, __int_as_float(0x7f800000),
             __int_as_float(0x7fffffff), 24, false)
CAFFE_LIMITS(double, DBL_MIN, -DBL_MAX, DBL_MAX, DBL_EPSILON, __longlong_as_double(0x7ff0000000000000ll),
             __longlong_as_double(0x7ff8000000000000ll), 53, false)
CAFFE_LIMITS_OF_INTEGER(bool, false, true, 1)
CAFFE_LIMITS_OF_INTEGER(char, CHAR_MIN, CHAR_MAX, 7)
CAFFE_LIMITS_OF_INTEGER(signed char, SCHAR_MIN, SCHAR_MAX, 7)
CAFFE_LIMITS_OF_INTEGER(unsigned char, 0, UCHAR_MAX, 8)
CAFFE_LIMITS_OF_INTEGER(short, SHRT_MIN, SHRT_MAX, 15)
CAFFE_LIMITS_OF_INTEGER(unsigned short, 0, USHRT_MAX, 16)
CAFFE_LIMITS_OF_INTEGER(int, INT_MIN, INT_MAX, 31)
CAFFE_LIMITS_OF_INTEGER(unsigned int, 0, UINT_MAX, 32)
CAFFE_LIMITS_OF_INTEGER(long, LONG_MIN, LONG_MAX, 63)
CAFFE_LIMITS_OF_INTEGER(unsigned long, 0, ULONG_MAX, 64)
CAFFE_LIMITS_OF_INTEGER(long long, LLONG_MIN, LLONG_MAX, 63)
CAFFE_LIMITS_OF_INTEGER(unsigned long long, 0, ULLONG_MAX, 64)
#undef CAFFE_LIMITS_OF_INTEGER
#undef CAFFE_LIMITS

// The functions of <cmath>: CUDA's own, which are overloaded for float.
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::frexp;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::lround;
using ::nearbyint;
using ::pow;
using ::remainder;
using ::rint;
using ::round;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;

// What host code alone uses, so that its declarations and its structs compile. There is nothing in it: code that calls it
// is left out (tools/new_layer/host_trim.py).
#define CAFFE_HOSTS(name, words) \
  template <typename... Types>   \
  struct name {                  \
    size_t of_the_host[words];   \
  };
CAFFE_HOSTS(vector, 3)
CAFFE_HOSTS(basic_string, 4)
CAFFE_HOSTS(basic_string_view, 2)
CAFFE_HOSTS(unique_ptr, 1)
CAFFE_HOSTS(shared_ptr, 2)
CAFFE_HOSTS(function, 4)
CAFFE_HOSTS(list, 3)
CAFFE_HOSTS(deque, 10)
CAFFE_HOSTS(map, 6)
CAFFE_HOSTS(multimap, 6)
CAFFE_HOSTS(set, 6)
CAFFE_HOSTS(multiset, 6)
CAFFE_HOSTS(unordered_map, 7)
CAFFE_HOSTS(unordered_set, 7)
#undef CAFFE_HOSTS
typedef basic_string<char> string;
typedef basic_string_view<char> string_view;
struct ostream;
struct istream;
struct ofstream;
struct ifstream;
struct stringstream;
struct mutex {
  size_t of_the_host[5];
};
struct thread {
  size_t of_the_host;
};
}  // namespace std

#endif  // CAFFE_DEVICE_STD_H_
