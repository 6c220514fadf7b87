#ifndef CAFFE_LEGACY_BOOST_SHARED_ARRAY_HPP_
#define CAFFE_LEGACY_BOOST_SHARED_ARRAY_HPP_

#include <memory>

namespace boost {
template <typename T>
using shared_array = std::shared_ptr<T[]>;
}

#endif  // CAFFE_LEGACY_BOOST_SHARED_ARRAY_HPP_
