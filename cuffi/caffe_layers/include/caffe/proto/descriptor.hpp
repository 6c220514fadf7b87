// The names and types of a message's fields, and access to fields by descriptors. Only what layers and their
// tests use.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "caffe/proto/message.hpp"

namespace google {
namespace protobuf {

// An enum's values, in the order of the .proto.
class EnumDescriptor {
 public:
  const std::string* FindName(int number) const;
  const int* FindNumber(const std::string& name) const;

 private:
  friend class DescriptorFile;
  std::vector<std::pair<std::string, int>> values_;
};

class FieldDescriptor {
 public:
  enum Type {  // the numbers of FieldDescriptorProto
    TYPE_DOUBLE = 1,
    TYPE_FLOAT,
    TYPE_INT64,
    TYPE_UINT64,
    TYPE_INT32,
    TYPE_FIXED64,
    TYPE_FIXED32,
    TYPE_BOOL,
    TYPE_STRING,
    TYPE_GROUP,
    TYPE_MESSAGE,
    TYPE_BYTES,
    TYPE_UINT32,
    TYPE_ENUM,
    TYPE_SFIXED32,
    TYPE_SFIXED64,
    TYPE_SINT32,
    TYPE_SINT64
  };

  const std::string& name() const { return name_; }
  int number() const { return number_; }
  int index() const { return index_; }
  Type type() const { return type_; }
  bool is_required() const { return label_ == 2; }
  bool is_repeated() const { return label_ == 3; }
  bool has_default_value() const { return !default_value_.empty(); }
  caffe::Coding coding() const;                                        // of a number
  const std::string& default_value() const { return default_value_; }  // as the .proto has it
  double default_value_double() const;
  float default_value_float() const { return static_cast<float>(default_value_double()); }
  int default_value_int32() const { return static_cast<int>(default_value_double()); }
  bool default_value_bool() const { return default_value_ == "true"; }

 private:
  friend class DescriptorFile;
  std::string name_, default_value_;
  int number_ = 0, label_ = 1, index_ = 0;
  Type type_ = TYPE_INT32;
};

class Descriptor {
 public:
  const std::string& full_name() const { return full_name_; }
  std::string name() const { return full_name_.substr(full_name_.rfind('.') + 1); }
  int field_count() const { return static_cast<int>(fields_.size()); }
  const FieldDescriptor* field(int index) const {
    return &fields_[caffe::CheckListIndex(index, field_count())];
  }
  const FieldDescriptor* FindFieldByName(const std::string& name) const;

 private:
  friend class DescriptorFile;
  std::string full_name_;
  std::vector<FieldDescriptor> fields_;
};

// All descriptors of one .proto. Get() reads it once and keeps it.
class DescriptorFile {
 public:
  static const DescriptorFile& Get(const caffe::ProtoFile* file);
  const Descriptor* FindMessage(const std::string& full_name) const;
  const EnumDescriptor* FindEnum(const std::string& full_name) const;

 private:
  explicit DescriptorFile(const caffe::ProtoFile* file);
  void AddMessage(const std::string& scope, const char* data, size_t size);
  void AddField(Descriptor* owner, const char* data, size_t size);
  void AddEnum(const std::string& scope, const char* data, size_t size);

  std::map<std::string, Descriptor> messages_;
  std::map<std::string, EnumDescriptor> enums_;
};

// Gets and sets a message's single numbers by descriptor. The descriptor's type must be the one in the
// function's name.
class Reflection {
 public:
  bool HasField(const Message& message, const FieldDescriptor* field) const;
  void ClearField(Message* message, const FieldDescriptor* field) const;
  int GetInt32(const Message& message, const FieldDescriptor* field) const;
  uint32 GetUInt32(const Message& message, const FieldDescriptor* field) const;
  float GetFloat(const Message& message, const FieldDescriptor* field) const;
  double GetDouble(const Message& message, const FieldDescriptor* field) const;
  bool GetBool(const Message& message, const FieldDescriptor* field) const;
  void SetInt32(Message* message, const FieldDescriptor* field, int value) const;
  void SetUInt32(Message* message, const FieldDescriptor* field, uint32 value) const;
  void SetFloat(Message* message, const FieldDescriptor* field, float value) const;
  void SetDouble(Message* message, const FieldDescriptor* field, double value) const;
  void SetBool(Message* message, const FieldDescriptor* field, bool value) const;
};

}  // namespace protobuf
}  // namespace google
