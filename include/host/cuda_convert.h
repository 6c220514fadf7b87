// Conversions and shifts in device code, with a GPU's rules where C++ has none. tools/cuda/casts.py writes these names.
//
//   (int)x               (int)(::cuda_host::GpuCast<int>)x
//   k = x, int k = x     k = ::cuda_host::gpu_into<int> = x
//   const int& k = x     const int& k = ::cuda_host::gpu_bound<int> = x
//   f(x)                 f(::cuda_host::gpu_into<::cuda_host::gpu_takes<decltype(f), 0>> = x)
//   k += x               k += ::cuda_host::gpu_onto<int> = x
//   (float4*)p           (float4*)(::cuda_host::GpuPointer<float4*>)p
//   a << n, a <<= n      a << ::cuda_host::gpu_shift << n, a <<= ::cuda_host::gpu_by<int> = n
//   object[x]            object[::cuda_host::gpu_whole = x]
//
// All keep the precedence of what they stand in, and leave types other than numbers alone. In cuda_host::in_loop they have
// no branch, for loops that g++ vectorises.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <iosfwd>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#define CAFFE_HOST_THROUGH inline __attribute__((always_inline, artificial)) constexpr

// Convert a whole number to an integer type, with the nearest limit if it is out of range, as PTX's cvt does.
template <typename Integer, typename Real>
constexpr Integer caffe_saturated(Real x) {
  using Limits = std::numeric_limits<Integer>;
  if (x != x)
    return sizeof(Real) == 4 && sizeof(Integer) == 4 ? Integer(0)
                                                     : Integer(1ull << (8 * sizeof(Integer) - 1));
  if (x < static_cast<Real>(Limits::min())) return Limits::min();
  return x >= static_cast<Real>(Limits::max()) ? Limits::max() : static_cast<Integer>(x);
}

