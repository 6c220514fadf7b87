// Names of boost that C++ has, and two of its macros. cuffi/caffe_layers/make/includes.py lists the headers that this one stands for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "boost/shared_ptr.hpp"
#include "caffe_thrust/value_iterator.h"

#define BOOST_FOREACH(variable, range) for (variable : range)
#define BOOST_STATIC_ASSERT(...) static_assert((__VA_ARGS__), #__VA_ARGS__)

namespace boost {
using caffe::counting_iterator;
using caffe::make_counting_iterator;
using std::array;
using std::atomic;
using std::function;
using std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::intmax_t;
using std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::uintmax_t;
using std::unordered_map;

template <typename T>
using shared_array = std::shared_ptr<T[]>;

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
