// A property tree as JSON, laid out as boost does. Every value is written as a string: a tree knows of no
// numbers.
#ifndef CAFFE_LEGACY_BOOST_PROPERTY_TREE_JSON_PARSER_HPP_
#define CAFFE_LEGACY_BOOST_PROPERTY_TREE_JSON_PARSER_HPP_

#include <cstdio>
#include <fstream>
#include <ostream>
#include <string>

#include "boost/property_tree/ptree.hpp"

namespace boost {
namespace property_tree {
namespace json_parser {

class json_parser_error : public ptree_error {
  using ptree_error::ptree_error;
};

inline std::string json_quoted(const std::string& text) {
  static const std::string special = "\"\\/\b\f\n\r\t", letters = "\"\\/bfnrt";
  std::string quoted = "\"";
  for (const char c : text) {
    const size_t at = special.find(c);
    char code[8];
    if (at != std::string::npos) {
      quoted += {'\\', letters[at]};
    } else if (static_cast<unsigned char>(c) < ' ') {
      std::snprintf(code, sizeof code, "\\u%04X", c);
      quoted += code;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// Children without keys make an array. The outermost node is an object, whatever it has.
inline void write_json_node(std::ostream& out, const ptree& node, bool pretty, int depth) {
  if (!node.data().empty() && (depth == 0 || !node.empty())) {
    throw json_parser_error("ptree contains data that cannot be represented in JSON format");
  }
  if (depth > 0 && node.empty()) {
    out << json_quoted(node.data());
    return;
  }
  const bool array = depth > 0 && node.count("") == node.size();
  const std::string line = pretty ? "\n" + std::string(4 * depth, ' ') : "";
  const char* comma = "";
  out << (array ? '[' : '{');
  for (const ptree::value_type& child : node) {
    out << comma << line << (pretty ? "    " : "");
    if (!array) out << json_quoted(child.first) << (pretty ? ": " : ":");
    write_json_node(out, child.second, pretty, depth + 1);
    comma = ",";
  }
  out << line << (array ? ']' : '}');
}

inline void write_json(std::ostream& out, const ptree& tree, bool pretty = true) {
  write_json_node(out, tree, pretty, 0);
  if (pretty) out << '\n';
  out.flush();
  if (!out) throw json_parser_error("write error");
}

inline void write_json(const std::string& file, const ptree& tree) {
  std::ofstream out(file);
  if (!out) throw json_parser_error(file + ": cannot open file");
  write_json(out, tree);
}

}  // namespace json_parser

using json_parser::json_parser_error;
using json_parser::write_json;

}  // namespace property_tree
}  // namespace boost

#endif  // CAFFE_LEGACY_BOOST_PROPERTY_TREE_JSON_PARSER_HPP_
