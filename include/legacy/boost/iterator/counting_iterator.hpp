#ifndef CAFFE_LEGACY_BOOST_ITERATOR_COUNTING_ITERATOR_HPP_
#define CAFFE_LEGACY_BOOST_ITERATOR_COUNTING_ITERATOR_HPP_

#include <cstddef>
#include <iterator>

namespace boost {

// An iterator over the numbers first, first + 1, ....
template <typename Number>
class counting_iterator {
 public:
  typedef std::random_access_iterator_tag iterator_category;
  typedef Number value_type;
  typedef std::ptrdiff_t difference_type;
  typedef const Number* pointer;
  typedef const Number& reference;

  counting_iterator() : number_() {}
  explicit counting_iterator(Number number) : number_(number) {}

  reference operator*() const { return number_; }
  Number operator[](difference_type n) const { return Number(number_ + n); }
  counting_iterator& operator++() { return *this += 1; }
  counting_iterator& operator--() { return *this += -1; }
  counting_iterator operator++(int) { return counting_iterator(number_++); }
  counting_iterator operator--(int) { return counting_iterator(number_--); }
  counting_iterator& operator+=(difference_type n) {
    number_ = Number(number_ + n);
    return *this;
  }
  counting_iterator& operator-=(difference_type n) { return *this += -n; }
  counting_iterator operator+(difference_type n) const { return counting_iterator(*this) += n; }
  counting_iterator operator-(difference_type n) const { return counting_iterator(*this) -= n; }
  difference_type operator-(const counting_iterator& other) const {
    return difference_type(number_) - difference_type(other.number_);
  }

  bool operator==(const counting_iterator& other) const { return number_ == other.number_; }
  bool operator!=(const counting_iterator& other) const { return number_ != other.number_; }
  bool operator<(const counting_iterator& other) const { return number_ < other.number_; }
  bool operator>(const counting_iterator& other) const { return number_ > other.number_; }
  bool operator<=(const counting_iterator& other) const { return number_ <= other.number_; }
  bool operator>=(const counting_iterator& other) const { return number_ >= other.number_; }

 private:
  Number number_;
};

template <typename Number>
counting_iterator<Number> make_counting_iterator(Number number) {
  return counting_iterator<Number>(number);
}

}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_ITERATOR_COUNTING_ITERATOR_HPP_
