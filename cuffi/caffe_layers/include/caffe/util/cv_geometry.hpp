// OpenCV's points, sizes and rectangles: the names with which layers of detectors compute, without images.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace cv {

// A real number becomes the nearest integer, an even one if two are as near.
template <typename To, typename From>
To saturate_cast(From value) {
  if (std::is_integral<To>::value && std::is_floating_point<From>::value)
    return static_cast<To>(std::nearbyint(value));
  return static_cast<To>(value);
}

template <typename T>
struct Point_ {
  T x = 0, y = 0;
  Point_() {}
  Point_(T x, T y) : x(x), y(y) {}
  template <typename U>
  operator Point_<U>() const {
    return {saturate_cast<U>(x), saturate_cast<U>(y)};
  }
  Point_ operator+(const Point_& other) const { return {x + other.x, y + other.y}; }
  Point_ operator-(const Point_& other) const { return {x - other.x, y - other.y}; }
  bool operator==(const Point_& other) const { return x == other.x && y == other.y; }
  bool operator!=(const Point_& other) const { return !(*this == other); }
};

template <typename T>
struct Size_ {
  T width = 0, height = 0;
  Size_() {}
  Size_(T width, T height) : width(width), height(height) {}
  template <typename U>
  operator Size_<U>() const {
    return {saturate_cast<U>(width), saturate_cast<U>(height)};
  }
  T area() const { return width * height; }
  bool operator==(const Size_& other) const { return width == other.width && height == other.height; }
  bool operator!=(const Size_& other) const { return !(*this == other); }
};

template <typename T>
struct Rect_ {
  T x = 0, y = 0, width = 0, height = 0;
  Rect_() {}
  Rect_(T x, T y, T width, T height) : x(x), y(y), width(width), height(height) {}
  Rect_(const Point_<T>& at, const Size_<T>& size) : Rect_(at.x, at.y, size.width, size.height) {}
  // Two opposite corners.
  Rect_(const Point_<T>& a, const Point_<T>& b)
      : Rect_(std::min(a.x, b.x), std::min(a.y, b.y), std::max(a.x, b.x) - std::min(a.x, b.x),
              std::max(a.y, b.y) - std::min(a.y, b.y)) {}
  template <typename U>
  operator Rect_<U>() const {
    return {saturate_cast<U>(x), saturate_cast<U>(y), saturate_cast<U>(width), saturate_cast<U>(height)};
  }
  Point_<T> tl() const { return {x, y}; }
  Point_<T> br() const { return {x + width, y + height}; }
  Size_<T> size() const { return {width, height}; }
  T area() const { return width * height; }
  bool contains(const Point_<T>& at) const {
    return x <= at.x && at.x < x + width && y <= at.y && at.y < y + height;
  }
  bool operator==(const Rect_& other) const { return tl() == other.tl() && size() == other.size(); }
  bool operator!=(const Rect_& other) const { return !(*this == other); }
  // What both cover; an empty rectangle at 0, 0 if that is nothing.
  Rect_ operator&(const Rect_& other) const {
    const T left = std::max(x, other.x), top = std::max(y, other.y);
    const T across = std::min(x + width, other.x + other.width) - left;
    const T down = std::min(y + height, other.y + other.height) - top;
    return across <= 0 || down <= 0 ? Rect_() : Rect_(left, top, across, down);
  }
  Rect_& operator&=(const Rect_& other) { return *this = *this & other; }
};

typedef Point_<int> Point;
typedef Point_<int> Point2i;
typedef Point_<float> Point2f;
typedef Point_<double> Point2d;
typedef Size_<int> Size;
typedef Size_<float> Size2f;
typedef Rect_<int> Rect;
typedef Rect_<float> Rect2f;
typedef Rect_<double> Rect2d;

}  // namespace cv
