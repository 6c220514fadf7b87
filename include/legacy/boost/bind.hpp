#ifndef CAFFE_LEGACY_BOOST_BIND_HPP_
#define CAFFE_LEGACY_BOOST_BIND_HPP_

#include <functional>

namespace boost {
using std::bind;
using std::cref;
using std::ref;
}  // namespace boost

using namespace std::placeholders;  // global, as in boost

#endif  // CAFFE_LEGACY_BOOST_BIND_HPP_
