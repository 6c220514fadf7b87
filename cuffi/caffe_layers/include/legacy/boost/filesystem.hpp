#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <system_error>

namespace boost {
namespace filesystem {

using namespace std::filesystem;

// Each % of the model becomes a random hexadecimal digit.
inline path unique_path(const path& model = "%%%%-%%%%-%%%%-%%%%") {
  std::random_device random;
  std::string text = model.string();
  for (char& c : text) {
    if (c == '%') c = "0123456789abcdef"[random() % 16];
  }
  return text;
}

inline std::string basename(const path& p) { return p.stem().string(); }
inline std::string extension(const path& p) { return p.extension().string(); }

}  // namespace filesystem

namespace system {
using std::error_code;
}
}  // namespace boost
