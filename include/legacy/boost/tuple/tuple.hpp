#ifndef CAFFE_LEGACY_BOOST_TUPLE_TUPLE_HPP_
#define CAFFE_LEGACY_BOOST_TUPLE_TUPLE_HPP_

#include <tuple>

namespace boost {
using std::get;
using std::make_tuple;
using std::tie;
using std::tuple;
namespace tuples {
using std::get;
using std::ignore;
}  // namespace tuples
}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_TUPLE_TUPLE_HPP_
