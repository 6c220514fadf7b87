// What SSD's DetectionOutput calls of boost's property tree: it makes a tree, walks over it, and writes it as JSON.
#pragma once

#include <list>
#include <stdexcept>
#include <string>
#include <utility>

#include "boost/lexical_cast.hpp"

namespace boost {
namespace property_tree {

class ptree_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A node with a text and children, each with a key. A path is a list of keys, separated by dots; "" is the node itself.
class ptree {
 public:
  typedef std::pair<const std::string, ptree> value_type;
  typedef std::list<value_type>::const_iterator const_iterator;
  typedef std::list<value_type>::iterator iterator;

  ptree() {}
  ptree(const ptree& other) = default;
  ptree& operator=(ptree other) {  // a std::list cannot assign pairs with const keys
    text_.swap(other.text_);
    children_.swap(other.children_);
    return *this;
  }
  const std::string& data() const { return text_; }
  iterator begin() { return children_.begin(); }
  iterator end() { return children_.end(); }
  const_iterator begin() const { return children_.begin(); }
  const_iterator end() const { return children_.end(); }
  size_t size() const { return children_.size(); }
  bool empty() const { return children_.empty(); }
  void clear() { *this = ptree(); }
  iterator push_back(const value_type& child) { return children_.insert(children_.end(), child); }

  const ptree& get_child(const std::string& path) const {
    const ptree* found = path.empty() ? this : nullptr;
    const size_t dot = path.find('.');
    for (const value_type& child : children_) {
      if (!found && child.first == path.substr(0, dot))
        found = dot == std::string::npos ? &child.second : &child.second.get_child(path.substr(dot + 1));
    }
    if (!found) throw ptree_error("No such node (" + path + ")");
    return *found;
  }
  ptree& get_child(const std::string& path) {
    return const_cast<ptree&>(static_cast<const ptree*>(this)->get_child(path));
  }
  ptree& add_child(const std::string& key, const ptree& tree) { return push_back({key, tree})->second; }

  template <typename T>
  T get_value() const {
    return lexical_cast<T>(text_);
  }
  template <typename T>
  T get(const std::string& path) const {
    return get_child(path).get_value<T>();
  }
  template <typename T>
  ptree& put(const std::string& key, const T& value) {
    ptree* node = this;
    if (!key.empty()) {
      iterator child = begin();
      while (child != end() && child->first != key) ++child;
      node = child == end() ? &add_child(key, ptree()) : &child->second;
    }
    node->text_ = lexical_cast<std::string>(value);
    return *node;
  }

 private:
  std::string text_;
  std::list<value_type> children_;
};

}  // namespace property_tree
}  // namespace boost
