// Messages as text, the language of .prototxt files.
#ifndef CAFFE_PROTO_TEXT_FORMAT_HPP_
#define CAFFE_PROTO_TEXT_FORMAT_HPP_

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

#endif  // CAFFE_PROTO_TEXT_FORMAT_HPP_
