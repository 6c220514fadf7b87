#ifndef CAFFE_LEGACY_BOOST_NEXT_PRIOR_HPP_
#define CAFFE_LEGACY_BOOST_NEXT_PRIOR_HPP_

#include <iterator>

namespace boost {
using std::next;
template <typename Iterator>
Iterator prior(Iterator at) {
  return std::prev(at);
}
}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_NEXT_PRIOR_HPP_
