// The wire format of protocol buffers, read and written.
#pragma once

#include <stdint.h>
#include <string.h>

#include <string>

namespace caffe {

enum WireType : uint32_t {
  kWireVarint = 0,
  kWire64 = 1,
  kWireBytes = 2,
  kWireGroup = 3,
  kWireGroupEnd = 4,
  kWire32 = 5
};

// One field of a message: its number, its wire type and its contents, without tag and length.
struct WireField {
  uint32_t number, type;
  const char* data;
  size_t size;
};

class WireReader {
 public:
  WireReader(const char* data, size_t size) : at_(data), end_(data + size) {}
  bool done() const { return at_ == end_; }
  const char* position() const { return at_; }

  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(*at_++);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return true;
    }
    return false;
  }

  template <typename T>
  bool Fixed(T* value) {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return false;
    memcpy(value, at_, sizeof(T));  // the wire format and our machines are both little-endian
    at_ += sizeof(T);
    return true;
  }

  bool Next(WireField* field) {
    uint64_t tag;
    if (!Varint(&tag) || tag >> 32 || tag >> 3 == 0) return false;
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<uint32_t>(tag & 7);
    uint64_t size = 0;
    const char* start = at_;
    switch (field->type) {
      case kWireVarint: {
        uint64_t ignored;
        if (!Varint(&ignored)) return false;
        at_ = (size = at_ - start, start);
        break;
      }
      case kWire64:
        size = 8;
        break;
      case kWire32:
        size = 4;
        break;
      case kWireBytes:
        if (!Varint(&size)) return false;
        break;
      case kWireGroup: {
        WireField inner;
        do {
          if (!Next(&inner)) return false;
        } while (inner.type != kWireGroupEnd);
        if (inner.number != field->number) return false;
        at_ = (size = at_ - start, start);
        break;
      }
      case kWireGroupEnd:
        break;
      default:
        return false;
    }
    if (size > static_cast<size_t>(end_ - at_)) return false;
    field->data = at_;
    field->size = size;
    at_ += size;
    return true;
  }

 private:
  const char* at_;
  const char* end_;
};

inline void AppendVarint(uint64_t value, std::string* output) {
  for (; value >= 0x80; value >>= 7) output->push_back(static_cast<char>(value | 0x80));
  output->push_back(static_cast<char>(value));
}

inline void AppendTag(uint32_t number, WireType type, std::string* output) {
  AppendVarint(number << 3 | type, output);
}

inline void AppendBytes(uint32_t number, const std::string& bytes, std::string* output) {
  AppendTag(number, kWireBytes, output);
  AppendVarint(bytes.size(), output);
  output->append(bytes);
}

}  // namespace caffe
