#ifndef CAFFE_LEGACY_BOOST_UTILITY_HPP_
#define CAFFE_LEGACY_BOOST_UTILITY_HPP_

#include "boost/next_prior.hpp"

#endif  // CAFFE_LEGACY_BOOST_UTILITY_HPP_
