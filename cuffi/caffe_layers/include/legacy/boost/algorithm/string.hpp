#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace boost {

struct is_any_of {
  explicit is_any_of(std::string set) : characters(std::move(set)) {}
  bool operator()(char c) const { return characters.find(c) != std::string::npos; }
  std::string characters;
};

inline auto is_space() {
  return [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
}

enum token_compress_mode_type { token_compress_off, token_compress_on };

template <typename Container, typename Predicate>
Container& split(Container& parts, const std::string& text, Predicate separates,
                 token_compress_mode_type compress = token_compress_off) {
  parts.clear();
  std::string part;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!separates(text[i])) {
      part += text[i];
    } else if (compress == token_compress_off || i == 0 || !separates(text[i - 1])) {
      parts.insert(parts.end(), part);
      part.clear();
    }
  }
  parts.insert(parts.end(), part);
  return parts;
}

template <typename Predicate>
std::string trim_copy_if(const std::string& text, Predicate unwanted) {
  const auto wanted = [&](char c) { return !unwanted(c); };
  const auto first = std::find_if(text.begin(), text.end(), wanted);
  const auto last = std::find_if(text.rbegin(), std::make_reverse_iterator(first), wanted).base();
  return std::string(first, last);
}
inline std::string trim_copy(const std::string& text) { return trim_copy_if(text, is_space()); }
inline void trim(std::string& text) { text = trim_copy(text); }
template <typename Predicate>
void trim_if(std::string& text, Predicate unwanted) {
  text = trim_copy_if(text, unwanted);
}

inline std::string to_lower_copy(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}
inline std::string to_upper_copy(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}
inline void to_lower(std::string& text) { text = to_lower_copy(text); }
inline void to_upper(std::string& text) { text = to_upper_copy(text); }
inline bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}
inline bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
inline bool iequals(const std::string& a, const std::string& b) {
  return to_lower_copy(a) == to_lower_copy(b);
}

template <typename Container>
std::string join(const Container& parts, const std::string& between) {
  std::string text;
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (part != parts.begin()) text += between;
    text += *part;
  }
  return text;
}

}  // namespace boost
