// thrust's pairs, tuples and iterators.
#pragma once

#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "caffe_thrust/memory.h"
#include "caffe_thrust/value_iterator.h"

namespace thrust {

using std::advance;
using std::distance;
using std::get;
using std::make_pair;
using std::make_reverse_iterator;
using std::make_tuple;
using std::next;
using std::pair;
using std::prev;
using std::reverse_iterator;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
template <typename Iterator>
using iterator_traits = std::iterator_traits<Iterator>;

using caffe::counting_iterator;
using caffe::make_counting_iterator;

template <typename T>
struct caffe_always {
  T value;
  caffe_always(T of = T()) : value(of) {}
  T operator()(std::ptrdiff_t) const { return value; }
  std::ptrdiff_t operator-(const caffe_always&) const { return 0; }
};
template <typename T>
using constant_iterator = caffe::value_iterator<caffe_always<T>, T>;
template <typename T>
constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}

template <typename Function, typename Iterator>
struct caffe_of {
  Iterator first;
  // Mutable, because the operator() of old functors is often not const.
  mutable Function function;
  auto operator()(std::ptrdiff_t i) const { return function(first[i]); }
  std::ptrdiff_t operator-(const caffe_of& other) const { return first - other.first; }
};
template <typename Function, typename Iterator>
using caffe_result = decltype(std::declval<caffe_of<Function, Iterator>>()(0));
template <typename Function, typename Iterator>
using transform_iterator =
    caffe::value_iterator<caffe_of<Function, Iterator>, std::decay_t<caffe_result<Function, Iterator>>,
                          caffe_result<Function, Iterator>>;
template <typename Function, typename Iterator>
transform_iterator<Function, Iterator> make_transform_iterator(Iterator first, Function function) {
  return transform_iterator<Function, Iterator>(first, function);
}

// The elements at places that another range names.
template <typename Iterator, typename Places>
struct caffe_permuted {
  Iterator first;
  Places places;
  decltype(auto) operator()(std::ptrdiff_t i) const { return first[places[i]]; }
  std::ptrdiff_t operator-(const caffe_permuted& other) const { return places - other.places; }
};
template <typename Iterator, typename Places>
using permutation_iterator = caffe::value_iterator<caffe_permuted<Iterator, Places>,
                                                   typename std::iterator_traits<Iterator>::value_type,
                                                   typename std::iterator_traits<Iterator>::reference>;
template <typename Iterator, typename Places>
permutation_iterator<Iterator, Places> make_permutation_iterator(Iterator first, Places places) {
  return permutation_iterator<Iterator, Places>(first, places);
}

// What is written here is dropped.
struct caffe_dropped {
  template <typename T>
  const caffe_dropped& operator=(const T&) const {
    return *this;
  }
};
typedef caffe::value_iterator<caffe_always<caffe_dropped>, caffe_dropped> caffe_discard_iterator;
template <typename System = void>
using discard_iterator = caffe_discard_iterator;
inline caffe_discard_iterator make_discard_iterator(std::ptrdiff_t at = 0) {
  return caffe_discard_iterator(caffe_dropped(), at);
}

// What is written here goes through a function first.
template <typename Function, typename Iterator>
struct caffe_written_through {
  Iterator first;
  mutable Function function;
  struct Place {
    const caffe_written_through& through;
    std::ptrdiff_t i;
    template <typename T>
    const Place& operator=(const T& value) const {
      through.first[i] = through.function(value);
      return *this;
    }
  };
  Place operator()(std::ptrdiff_t i) const { return {*this, i}; }
  std::ptrdiff_t operator-(const caffe_written_through& other) const { return first - other.first; }
};
template <typename Function, typename Iterator>
auto make_transform_output_iterator(Iterator first, Function function) {
  typedef caffe_written_through<Function, Iterator> Through;
  return caffe::value_iterator<Through, typename std::iterator_traits<Iterator>::value_type,
                               typename Through::Place>({first, function});
}

// The elements of several iterators, as a tuple of references. A write to the tuple writes to each of them.
template <typename... Iterators>
struct caffe_zipped {
  tuple<Iterators...> firsts;
  auto operator()(std::ptrdiff_t i) const {
    return std::apply(
        [i](const auto&... first) {
          return tuple<typename std::iterator_traits<Iterators>::reference...>(first[i]...);
        },
        firsts);
  }
  std::ptrdiff_t operator-(const caffe_zipped& other) const { return get<0>(firsts) - get<0>(other.firsts); }
};
template <typename... Iterators>
caffe::value_iterator<caffe_zipped<Iterators...>,
                      tuple<typename std::iterator_traits<Iterators>::value_type...>,
                      tuple<typename std::iterator_traits<Iterators>::reference...>>
make_zip_iterator(const tuple<Iterators...>& firsts) {
  return decltype(thrust::make_zip_iterator(firsts))({firsts});
}
template <typename First, typename Second, typename... More>
auto make_zip_iterator(First first, Second second, More... more) {
  return thrust::make_zip_iterator(std::make_tuple(first, second, more...));
}
template <typename Tuple>
using zip_iterator = decltype(thrust::make_zip_iterator(std::declval<Tuple>()));

}  // namespace thrust
