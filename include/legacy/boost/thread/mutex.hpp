#ifndef CAFFE_LEGACY_BOOST_THREAD_MUTEX_HPP_
#define CAFFE_LEGACY_BOOST_THREAD_MUTEX_HPP_

#include <condition_variable>
#include <mutex>

namespace boost {

// A class of its own, as headers declare boost::mutex without including anything.
class mutex : public std::mutex {
 public:
  typedef std::unique_lock<mutex> scoped_lock;
};

using std::lock_guard;
using std::unique_lock;
typedef std::condition_variable_any condition_variable;

}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_THREAD_MUTEX_HPP_
