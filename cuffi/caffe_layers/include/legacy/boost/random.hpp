#pragma once

#include <random>
#include <type_traits>

namespace boost {

using std::mt19937;

template <typename Real = double>
using uniform_real = std::uniform_real_distribution<Real>;
template <typename Real = double>
using normal_distribution = std::normal_distribution<Real>;
template <typename Integer = int>
using uniform_int = std::uniform_int_distribution<Integer>;
template <typename Real = double>
class bernoulli_distribution : public std::bernoulli_distribution {
 public:
  using std::bernoulli_distribution::bernoulli_distribution;
};

// A distribution and its generator. The generator is held by value, reference or pointer.
template <typename Generator, typename Distribution>
class variate_generator {
 public:
  typedef typename Distribution::result_type result_type;

  variate_generator(Generator generator, Distribution distribution)
      : generator_(generator), distribution_(distribution) {}
  result_type operator()() {
    if constexpr (std::is_pointer_v<Generator>) {
      return distribution_(*generator_);
    } else {
      return distribution_(generator_);
    }
  }

 private:
  Generator generator_;
  Distribution distribution_;
};

namespace random {
using boost::uniform_int;
template <typename Integer = int>
using uniform_int_distribution = std::uniform_int_distribution<Integer>;
template <typename Real = double>
using uniform_real_distribution = std::uniform_real_distribution<Real>;
template <typename Real = double>
using normal_distribution = std::normal_distribution<Real>;
using std::mt19937;
}  // namespace random

}  // namespace boost
