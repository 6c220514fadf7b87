// Messages as text, the language of .prototxt files.
#pragma once

#include <string>

#include "caffe/proto/message.hpp"

namespace google {
namespace protobuf {

class TextFormat {
 public:
  // Returns false and logs the error if the text is wrong or a required field is missing.
  static bool ParseFromString(const std::string& text, Message* message);
  // As above, but required fields may be missing from the text, because `message` may have them.
  static bool MergeFromString(const std::string& text, Message* message);
  static bool PrintToString(const Message& message, std::string* output);
};

}  // namespace protobuf
}  // namespace google
