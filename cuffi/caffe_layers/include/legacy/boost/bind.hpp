#pragma once

#include <functional>

namespace boost {
using std::bind;
using std::cref;
using std::ref;
}  // namespace boost

using namespace std::placeholders;  // global, as in boost
