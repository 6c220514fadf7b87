// The lists in messages: RepeatedField of numbers, and RepeatedPtrField (by PointerList) of
// strings and messages.
#pragma once

#include <stddef.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace caffe {

// Throws caffe::Error. Google's protobuf library reads past the end instead.
[[noreturn]] void ListIndexError(int index, int size);

inline size_t CheckListIndex(int index, int size) {
  if (index < 0 || index >= size) ListIndexError(index, size);
  return static_cast<size_t>(index);
}

template <typename T>
class RepeatedField {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  using size_type = int;

  RepeatedField() = default;
  template <typename Iterator>
  RepeatedField(Iterator first, Iterator last) {
    Add(first, last);
  }

  int size() const { return static_cast<int>(items_.size()); }
  bool empty() const { return items_.empty(); }
  int Capacity() const { return static_cast<int>(items_.capacity()); }
  const T& Get(int index) const { return items_[CheckListIndex(index, size())].value; }
  T* Mutable(int index) { return &items_[CheckListIndex(index, size())].value; }
  void Set(int index, T value) { *Mutable(index) = value; }
  const T& operator[](int index) const { return Get(index); }
  T& operator[](int index) { return *Mutable(index); }
  const T& at(int index) const { return Get(index); }
  T* Add() { return &items_.emplace_back().value; }
  void Add(T value) { *Add() = value; }
  template <typename Iterator>
  void Add(Iterator first, Iterator last) {
    for (; first != last; ++first) Add(static_cast<T>(*first));
  }
  void RemoveLast() { Truncate(static_cast<int>(CheckListIndex(size() - 1, size()))); }
  void Truncate(int size) { items_.resize(size); }
  void Resize(int size, T value) { items_.resize(size, Item{value}); }
  void Reserve(int size) { items_.reserve(size); }
  void Clear() { items_.clear(); }
  void CopyFrom(const RepeatedField& other) { *this = other; }
  void MergeFrom(const RepeatedField& other) {
    items_.insert(items_.end(), other.items_.begin(), other.items_.end());
  }
  void Swap(RepeatedField* other) { items_.swap(other->items_); }
  void SwapElements(int a, int b) { std::swap(*Mutable(a), *Mutable(b)); }

  const T* data() const { return reinterpret_cast<const T*>(items_.data()); }
  T* mutable_data() { return reinterpret_cast<T*>(items_.data()); }
  iterator begin() { return mutable_data(); }
  iterator end() { return mutable_data() + size(); }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }

 private:
  struct Item {
    T value = T();
  };
  std::vector<Item> items_;  // not of T, because std::vector<bool> holds no bools
};

// Iterates over a vector of pointers to T or to a base of it, and dereferences them.
template <typename T, typename Position>
class PointerIterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = ptrdiff_t;
  using pointer = T*;
  using reference = T&;

  PointerIterator() = default;
  explicit PointerIterator(Position position) : position_(position) {}
  T& operator*() const { return static_cast<T&>(**position_); }
  T* operator->() const { return &**this; }
  T& operator[](ptrdiff_t n) const { return static_cast<T&>(*position_[n]); }
  PointerIterator& operator++() { return *this += 1; }
  PointerIterator& operator--() { return *this -= 1; }
  PointerIterator operator++(int) { return PointerIterator(position_++); }
  PointerIterator operator--(int) { return PointerIterator(position_--); }
  PointerIterator& operator+=(ptrdiff_t n) { return position_ += n, *this; }
  PointerIterator& operator-=(ptrdiff_t n) { return position_ -= n, *this; }
  PointerIterator operator+(ptrdiff_t n) const { return PointerIterator(position_ + n); }
  PointerIterator operator-(ptrdiff_t n) const { return PointerIterator(position_ - n); }
  ptrdiff_t operator-(PointerIterator other) const { return position_ - other.position_; }
  bool operator==(PointerIterator other) const { return position_ == other.position_; }
  bool operator!=(PointerIterator other) const { return position_ != other.position_; }
  bool operator<(PointerIterator other) const { return position_ < other.position_; }

 private:
  Position position_{};
};

// Elements do not move when the list grows. They are held as pointers to a base, so that the compiler makes one vector for
// all classes of messages: a vector of its own for each class was a third of what a caffe.pb.h takes to compile.
template <typename T, typename Base = T>
class PointerList {
 public:
  using value_type = T;
  using size_type = int;
  using iterator = PointerIterator<T, typename std::vector<std::unique_ptr<Base>>::iterator>;
  using const_iterator =
      PointerIterator<const T, typename std::vector<std::unique_ptr<Base>>::const_iterator>;

  PointerList() = default;
  PointerList(const PointerList& other) { MergeFrom(other); }
  PointerList(PointerList&& other) noexcept = default;
  template <typename Iterator>
  PointerList(Iterator first, Iterator last) {
    Add(first, last);
  }
  PointerList& operator=(const PointerList& other) {
    if (this != &other) {
      Clear();
      MergeFrom(other);
    }
    return *this;
  }
  PointerList& operator=(PointerList&& other) noexcept = default;

  int size() const { return static_cast<int>(items_.size()); }
  bool empty() const { return items_.empty(); }
  const T& Get(int index) const { return static_cast<const T&>(*items_[CheckListIndex(index, size())]); }
  T* Mutable(int index) { return static_cast<T*>(items_[CheckListIndex(index, size())].get()); }
  const T& operator[](int index) const { return Get(index); }
  T& operator[](int index) { return *Mutable(index); }
  const T& at(int index) const { return Get(index); }
  T* Add() { return Keep(new T); }
  void Add(const T& value) { Keep(new T(value)); }
  template <typename Iterator>
  void Add(Iterator first, Iterator last) {
    for (; first != last; ++first) *Add() = *first;
  }
  void AddAllocated(T* value) { Keep(value); }
  void RemoveLast() { DeleteSubrange(size() - 1, 1); }
  void DeleteSubrange(int start, int count) {
    if (count <= 0) return;
    CheckListIndex(start, size());
    CheckListIndex(start + count - 1, size());
    items_.erase(items_.begin() + start, items_.begin() + start + count);
  }
  void Reserve(int size) { items_.reserve(size); }
  void Clear() { items_.clear(); }
  void CopyFrom(const PointerList& other) { *this = other; }
  void MergeFrom(const PointerList& other) {
    for (int i = 0, n = other.size(); i < n; ++i) Add(other.Get(i));
  }
  void Swap(PointerList* other) { items_.swap(other->items_); }
  void SwapElements(int a, int b) {
    items_[CheckListIndex(a, size())].swap(items_[CheckListIndex(b, size())]);
  }

  iterator begin() { return iterator(items_.begin()); }
  iterator end() { return iterator(items_.end()); }
  const_iterator begin() const { return const_iterator(items_.begin()); }
  const_iterator end() const { return const_iterator(items_.end()); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }

 private:
  T* Keep(T* value) {
    items_.emplace_back(static_cast<Base*>(value));
    return value;
  }

  std::vector<std::unique_ptr<Base>> items_;
};

template <typename T>
class RepeatedPtrField;

}  // namespace caffe
