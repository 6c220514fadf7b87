#pragma once

#include <memory>

namespace boost {
template <typename T>
using shared_array = std::shared_ptr<T[]>;
}