namespace cuda_host {
// The type of an assignment's left side.
template <typename T>
using gpu_plain = std::remove_cv_t<std::remove_reference_t<T>>;
template <typename T>
constexpr bool is_number = std::is_arithmetic<gpu_plain<T>>::value || std::is_enum<gpu_plain<T>>::value;

// Has a class a conversion of its own to this type?
template <typename T, typename To, typename = void>
struct Becomes : std::false_type {};
template <typename T, typename To>
struct Becomes<T, To, std::void_t<decltype(std::declval<T&>().operator To())>> : std::true_type {};
template <typename T, typename... To>
constexpr bool becomes_one_of = (Becomes<T, To>::value || ...);
// The real number by way of which C++ converts it to an integer: itself; or a class's only one, as of halves; or void.
template <typename T, bool is_class = std::is_class<T>::value>
struct RealOf {
  using type = std::conditional_t<std::is_floating_point<T>::value, T, void>;
};
template <typename T>
struct RealOf<T, true> {
  static constexpr bool in_float = Becomes<T, float>::value, in_double = Becomes<T, double>::value;
  static constexpr bool in_whole =
      becomes_one_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned int,
                     long, unsigned long, long long, unsigned long long>;
  using Real = std::conditional_t<in_float, float, double>;
  static constexpr bool is = in_float != in_double && !in_whole && std::is_convertible<T, Real>::value;
  using type = std::conditional_t<is, Real, void>;
};
template <typename T>
using real_of = typename RealOf<T>::type;
template <typename T>
constexpr bool is_real = !std::is_void<real_of<T>>::value;
template <typename T>
constexpr bool is_whole = std::is_integral<T>::value && !std::is_same<gpu_plain<T>, bool>::value;

// By which integer a class is made of a real number, or is assigned one: void, if by none, or by real numbers, too.
struct AnyReal {
  template <typename To, std::enable_if_t<std::is_floating_point<To>::value, int> = 0>
  operator To() const;
};
template <typename T>
struct Only {
  template <typename To, std::enable_if_t<std::is_same<To, T>::value, int> = 0>
  operator To() const;
};
template <typename Class, typename Given>
constexpr bool takes_given =
    std::is_constructible<Class, Given>::value || std::is_assignable<Class&, Given>::value;
template <typename Class, typename... Wholes>
struct OneOf {
  using type = void;
};
template <typename Class, typename Whole, typename... Others>
struct OneOf<Class, Whole, Others...>
    : std::conditional_t<takes_given<Class, Only<Whole>>, OneOf<Whole>, OneOf<Class, Others...>> {};
template <typename Whole>
struct OneOf<Whole> {
  using type = std::conditional_t<std::is_integral<Whole>::value, Whole, void>;
};
template <typename Class, typename From, bool is_class = std::is_class<Class>::value && is_real<From>,
          typename = void>
struct MadeOf {
  using type = void;
};
template <typename Class, typename From>
struct MadeOf<Class, From, true,
              std::enable_if_t<!takes_given<Class, AnyReal> && !takes_given<Class, Only<From>>>>
    : OneOf<Class, int, unsigned int, long, unsigned long, long long, unsigned long long, short,
            unsigned short, char, signed char, unsigned char> {};

// What a GPU's rule for a conversion gives: To, if it is an integer, or that of which a class is made; else void.
template <typename To, typename From>
using ruled_as =
    std::conditional_t<is_whole<To> && is_real<From>, std::remove_cv_t<To>, typename MadeOf<To, From>::type>;
// Does a conversion have a rule of a GPU's own?
template <typename To, typename From>
constexpr bool is_ruled = !std::is_void<ruled_as<gpu_plain<To>, gpu_plain<From>>>::value;

// x86 gives the least integer where a number does not fit, and ARM what a GPU gives. The processor foresees the branch.
struct WithBranch {
  static constexpr int whole(float real) {
    int near = static_cast<int>(real);
    using Limits = std::numeric_limits<int>;
    // No `near` there: g++ makes trunc(real) of float(near).
    if (__builtin_expect(near == Limits::min(), 0))
      near = real > 0 ? Limits::max() : real == real ? Limits::min() : 0;
    return near;
  }
};
// Right too where the compiler knows the number: it then converts as a GPU does, and not as x86.
struct WithoutBranch {
  static constexpr int whole(float real) {
    const int near = real >= 2147483648.0f ? std::numeric_limits<int>::max() : static_cast<int>(real);
    return near & -static_cast<int>(is_known(real));
  }
  // Not NaN. Where g++ 13 knows that by ranges, float(near) would be trunc(real).
  static constexpr bool is_known(float real) {
#if defined(__GNUC__) && __GNUC__ >= 13 && !defined(__clang__)
    return (__builtin_bit_cast(int, real) & 0x7fffffff) <= 0x7f800000;
#else
    return real == real;
#endif
  }
};

// A conversion as a C-style cast has it, but of a real number to an integer as a GPU does it: C++ leaves that undefined.
template <typename To, typename Way, typename From>
CAFFE_HOST_THROUGH To converted(From x) {
  if constexpr (std::is_class<From>::value) {
    return converted<To, Way>(static_cast<real_of<From>>(x));
  } else if constexpr (sizeof(To) < sizeof(int)) {  // the lower bits of 32
    using Wide = std::conditional_t<std::is_signed<To>::value, int, unsigned int>;
    return static_cast<To>(converted<Wide, Way>(x));
  } else if constexpr (std::is_same<From, float>::value && std::is_same<To, int>::value) {
    return Way::whole(x);
  } else {
    return caffe_saturated<To>(x);
  }
}
template <typename To, typename Way, typename From>
CAFFE_HOST_THROUGH To cast(From&& x) {
  if constexpr (is_ruled<To, From>) {
    return static_cast<To>(converted<ruled_as<To, gpu_plain<From>>, Way>(static_cast<gpu_plain<From>>(x)));
  } else if constexpr (std::is_enum<To>::value && is_real<gpu_plain<From>>) {
    return static_cast<To>(converted<std::underlying_type_t<To>, Way>(static_cast<gpu_plain<From>>(x)));
  } else {
    return (To) static_cast<From&&>(x);
  }
}

// Stands between a cast's type and its operand, so that the cast finds what a GPU makes of it.
template <typename To, typename Way>
struct Between {
  To value;
  template <typename From, std::enable_if_t<is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH Between(From x) : value(cast<To, Way>(x)) {}
  template <typename From, std::enable_if_t<!is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH Between(From&& x) : value(cast<To, Way>(static_cast<From&&>(x))) {}
  CAFFE_HOST_THROUGH operator To() const { return static_cast<To>(value); }
};

// The right side of an assignment to a To.
template <typename To, typename Way>
struct Into {
  template <typename From, std::enable_if_t<is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH auto operator=(From x) const {
    if constexpr (is_ruled<To, From>)
      return cast<ruled_as<gpu_plain<To>, From>, Way>(x);
    else
      return x;
  }
  template <typename From, std::enable_if_t<!is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH decltype(auto) operator=(From&& x) const {
    if constexpr (is_ruled<To, From>)
      return cast<ruled_as<gpu_plain<To>, gpu_plain<From>>, Way>(x);
    else
      return static_cast<From&&>(x);
  }
};

// An argument for a parameter such as int&, which is bound to what there is.
struct ByReference {};
template <typename Way>
struct Into<ByReference, Way> {
  template <typename From>
  CAFFE_HOST_THROUGH From&& operator=(From&& x) const {
    return static_cast<From&&>(x);
  }
};

// What a const To& is bound to: a number that must be converted, or what there is.
template <typename To, typename Way>
struct Bound {
  template <typename From>
  CAFFE_HOST_THROUGH auto operator=(From&& x) const
      -> std::conditional_t<is_ruled<To, From>, gpu_plain<To>,
                            std::conditional_t<std::is_rvalue_reference<From&&>::value, From, From&&>> {
    if constexpr (is_ruled<To, From>)
      return cast<gpu_plain<To>, Way>(x);
    else
      return static_cast<From&&>(x);
  }
};

// What a function takes there, if it is the only one of its name; else void.
template <size_t n, typename... Parameters>
using Nth = typename std::tuple_element<n, std::tuple<Parameters..., void>>::type;
template <typename F, size_t n, typename = void>
struct Takes {
  using type = void;
};
#define CAFFE_HOST_TAKES(type_of_function)                                           \
  template <typename Result, typename Class, typename... Parameters, size_t n>       \
  struct Takes<type_of_function, n, std::enable_if_t<(n < sizeof...(Parameters))>> { \
    using type = Nth<n, Parameters...>;                                              \
  };
CAFFE_HOST_TAKES(Result (Class::*)(Parameters...))
CAFFE_HOST_TAKES(Result (Class::*)(Parameters...) const)
CAFFE_HOST_TAKES(Result (Class::*)(Parameters...) noexcept)
CAFFE_HOST_TAKES(Result (Class::*)(Parameters...) const noexcept)
#undef CAFFE_HOST_TAKES
template <typename Result, typename... Parameters, size_t n>
struct Takes<Result (*)(Parameters...), n, std::enable_if_t<(n < sizeof...(Parameters))>> {
  using type = Nth<n, Parameters...>;
};
template <typename F, size_t n>
struct Takes<F, n, std::void_t<decltype(&F::operator())>> : Takes<decltype(&F::operator()), n> {};
template <typename Parameter>
struct Argument {
  using type = gpu_plain<Parameter>;
};
template <typename T>
struct Argument<T&> {
  using type = std::conditional_t<std::is_const<T>::value, gpu_plain<T>, ByReference>;
};
// The parameter of a function, a pointer to one, or an object that is called.
template <typename F, size_t n>
using gpu_takes = typename Argument<typename Takes<std::decay_t<F>, n>::type>::type;

// Has a class an operator of its own for these two, as a member or beside it?
#define CAFFE_HOST_HAS_OWN(name, sign)                                                                  \
  template <typename A, typename B, typename = void>                                                    \
  struct name##Beside : std::false_type {};                                                             \
  template <typename A, typename B>                                                                     \
  struct name##Beside<A, B, std::void_t<decltype(operator sign(std::declval<A>(), std::declval<B>()))>> \
      : std::true_type {};                                                                              \
  template <typename A, typename B, typename = void>                                                    \
  struct name##Member : std::false_type {};                                                             \
  template <typename A, typename B>                                                                     \
  struct name##Member<A, B, std::void_t<decltype(std::declval<A>().operator sign(std::declval<B>()))>>  \
      : std::true_type {};                                                                              \
  template <typename A, typename B>                                                                     \
  constexpr bool has_own_##name = name##Beside<A, B>::value || name##Member<A, B>::value;
CAFFE_HOST_HAS_OWN(shifted_left, <<)
CAFFE_HOST_HAS_OWN(shifted_right, >>)
CAFFE_HOST_HAS_OWN(left, <<=)
CAFFE_HOST_HAS_OWN(right, >>=)
CAFFE_HOST_HAS_OWN(sum, +=)
CAFFE_HOST_HAS_OWN(difference, -=)
CAFFE_HOST_HAS_OWN(product, *=)
CAFFE_HOST_HAS_OWN(quotient, /=)
#undef CAFFE_HOST_HAS_OWN

// The right side of k += x and the like: the sum is a real number, and the conversion comes last.
template <typename Real, typename Way>
struct Addend {
  Real x;
};
template <typename To, typename Way>
struct Onto {
  template <typename From, std::enable_if_t<is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH auto operator=(From x) const {
    if constexpr (is_ruled<To, From>)
      return Addend<From, Way>{x};
    else
      return x;
  }
  template <typename From, std::enable_if_t<!is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH decltype(auto) operator=(From&& x) const {
    constexpr bool has_own = has_own_sum<To&, From&&> || has_own_difference<To&, From&&> ||
                             has_own_product<To&, From&&> || has_own_quotient<To&, From&&>;
    if constexpr (is_ruled<To, From> && !has_own)
      return Addend<real_of<gpu_plain<From>>, Way>{static_cast<real_of<gpu_plain<From>>>(x)};
    else
      return static_cast<From&&>(x);
  }
};
#define CAFFE_HOST_ONTO(sign, assignment)                                               \
  template <typename To, typename Real, typename Way>                                   \
  CAFFE_HOST_THROUGH To& operator assignment(To& to, Addend<Real, Way> addend) {        \
    return to = cast<gpu_plain<To>, Way>(static_cast<gpu_plain<To>>(to) sign addend.x); \
  }
CAFFE_HOST_ONTO(+, +=)
CAFFE_HOST_ONTO(-, -=)
CAFFE_HOST_ONTO(*, *=)
CAFFE_HOST_ONTO(/, /=)
#undef CAFFE_HOST_ONTO

// A shift by the width or more gives 0, or the sign, as PTX's shl and shr do. x86 takes the amount modulo the width.
template <typename Whole, typename Amount>
CAFFE_HOST_THROUGH Whole shifted_left(Whole x, Amount amount) {
  const unsigned int bits = static_cast<unsigned int>(amount);
  using Bits = std::make_unsigned_t<Whole>;
  return bits < 8 * sizeof(Whole) ? static_cast<Whole>(static_cast<Bits>(x) << bits) : Whole(0);
}
template <typename Whole, typename Amount>
CAFFE_HOST_THROUGH Whole shifted_right(Whole x, Amount amount) {
  const unsigned int bits = static_cast<unsigned int>(amount), most = 8 * sizeof(Whole) - 1;
  if constexpr (std::is_signed<Whole>::value)
    return x >> (bits < most ? bits : most);
  else
    return bits <= most ? x >> bits : Whole(0);
}

// What is shifted: a number, promoted, or an object with operators of its own.
template <typename T>
struct Shifted {
  T value;
};
struct Shift {};
inline constexpr Shift gpu_shift{};
template <typename T, typename = void>
struct IsBits : std::false_type {};
template <typename T>
struct IsBits<T, std::void_t<decltype(+std::declval<const T&>())>>
    : std::integral_constant<bool, is_number<T> && !is_real<T>> {};
template <typename T>
constexpr bool is_bits = IsBits<gpu_plain<T>>::value;

// A class that is an integer by a conversion of its own.
template <typename T, bool is_class = std::is_class<T>::value, typename = void>
struct IsIndex : std::false_type {};
template <typename T>
struct IsIndex<T, true, std::void_t<decltype(+std::declval<const T&>())>>
    : std::integral_constant<bool, is_whole<decltype(+std::declval<const T&>())>> {};
template <typename T>
constexpr bool is_index = IsIndex<gpu_plain<T>>::value;
#define CAFFE_HOST_SHIFT(sign, function)                                                                    \
  template <typename T, std::enable_if_t<is_bits<T>, int> = 0>                                              \
  CAFFE_HOST_THROUGH auto operator sign(T x, Shift) {                                                       \
    return Shifted<decltype(+x)>{+x};                                                                       \
  }                                                                                                         \
  template <typename T, std::enable_if_t<!is_bits<T>, int> = 0>                                             \
  CAFFE_HOST_THROUGH auto operator sign(T&& x, Shift) {                                                     \
    return Shifted<T&&>{static_cast<T&&>(x)};                                                               \
  }                                                                                                         \
  template <typename T, typename Amount, std::enable_if_t<is_bits<T>, int> = 0>                             \
  CAFFE_HOST_THROUGH decltype(auto) operator sign(Shifted<T> shifted, const Amount& amount) {               \
    if constexpr (is_number<Amount>)                                                                        \
      return function(shifted.value, amount);                                                               \
    else if constexpr (is_index<Amount> && !has_own_##function<T, const Amount&>)                           \
      return function(shifted.value, +amount);                                                              \
    else                                                                                                    \
      return static_cast<T>(shifted.value) sign amount;                                                     \
  }                                                                                                         \
  template <typename T, typename Amount, std::enable_if_t<!is_bits<T>, int> = 0>                            \
  CAFFE_HOST_THROUGH decltype(auto) operator sign(Shifted<T> shifted, Amount&& amount) {                    \
    if constexpr (is_index<T> && (is_index<Amount> || is_bits<Amount>) && !has_own_##function<T, Amount&&>) \
      return function(+shifted.value, +amount);                                                             \
    else                                                                                                    \
      return static_cast<T>(shifted.value) sign static_cast<Amount&&>(amount);                              \
  }
CAFFE_HOST_SHIFT(<<, shifted_left)
CAFFE_HOST_SHIFT(>>, shifted_right)
#undef CAFFE_HOST_SHIFT

// std::endl and std::ws are templates: their type is that of the stream which takes them.
template <typename T, typename = void>
struct Manipulates {};
template <typename T>
struct Manipulates<T, std::void_t<typename T::char_type, typename T::traits_type>> {
  using Out = std::basic_ostream<typename T::char_type, typename T::traits_type>;
  using In = std::basic_istream<typename T::char_type, typename T::traits_type>;
};
template <typename T, typename Stream = Manipulates<gpu_plain<T>>>
typename Stream::Out& operator<<(Shifted<T> shifted, typename Stream::Out& (*own)(typename Stream::Out&)) {
  return static_cast<T>(shifted.value) << own;
}
template <typename T, typename Stream = Manipulates<gpu_plain<T>>>
typename Stream::In& operator>>(Shifted<T> shifted, typename Stream::In& (*own)(typename Stream::In&)) {
  return static_cast<T>(shifted.value) >> own;
}

// The right side of x <<= n.
template <typename Amount>
struct Bits {
  Amount amount;
};
template <typename To>
struct By {
  template <typename Amount, std::enable_if_t<is_number<Amount>, int> = 0>
  CAFFE_HOST_THROUGH auto operator=(Amount x) const {
    if constexpr (is_bits<To>)
      return Bits<Amount>{x};
    else
      return x;
  }
  template <typename Amount, std::enable_if_t<!is_number<Amount>, int> = 0>
  CAFFE_HOST_THROUGH decltype(auto) operator=(Amount&& x) const {
    constexpr bool has_own = has_own_left<To&, Amount&&> || has_own_right<To&, Amount&&>;
    if constexpr (is_bits<To> && is_index<Amount> && !has_own)
      return Bits<decltype(+x)>{+x};
    else
      return static_cast<Amount&&>(x);
  }
};
template <typename To>
inline constexpr By<To> gpu_by{};
template <typename To, typename Amount>
CAFFE_HOST_THROUGH To& operator<<=(To& to, Bits<Amount> bits) {
  return to = static_cast<gpu_plain<To>>(shifted_left(+static_cast<gpu_plain<To>>(to), bits.amount));
}
template <typename To, typename Amount>
CAFFE_HOST_THROUGH To& operator>>=(To& to, Bits<Amount> bits) {
  return to = static_cast<gpu_plain<To>>(shifted_right(+static_cast<gpu_plain<To>>(to), bits.amount));
}

// What overloaded functions, or the operator of object[x], take: of a real number whatever integer that is.
template <typename Real>
struct Whole {
  Real x;
  template <typename To, std::enable_if_t<is_whole<To>, int> = 0>
  CAFFE_HOST_THROUGH operator To() const {
    return cast<To, WithBranch>(x);
  }
};
struct AsWhole {
  template <typename From>
  CAFFE_HOST_THROUGH decltype(auto) operator=(From&& x) const {
    if constexpr (is_real<gpu_plain<From>>)
      return Whole<real_of<gpu_plain<From>>>{static_cast<real_of<gpu_plain<From>>>(x)};
    else
      return static_cast<From&&>(x);
  }
};
inline constexpr AsWhole gpu_whole{};
// The same, unless the call has a function for a real number. `Call` makes it.
template <typename Call>
struct WholeUnless {
  template <typename From>
  CAFFE_HOST_THROUGH decltype(auto) operator=(From&& x) const {
    if constexpr (std::is_invocable<Call, AnyReal>::value)
      return static_cast<From&&>(x);
    else
      return gpu_whole = static_cast<From&&>(x);
  }
};
template <typename Call>
CAFFE_HOST_THROUGH WholeUnless<Call> gpu_whole_unless(const Call&) {
  return {};
}

#define CAFFE_HOST_CONVERSIONS(Way)                                                  \
  template <typename To>                                                             \
  inline constexpr ::cuda_host::Bound<To, Way> gpu_bound{};                          \
  template <typename To>                                                             \
  using GpuCast = ::cuda_host::Between<To, Way>;                                     \
  template <typename To>                                                             \
  inline constexpr ::cuda_host::Into<To, Way> gpu_into{};                            \
  template <typename To>                                                             \
  inline constexpr ::cuda_host::Onto<To, Way> gpu_onto{};                            \
  template <typename To, typename From, std::enable_if_t<is_number<From>, int> = 0>  \
  CAFFE_HOST_THROUGH To gpu_to(From x) {                                             \
    return ::cuda_host::cast<To, Way>(x);                                            \
  }                                                                                  \
  template <typename To, typename From, std::enable_if_t<!is_number<From>, int> = 0> \
  CAFFE_HOST_THROUGH To gpu_to(From&& x) {                                           \
    return ::cuda_host::cast<To, Way>(static_cast<From&&>(x));                       \
  }
CAFFE_HOST_CONVERSIONS(WithBranch)
namespace in_loop {
CAFFE_HOST_CONVERSIONS(WithoutBranch)
}
#undef CAFFE_HOST_CONVERSIONS

// A GPU stops at an access that is not at a multiple of its type's alignment; the processor reads on. A cast of such an
// address gives one where no memory is, so that an access, and nothing else, ends the kernel (src/host/host_signals.h).
constexpr int kNoMemory = 42;  // the lowest of four bits of an address of which others are in use
template <typename T, typename = void>
struct AlignmentOf : std::integral_constant<size_t, 1> {};
template <typename T>
struct AlignmentOf<T, std::void_t<decltype(sizeof(T))>> : std::integral_constant<size_t, alignof(T)> {};
template <typename To, typename From>
CAFFE_HOST_THROUGH To gpu_pointer(From&& x) {
  using Memory = std::remove_pointer_t<std::decay_t<From>>;
  constexpr bool is_reference = std::is_lvalue_reference<To>::value;
  using Seen = std::remove_pointer_t<std::remove_reference_t<To>>;
  constexpr size_t own = std::is_function<Seen>::value ? 1 : AlignmentOf<Seen>::value;
  constexpr size_t alignment = own < 16 ? own : 16;  // no access of a GPU is larger
  if constexpr (alignment <= AlignmentOf<Memory>::value && !std::is_integral<std::decay_t<From>>::value) {
    // Not (To)x: of a class that converts to Seen this would be a reference to a copy.
    if constexpr (is_reference)
      return *(std::remove_reference_t<To>*)__builtin_addressof(x);
    else
      return (To)x;
  } else if constexpr (is_reference) {
    return *gpu_pointer<Seen*>(&x);
  } else {
    const To pointer = (To)x;
    const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    return reinterpret_cast<To>(address ^ (address & (alignment - 1)) << kNoMemory);
  }
}
// The same of a pointer that a kernel takes.
template <typename T>
CAFFE_HOST_THROUGH T* gpu_parameter(T* x) {
  return gpu_pointer<T*>(reinterpret_cast<uintptr_t>(x));
}
// Stands between a cast's type and its operand.
template <typename To>
struct GpuPointer {
  To value;
  template <typename From>
  CAFFE_HOST_THROUGH GpuPointer(From&& x) : value(gpu_pointer<To>(static_cast<From&&>(x))) {}
  CAFFE_HOST_THROUGH operator To() const { return value; }
};

// An integer argument of CUDA's own functions.
template <typename T>
struct Given {
  T value;
  template <typename From, std::enable_if_t<is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH Given(From x) : value(cast<T, WithBranch>(x)) {}
  template <typename From, std::enable_if_t<!is_number<From>, int> = 0>
  CAFFE_HOST_THROUGH Given(const From& x) : value(cast<T, WithBranch>(x)) {}
  CAFFE_HOST_THROUGH operator T() const { return value; }
};
template <typename T>
using given = std::conditional_t<std::is_integral<T>::value, Given<T>, T>;
using Int = Given<int>;
using UInt = Given<unsigned int>;
using Int64 = Given<long long>;
using UInt64 = Given<unsigned long long>;
}  // namespace cuda_host
