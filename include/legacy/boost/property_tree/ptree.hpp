#pragma once

#include <list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "boost/lexical_cast.hpp"

namespace boost {
namespace property_tree {

class ptree_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
class ptree_bad_path : public ptree_error {
  using ptree_error::ptree_error;
};
class ptree_bad_data : public ptree_error {
  using ptree_error::ptree_error;
};

// A node with a text and a list of children. Each child has a key, and several may have the same. A path is a
// list of keys, separated by dots. The empty path is the node itself.
class ptree {
 public:
  typedef std::string key_type;
  typedef std::string data_type;
  typedef std::pair<const std::string, ptree> value_type;
  typedef std::list<value_type>::iterator iterator;
  typedef std::list<value_type>::const_iterator const_iterator;

  ptree() {}
  explicit ptree(const std::string& text) : text_(text) {}
  ptree(const ptree& other) = default;
  // A std::list cannot assign pairs with const keys.
  ptree& operator=(ptree other) {
    text_.swap(other.text_);
    children_.swap(other.children_);
    return *this;
  }

  std::string& data() { return text_; }
  const std::string& data() const { return text_; }
  template <typename T>
  T get_value() const {
    return from_text<T>(text_);
  }
  template <typename T>
  void put_value(const T& value) {
    text_ = to_text(value);
  }

  iterator begin() { return children_.begin(); }
  iterator end() { return children_.end(); }
  const_iterator begin() const { return children_.begin(); }
  const_iterator end() const { return children_.end(); }
  size_t size() const { return children_.size(); }
  bool empty() const { return children_.empty(); }
  size_t count(const std::string& key) const {
    size_t found = 0;
    for (const value_type& child : children_) found += child.first == key;
    return found;
  }
  iterator push_back(const value_type& child) { return children_.insert(children_.end(), child); }
  void clear() { *this = ptree(); }

  const ptree& get_child(const std::string& path) const {
    const ptree* node = this;
    for (const std::string& key : keys_of(path)) {
      node = node->child(key);
      if (!node) throw ptree_bad_path("No such node (" + path + ")");
    }
    return *node;
  }
  ptree& get_child(const std::string& path) {
    return const_cast<ptree&>(static_cast<const ptree*>(this)->get_child(path));
  }
  ptree& put_child(const std::string& path, const ptree& tree) { return made(path, false) = tree; }
  ptree& add_child(const std::string& path, const ptree& tree) { return made(path, true) = tree; }

  template <typename T>
  T get(const std::string& path) const {
    return get_child(path).get_value<T>();
  }
  template <typename T>
  T get(const std::string& path, const T& otherwise) const {
    try {
      return get<T>(path);
    } catch (const ptree_error&) {
      return otherwise;
    }
  }
  template <typename T>
  ptree& put(const std::string& path, const T& value) {
    ptree& node = made(path, false);
    node.put_value(value);
    return node;
  }
  template <typename T>
  ptree& add(const std::string& path, const T& value) {
    ptree& node = made(path, true);
    node.put_value(value);
    return node;
  }

 private:
  static std::list<std::string> keys_of(const std::string& path) {
    std::list<std::string> keys;
    if (path.empty()) return keys;
    size_t start = 0;
    for (size_t dot; (dot = path.find('.', start)) != std::string::npos; start = dot + 1) {
      keys.push_back(path.substr(start, dot - start));
    }
    keys.push_back(path.substr(start));
    return keys;
  }

  const ptree* child(const std::string& key) const {
    for (const value_type& one : children_) {
      if (one.first == key) return &one.second;
    }
    return nullptr;
  }

  // The node at a path. Makes missing nodes. `another`: always makes the last one.
  ptree& made(const std::string& path, bool another) {
    ptree* node = this;
    const std::list<std::string> keys = keys_of(path);
    for (const std::string& key : keys) {
      const ptree* found = another && &key == &keys.back() ? nullptr : node->child(key);
      node = found ? const_cast<ptree*>(found) : &node->push_back(value_type(key, ptree()))->second;
    }
    return *node;
  }

  // A number is written with enough digits to read back the same value.
  template <typename T>
  static std::string to_text(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else {
      return lexical_cast<std::string>(value);
    }
  }

  template <typename T>
  static T from_text(const std::string& text) {
    try {
      if constexpr (std::is_same_v<T, bool>) {
        return text == "true" || (text != "false" && lexical_cast<bool>(text));
      } else {
        return lexical_cast<T>(text);
      }
    } catch (const bad_lexical_cast&) {
      throw ptree_bad_data("conversion of data to type failed: " + text);
    }
  }

  std::string text_;
  std::list<value_type> children_;
};

// Keys and data are always texts here.
template <typename Key, typename Data>
using basic_ptree = ptree;

}  // namespace property_tree
}  // namespace boost
