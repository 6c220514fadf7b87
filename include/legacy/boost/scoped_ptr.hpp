#pragma once

#include <memory>

namespace boost {

// std::unique_ptr by boost's name.
template <typename T>
class scoped_ptr : public std::unique_ptr<T> {
 public:
  explicit scoped_ptr(T* pointer = nullptr) : std::unique_ptr<T>(pointer) {}
};

template <typename T>
class scoped_array : public std::unique_ptr<T[]> {
 public:
  explicit scoped_array(T* pointer = nullptr) : std::unique_ptr<T[]>(pointer) {}
};

}  // namespace boost
