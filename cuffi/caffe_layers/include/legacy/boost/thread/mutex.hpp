#pragma once

#include <condition_variable>
#include <mutex>

namespace boost {

// A class, not an alias, because headers forward-declare boost::mutex.
class mutex : public std::mutex {
 public:
  typedef std::unique_lock<mutex> scoped_lock;
};

using std::lock_guard;
using std::unique_lock;
typedef std::condition_variable_any condition_variable;

}  // namespace boost
