// AT_DISPATCH_*: run a lambda with the type of a dtype as scalar_t. The dtype may be x.type(), as until 2019.
#pragma once

#include "functions.h"

#define AT_PRIVATE_CASE(name, number, ...)                               \
  case number: {                                                         \
    using name C10_UNUSED = typename ::at::detail::OfType<number>::type; \
    return __VA_ARGS__();                                                \
  }
namespace at {
namespace detail {
template <ScalarType type>
struct OfType;
#define AT_OF(type_, name, number)  \
  template <>                       \
  struct OfType<ScalarType::name> { \
    using type = type_;             \
  };
AT_FORALL_TYPES(AT_OF)
AT_FORALL_FURTHER_TYPES(AT_OF)
#undef AT_OF
// Without the program's own types, which no macro can list.
[[noreturn]] __attribute__((cold, noinline)) inline void not_dispatched(const char* name, ScalarType type,
                                                                        const char* file, int line) {
  throw c10::Error(str("\"", name, "\" not implemented for '", c10::toString(type),
                       "': convert the tensor, such as x.float(), or add the dtype to the AT_DISPATCH at ",
                       file, ":", line),
                   c10::kNotImplementedError);
}
}  // namespace detail
}  // namespace at

#define AT_DISPATCH_CASE(number, ...) AT_PRIVATE_CASE(scalar_t, number, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                              \
  [&] {                                                                  \
    const ::c10::ScalarType at_type = ::at::detail::scalar_type(TYPE);   \
    switch (at_type) {                                                   \
      __VA_ARGS__                                                        \
      default:                                                           \
        ::at::detail::not_dispatched(NAME, at_type, __FILE__, __LINE__); \
    }                                                                    \
  }()
#define AT_C(name, ...) AT_PRIVATE_CASE(scalar_t, ::c10::ScalarType::name, __VA_ARGS__)
#define AT_CASES_FLOATING(...) AT_C(Double, __VA_ARGS__) AT_C(Float, __VA_ARGS__)
#define AT_CASES_INTEGRAL(...) \
  AT_C(Byte, __VA_ARGS__)      \
  AT_C(Char, __VA_ARGS__) AT_C(Int, __VA_ARGS__) AT_C(Long, __VA_ARGS__) AT_C(Short, __VA_ARGS__)
#define AT_CASES_ALL(...) AT_CASES_FLOATING(__VA_ARGS__) AT_CASES_INTEGRAL(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES AT_CASES_FLOATING
#define AT_DISPATCH_CASE_INTEGRAL_TYPES AT_CASES_INTEGRAL
#define AT_DISPATCH_CASE_ALL_TYPES AT_CASES_ALL
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_FLOATING(__VA_ARGS__) AT_C(Half, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_ALL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_ALL(__VA_ARGS__) AT_C(Half, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                     \
                     AT_CASES_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_ALL(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                \
                     AT_CASES_ALL(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...)                    \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                \
                     AT_CASES_ALL(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__))
#define AT_CASES_COMPLEX(...) AT_C(ComplexDouble, __VA_ARGS__) AT_C(ComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES AT_CASES_COMPLEX
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_FLOATING(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(A, TYPE, NAME, ...)           \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                  \
                     AT_CASES_FLOATING(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__) \
                         AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, TYPE, NAME, ...)        \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                  \
                     AT_CASES_FLOATING(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__) \
                         AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_CASES_ALL(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(                                             \
      TYPE, NAME, AT_CASES_ALL(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(A, B, TYPE, NAME, ...)        \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                             \
                     AT_CASES_ALL(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__) \
                         AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, TYPE, NAME, ...)                       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                               \
                     AT_CASES_ALL(__VA_ARGS__) AT_CASES_COMPLEX(__VA_ARGS__) AT_DISPATCH_CASE( \
                         A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_C(Half, __VA_ARGS__) AT_C(BFloat16, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(A, B, D, TYPE, NAME, ...)                    \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                     \
                     AT_CASES_FLOATING(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(D, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                   \
                     AT_PRIVATE_CASE(index_t, ::c10::ScalarType::Int, __VA_ARGS__) \
                         AT_PRIVATE_CASE(index_t, ::c10::ScalarType::Long, __VA_ARGS__))
