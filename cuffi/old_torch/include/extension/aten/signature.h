// The types of a function's parameters, as words for an error.
#pragma once

#include "bind.h"

namespace aten {

// "at::Tensor, double", out of what types_of() says; "" of no parameter.
inline std::string types_in(const std::string& said) {
  const size_t from = said.find_first_of("{<", said.rfind("A = ")), to = said.find_last_of("}>");
  if (from == std::string::npos || to == std::string::npos || from > to) return "";
  std::string types = said.substr(from + 1, to - from - 1);
  static const char* const plain[][2] = {
      {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
      {"std::basic_string<char>", "std::string"},
      {"at::", ""},
      {"c10::", ""}};
  for (const auto& [said_as, known_as] : plain)
    for (size_t at; (at = types.find(said_as)) != std::string::npos;)
      types.replace(at, strlen(said_as), known_as);
  for (size_t at; (at = types.find(", std::allocator<")) != std::string::npos;)
    types.erase(at, types.find(" >", at) - at);
  return types;
}
// "; it is scale(Tensor, double)": of a function whose parameters have no names.
inline std::string signature(const Bound& b) {
  if (!b.names.empty() || !*b.types) return "";
  return "; it is " + b.name + "(" + types_in(b.types) + ")";
}

}  // namespace aten
