#ifndef CAFFE_LEGACY_BOOST_SMART_PTR_HPP_
#define CAFFE_LEGACY_BOOST_SMART_PTR_HPP_

#include "boost/scoped_ptr.hpp"
#include "boost/shared_array.hpp"
#include "boost/shared_ptr.hpp"

#endif  // CAFFE_LEGACY_BOOST_SMART_PTR_HPP_
