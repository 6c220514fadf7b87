#ifndef CAFFE_LEGACY_BOOST_REF_HPP_
#define CAFFE_LEGACY_BOOST_REF_HPP_

#include "boost/bind.hpp"

#endif  // CAFFE_LEGACY_BOOST_REF_HPP_
