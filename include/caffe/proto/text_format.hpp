// Messages as text, the language of .prototxt files.
#ifndef CAFFE_PROTO_TEXT_FORMAT_HPP_
#define CAFFE_PROTO_TEXT_FORMAT_HPP_

#include <string>

#include "caffe/proto/message.hpp"

namespace google {
namespace protobuf {

class TextFormat {
 public:
  // False if the text is wrong, and what is wrong with it on stderr, as protobuf's own does.
  static bool ParseFromString(const std::string& text, Message* message);
  static bool MergeFromString(const std::string& text, Message* message);
  static bool PrintToString(const Message& message, std::string* output);
};

}  // namespace protobuf
}  // namespace google

#endif  // CAFFE_PROTO_TEXT_FORMAT_HPP_
