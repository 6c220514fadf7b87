#include "caffe/proto/descriptor.hpp"

#include <stdlib.h>

#include <memory>
#include <mutex>

#include "caffe/fatal.hpp"
#include "wire.hpp"

namespace google {
namespace protobuf {
namespace {

using caffe::WireField;
using caffe::WireReader;

// Calls f(field) for each field in a descriptor's bytes.
template <typename F>
void ForEachField(const char* data, size_t size, F f) {
  WireReader reader(data, size);
  for (WireField field; !reader.done();) {
    if (!reader.Next(&field)) throw caffe::Error("protobuf: a descriptor is damaged");
    f(field);
  }
}

std::string String(const WireField& field) { return std::string(field.data, field.size); }

int Integer(const WireField& field) {
  uint64_t value = 0;
  WireReader(field.data, field.size).Varint(&value);
  return static_cast<int>(value);
}

std::string NameOf(const char* data, size_t size) {
  std::string name;
  ForEachField(data, size, [&](const WireField& field) {
    if (field.number == 1) name = String(field);
  });
  return name;
}

template <typename Map>
const typename Map::mapped_type* FindIn(const Map& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

const std::string* EnumDescriptor::FindName(int number) const {
  for (const auto& value : values_) {
    if (value.second == number) return &value.first;
  }
  return nullptr;
}

const int* EnumDescriptor::FindNumber(const std::string& name) const {
  for (const auto& value : values_) {
    if (value.first == name) return &value.second;
  }
  return nullptr;
}

caffe::Coding FieldDescriptor::coding() const {
  switch (type_) {
    case TYPE_SINT32:
    case TYPE_SINT64:
      return caffe::Coding::kZigzag;
    case TYPE_FIXED32:
    case TYPE_FIXED64:
    case TYPE_SFIXED32:
    case TYPE_SFIXED64:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
      return caffe::Coding::kFixed;
    default:
      return caffe::Coding::kVarint;
  }
}

double FieldDescriptor::default_value_double() const { return strtod(default_value_.c_str(), nullptr); }

const FieldDescriptor* Descriptor::FindFieldByName(const std::string& name) const {
  for (const FieldDescriptor& field : fields_) {
    if (field.name() == name) return &field;
  }
  return nullptr;
}

const DescriptorFile& DescriptorFile::Get(const caffe::ProtoFile* file) {
  static std::mutex& mutex = *new std::mutex;
  static auto& files = *new std::map<const caffe::ProtoFile*, std::unique_ptr<const DescriptorFile>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<const DescriptorFile>& known = files[file];
  if (!known) known.reset(new DescriptorFile(file));
  return *known;
}

const Descriptor* DescriptorFile::FindMessage(const std::string& full_name) const {
  return FindIn(messages_, full_name);
}

const EnumDescriptor* DescriptorFile::FindEnum(const std::string& full_name) const {
  return FindIn(enums_, full_name);
}

DescriptorFile::DescriptorFile(const caffe::ProtoFile* file) {
  ForEachField(file->bytes, file->size, [&](const WireField& field) {
    if (field.number == 4) AddMessage(".caffe", field.data, field.size);
    if (field.number == 5) AddEnum(".caffe", field.data, field.size);
  });
}

void DescriptorFile::AddMessage(const std::string& scope, const char* data, size_t size) {
  const std::string name = scope + "." + NameOf(data, size);
  Descriptor& message = messages_[name];
  message.full_name_ = name.substr(1);
  ForEachField(data, size, [&](const WireField& field) {
    if (field.number == 2) AddField(&message, field.data, field.size);
    if (field.number == 3) AddMessage(name, field.data, field.size);
    if (field.number == 4) AddEnum(name, field.data, field.size);
  });
}

void DescriptorFile::AddField(Descriptor* owner, const char* data, size_t size) {
  FieldDescriptor result;
  result.index_ = owner->field_count();
  ForEachField(data, size, [&](const WireField& field) {
    switch (field.number) {
      case 1:
        result.name_ = String(field);
        break;
      case 3:
        result.number_ = Integer(field);
        break;
      case 4:
        result.label_ = Integer(field);
        break;
      case 5:
        result.type_ = static_cast<FieldDescriptor::Type>(Integer(field));
        break;
      case 7:
        result.default_value_ = String(field);
        break;
    }
  });
  owner->fields_.push_back(std::move(result));
}

void DescriptorFile::AddEnum(const std::string& scope, const char* data, size_t size) {
  EnumDescriptor& result = enums_[scope + "." + NameOf(data, size)];
  ForEachField(data, size, [&](const WireField& value) {
    if (value.number != 2) return;
    int number = 0;
    ForEachField(value.data, value.size, [&](const WireField& field) {
      if (field.number == 2) number = Integer(field);
    });
    result.values_.emplace_back(NameOf(value.data, value.size), number);
  });
}

bool Reflection::HasField(const Message& message, const FieldDescriptor* field) const {
  return message.HasField(field->number());
}

void Reflection::ClearField(Message* message, const FieldDescriptor* field) const {
  message->ClearField(field->number());
}

#define CAFFE_PROTO_REFLECTION(Name, T, fallback)                                             \
  T Reflection::Get##Name(const Message& message, const FieldDescriptor* field) const {       \
    return message.GetNumber<T>(field->number(), field->coding(), fallback);                  \
  }                                                                                           \
  void Reflection::Set##Name(Message* message, const FieldDescriptor* field, T value) const { \
    message->SetNumber<T>(field->number(), field->coding(), value);                           \
  }
CAFFE_PROTO_REFLECTION(Int32, int, field->default_value_int32())
CAFFE_PROTO_REFLECTION(UInt32, uint32, static_cast<uint32>(field->default_value_double()))
CAFFE_PROTO_REFLECTION(Float, float, field->default_value_float())
CAFFE_PROTO_REFLECTION(Double, double, field->default_value_double())
CAFFE_PROTO_REFLECTION(Bool, bool, field->default_value_bool())
#undef CAFFE_PROTO_REFLECTION

}  // namespace protobuf
}  // namespace google

namespace caffe {

const std::string& EnumName(const ProtoFile* file, const char* name, int value) {
  static const std::string& none = *new std::string;
  const auto* type = google::protobuf::DescriptorFile::Get(file).FindEnum(std::string(".") + name);
  const std::string* found = type->FindName(value);
  return found ? *found : none;
}

bool EnumNumber(const ProtoFile* file, const char* name, const std::string& value, int* number) {
  const auto* type = google::protobuf::DescriptorFile::Get(file).FindEnum(std::string(".") + name);
  const int* found = type->FindNumber(value);
  if (found) *number = *found;
  return found != nullptr;
}

std::string Message::GetTypeName() const { return name_; }

const google::protobuf::Descriptor* Message::GetDescriptor() const {
  return google::protobuf::DescriptorFile::Get(file_).FindMessage(std::string(".") + name_);
}

const google::protobuf::Reflection* Message::GetReflection() const {
  static const google::protobuf::Reflection reflection;
  return &reflection;
}

}  // namespace caffe
