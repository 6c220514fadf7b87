#ifndef CAFFE_LEGACY_BOOST_WEAK_PTR_HPP_
#define CAFFE_LEGACY_BOOST_WEAK_PTR_HPP_

#include "boost/shared_ptr.hpp"

#endif  // CAFFE_LEGACY_BOOST_WEAK_PTR_HPP_
