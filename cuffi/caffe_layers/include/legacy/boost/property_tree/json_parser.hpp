// Writes a property tree as JSON, with boost's layout: every value is a string. It reads none: Python's json does.
#pragma once

#include <ostream>
#include <string>

#include "boost/property_tree/ptree.hpp"

namespace boost {
namespace property_tree {
namespace json_parser {

inline std::string json_quoted(const std::string& text) {
  static const char hex[] = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '/') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < ' ') {
      quoted += std::string("\\u00") + hex[c / 16] + hex[c % 16];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// A node whose children have no keys is an array. The outermost node is always an object.
inline void write_json(std::ostream& out, const ptree& node, bool pretty = true, int depth = 0) {
  if (depth && node.empty()) {
    out << json_quoted(node.data());
    return;
  }
  const bool array = depth && node.begin()->first.empty();
  const std::string line = pretty ? "\n" + std::string(4 * depth, ' ') : "";
  const char* comma = "";
  out << (array ? '[' : '{');
  for (const ptree::value_type& child : node) {
    out << comma << line << (pretty ? "    " : "");
    if (!array) out << json_quoted(child.first) << (pretty ? ": " : ":");
    write_json(out, child.second, pretty, depth + 1);
    comma = ",";
  }
  out << line << (array ? ']' : '}');
  if (!depth && pretty) out << '\n';
}

}  // namespace json_parser

using json_parser::write_json;

template <typename Source>
void read_json(const Source&, const ptree&) {
  throw ptree_error("read_json: the toolkit has no reader of JSON: read the file in Python, by json.load");
}

}  // namespace property_tree
}  // namespace boost
