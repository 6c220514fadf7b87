#pragma once
#include <cstdint>
namespace boost {
using std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::intmax_t;
using std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::uintmax_t;
}  // namespace boost
