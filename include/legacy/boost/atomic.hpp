#ifndef CAFFE_LEGACY_BOOST_ATOMIC_HPP_
#define CAFFE_LEGACY_BOOST_ATOMIC_HPP_

#include <atomic>

namespace boost {
using std::atomic;
}

#endif  // CAFFE_LEGACY_BOOST_ATOMIC_HPP_
