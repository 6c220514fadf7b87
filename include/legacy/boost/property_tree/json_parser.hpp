// Writes a property tree as JSON, with boost's layout, and reads it. A tree has only texts, so every value is
// written as a string. The reader keeps a number's text, and true, false and null as texts, too.
#pragma once

#include <cctype>
#include <cstdio>
#include <fstream>
#include <istream>
#include <iterator>
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

// A node whose children have no keys is an array. The outermost node is always an object.
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

// Reads one text, by RFC 8259. A surrogate pair of two \u escapes becomes one character, in UTF-8.
class JsonReader {
 public:
  JsonReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  ptree Document() {
    ptree tree = Value();
    Blanks();
    if (at_ != text_.size()) Fail("garbage after data");
    return tree;
  }

 private:
  [[noreturn]] void Fail(const char* what) const {
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    throw json_parser_error(file_ + "(" + std::to_string(line) + "): " + what);
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Blanks() {
    while (at_ < text_.size() && std::string(" \t\r\n").find(text_[at_]) != std::string::npos) ++at_;
  }
  bool Take(char c) {
    Blanks();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }

  ptree Value() {
    Blanks();
    if (Take('{')) return Members('}', true);
    if (Take('[')) return Members(']', false);
    if (Peek() == '"') return ptree(Text());
    const size_t start = at_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) || Peek() == '-' || Peek() == '+' ||
           Peek() == '.')
      ++at_;
    const std::string word = text_.substr(start, at_ - start);
    const bool number =
        !word.empty() && (word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0])));
    if (!number && word != "true" && word != "false" && word != "null") Fail("expected value");
    return ptree(word);
  }

  ptree Members(char closing, bool named) {
    ptree tree;
    if (Take(closing)) return tree;
    do {
      std::string key;
      if (named) {
        Blanks();
        if (Peek() != '"') Fail("expected key string");
        key = Text();
        if (!Take(':')) Fail("expected ':'");
      }
      tree.push_back(ptree::value_type(key, Value()));
    } while (Take(','));
    if (!Take(closing)) Fail(named ? "expected '}' or ','" : "expected ']' or ','");
    return tree;
  }

  std::string Text() {
    std::string text;
    for (++at_; Peek() != '"'; ++at_) {
      if (at_ >= text_.size() || static_cast<unsigned char>(Peek()) < ' ') Fail("unterminated string");
      if (Peek() != '\\') {
        text += Peek();
        continue;
      }
      ++at_;
      static const std::string letters = "\"\\/bfnrt", special = "\"\\/\b\f\n\r\t";
      const size_t which = letters.find(Peek());
      if (Peek() == 'u') {
        AddCharacter(&text);
      } else if (Peek() && which != std::string::npos) {
        text += special[which];
      } else {
        Fail("invalid escape sequence");
      }
    }
    ++at_;
    return text;
  }

  // Reads the four digits of a \u escape. The position is at the u before, and at the last digit after.
  unsigned Digits() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (!std::isxdigit(static_cast<unsigned char>(Peek()))) Fail("invalid escape sequence");
      code = code * 16 + std::stoi(text_.substr(at_, 1), nullptr, 16);
    }
    return code;
  }
  void AddCharacter(std::string* text) {
    unsigned code = Digits();
    if (code >= 0xD800 && code < 0xDC00 && text_.compare(at_ + 1, 2, "\\u") == 0) {
      at_ += 2;
      code = 0x10000 + ((code - 0xD800) << 10) + (Digits() - 0xDC00);
    }
    const unsigned lead = code < 0x80      ? code
                          : code < 0x800   ? 0xC0 | code >> 6
                          : code < 0x10000 ? 0xE0 | code >> 12
                                           : 0xF0 | code >> 18;
    *text += static_cast<char>(lead);
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    for (int i = more - 1; i >= 0; --i) *text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  }

  const std::string& text_;
  const std::string file_;
  size_t at_ = 0;
};

inline void read_json(std::istream& in, ptree& tree) {
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  tree = JsonReader(text, "<unspecified file>").Document();
}

inline void read_json(const std::string& file, ptree& tree) {
  std::ifstream in(file);
  if (!in) throw json_parser_error(file + ": cannot open file");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  tree = JsonReader(text, file).Document();
}

}  // namespace json_parser

using json_parser::json_parser_error;
using json_parser::read_json;
using json_parser::write_json;

}  // namespace property_tree
}  // namespace boost
