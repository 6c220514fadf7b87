// The base classes of function objects. std removed them in 2017, and thrust in CUDA 13.
#pragma once

namespace thrust {

template <typename Argument, typename Result>
struct unary_function {
  typedef Argument argument_type;
  typedef Result result_type;
};
template <typename First, typename Second, typename Result>
struct binary_function {
  typedef First first_argument_type;
  typedef Second second_argument_type;
  typedef Result result_type;
};

}  // namespace thrust
