// Python's protobuf converts text to wire format and back, called by host_services.
#include "caffe/proto/text_format.hpp"

#include <glog/logging.h>

#include "caffe/host_services.hpp"

namespace caffe {

bool Message::Convert(int64_t kind, const std::string& input, std::string* output) const {
  CHECK(host_services.text) << name_ << " as text: needs Python's protobuf, and this program has no Python";
  const auto take = [](void* to, const char* data, int64_t size) {
    static_cast<std::string*>(to)->assign(data, size);
  };
  const int64_t done =
      host_services.text(kind, file_->bytes, file_->size, name_, input.data(), input.size(), take, output);
  CHECK(done) << name_ << " as text: Python's protobuf failed";
  if (done == 1) return true;
  LOG(ERROR) << "Error parsing text-format " << name_ << ": " << *output;
  return false;
}

std::string Message::DebugString() const {
  std::string text;
  Convert(0, SerializeAsString(), &text);
  return text;
}

std::string Message::ShortDebugString() const {
  std::string text;
  Convert(1, SerializeAsString(), &text);
  return text;
}

}  // namespace caffe

namespace google {
namespace protobuf {

bool TextFormat::ParseFromString(const std::string& text, Message* message) {
  message->Clear();
  std::string wire;
  return message->Convert(2, text, &wire) && message->MergeFromString(wire);
}

bool TextFormat::MergeFromString(const std::string& text, Message* message) {
  std::string wire;
  return message->Convert(3, text, &wire) && message->MergeFromString(wire);
}

bool TextFormat::PrintToString(const Message& message, std::string* output) {
  *output = message.DebugString();
  return true;
}

}  // namespace protobuf
}  // namespace google
