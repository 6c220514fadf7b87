#pragma once

#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace boost {

class bad_lexical_cast : public std::bad_cast {
 public:
  const char* what() const noexcept override { return "bad lexical cast"; }
};

// Converts by text, and must use all of it. A string result is the whole text, with blanks.
template <typename To, typename From>
To lexical_cast(const From& from) {
  std::stringstream text;
  if constexpr (std::is_floating_point_v<From>) text.precision(std::numeric_limits<From>::max_digits10);
  text << from;
  if constexpr (std::is_same_v<To, std::string>) {
    return text.str();
  } else {
    To to;
    if (!(text >> to) || text.peek() != std::stringstream::traits_type::eof()) throw bad_lexical_cast();
    return to;
  }
}

}  // namespace boost
