#pragma once

#include <iterator>

namespace boost {
using std::next;
template <typename Iterator>
Iterator prior(Iterator at) {
  return std::prev(at);
}
}  // namespace boost
