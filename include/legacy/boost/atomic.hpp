#pragma once

#include <atomic>

namespace boost {
using std::atomic;
}
