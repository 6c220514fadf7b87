#pragma once

#include <regex>

namespace boost {
using std::cmatch;
using std::regex;
using std::regex_error;
using std::regex_match;
using std::regex_replace;
using std::regex_search;
using std::smatch;
using std::sregex_iterator;
using std::sregex_token_iterator;
}  // namespace boost
