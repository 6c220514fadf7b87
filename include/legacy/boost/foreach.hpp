#ifndef CAFFE_LEGACY_BOOST_FOREACH_HPP_
#define CAFFE_LEGACY_BOOST_FOREACH_HPP_

#define BOOST_FOREACH(variable, range) for (variable : range)

#endif  // CAFFE_LEGACY_BOOST_FOREACH_HPP_
