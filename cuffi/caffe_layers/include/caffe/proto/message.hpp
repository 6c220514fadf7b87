// Message is the base of all classes that cuffi/caffe_layers/make/proto.py generates from a .proto.
//
// A message is a list of fields. A field has a number, and its wire bytes. The first access decodes them to a
// value of the accessor's type. A generated class adds inline accessors to Message, but no data. So classes
// of the same name from two .proto files, stock Caffe's in the core and a fork's in its layer, have the same
// layout, and keep each other's fields. And a header of 500 fields compiles fast.
//
// Even a const accessor may decode bytes. So threads may share a message only after its fields
// were read once.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "caffe/proto/repeated_field.hpp"

#define CAFFE_PROTO_INLINE inline __attribute__((always_inline))

namespace google {
namespace protobuf {
class Descriptor;
class Reflection;
class TextFormat;
}  // namespace protobuf
}  // namespace google

namespace caffe {

// A serialized FileDescriptorProto. DebugString, TextFormat and GetDescriptor need its names and types.
struct ProtoFile {
  const char* bytes;
  size_t size;
};

// The name of an enum's value, empty if the enum has no such number; and the value of a name.
const std::string& EnumName(const ProtoFile* file, const char* name, int value);
bool EnumNumber(const ProtoFile* file, const char* name, const std::string& value, int* number);

// The wire format of a number. Its C++ type determines the rest.
enum class Coding : uint8_t { kVarint, kZigzag, kFixed };

// A list of messages of any class, for Message, which does not know the class.
class RepeatedMessages {
 public:
  virtual ~RepeatedMessages() = default;
  virtual int Count() const = 0;
  virtual const class Message& At(int index) const = 0;
  virtual Message* Append() = 0;
};

class Message {
 public:
  Message(const Message& other);
  Message(Message&& other) noexcept;
  Message& operator=(const Message& other);
  Message& operator=(Message&& other) noexcept;
  virtual ~Message();

  void CopyFrom(const Message& other) { *this = other; }
  void MergeFrom(const Message& other);
  void Swap(Message* other);
  void Clear();

  // The parsers return false if the bytes are no message. They keep the fields before the error.
  bool ParseFromArray(const void* data, int size);
  bool ParseFromString(const std::string& data);
  bool ParseFromIstream(std::istream* input);
  bool MergeFromString(const std::string& data);
  void AppendToString(std::string* output) const;
  bool SerializeToString(std::string* output) const;
  bool SerializeToOstream(std::ostream* output) const;
  std::string SerializeAsString() const;
  int ByteSize() const { return static_cast<int>(ByteSizeLong()); }
  size_t ByteSizeLong() const;

  std::string DebugString() const;
  std::string ShortDebugString() const;
  std::string GetTypeName() const;
  const google::protobuf::Descriptor* GetDescriptor() const;
  const google::protobuf::Reflection* GetReflection() const;

 protected:
  Message(const ProtoFile* file, const char* name);

  bool HasField(int number) const { return Find(number) != nullptr; }
  void ClearField(int number);

  // Numbers: T is int32_t, int64_t, uint32_t, uint64_t, float, double or bool. An enum is an int32_t.
  template <typename T>
  T GetNumber(int number, Coding coding, T fallback) const;
  template <typename T>
  void SetNumber(int number, Coding coding, T value);
  template <typename T>
  const RepeatedField<T>& GetNumbers(int number, Coding coding) const;
  template <typename T>
  RepeatedField<T>* MutableNumbers(int number, Coding coding);

  const std::string& GetText(int number, const char* fallback, size_t size) const;
  std::string* MutableText(int number, const char* fallback, size_t size);
  const RepeatedPtrField<std::string>& GetTexts(int number) const;
  RepeatedPtrField<std::string>* MutableTexts(int number);

  template <typename T>
  const T& GetChild(int number) const {
    const Message* child = FindChild(number, &New<T>);
    return child ? static_cast<const T&>(*child) : Default<T>();
  }
  template <typename T>
  T* MutableChild(int number) {
    return static_cast<T*>(MakeChild(number, &New<T>));
  }
  template <typename T>
  const RepeatedPtrField<T>& GetChildren(int number) const {
    const RepeatedMessages* children = FindChildren(number, &NewList<T>);
    return children ? static_cast<const RepeatedPtrField<T>&>(*children) : Default<RepeatedPtrField<T>>();
  }
  template <typename T>
  RepeatedPtrField<T>* MutableChildren(int number) {
    return static_cast<RepeatedPtrField<T>*>(MakeChildren(number, &NewList<T>));
  }
  template <typename T>
  static const T& Default() {
    static const T& instance = *new T;  // never destroyed, because a layer's static may use it at exit
    return instance;
  }

 private:
  friend class google::protobuf::Reflection;
  friend class google::protobuf::TextFormat;
  struct Field;
  using Maker = Message* (*)();
  using ListMaker = RepeatedMessages* (*)();

  template <typename T>
  static Message* New() {
    return new T;
  }
  template <typename T>
  static RepeatedMessages* NewList() {
    return new RepeatedPtrField<T>;
  }

  // Calls host_services.text, which defines the kinds. Returns false if `input` is a wrong text.
  bool Convert(int64_t kind, const std::string& input, std::string* output) const;
  Field* Find(int number) const;
  Field* Make(int number);
  bool Merge(const char* data, size_t size);
  const Message* FindChild(int number, Maker make) const;
  Message* MakeChild(int number, Maker make);
  const RepeatedMessages* FindChildren(int number, ListMaker make) const;
  RepeatedMessages* MakeChildren(int number, ListMaker make);

  const ProtoFile* file_;
  const char* name_;  // the message's name in file_, from the package on
  // Sorted by number. Fields never move, because accessors return references.
  std::vector<std::unique_ptr<Field>> fields_;
};

// A list of messages of a known class.
template <typename T>
class RepeatedPtrField : public PointerList<T, Message>, public RepeatedMessages {
 public:
  using PointerList<T, Message>::PointerList;
  int Count() const override { return this->size(); }
  const Message& At(int index) const override { return this->Get(index); }
  Message* Append() override { return this->Add(); }
};

template <>
class RepeatedPtrField<std::string> : public PointerList<std::string> {
 public:
  using PointerList<std::string>::PointerList;
};

}  // namespace caffe

// The names in Google's protobuf library.
namespace google {
namespace protobuf {
using int32 = int32_t;
using int64 = int64_t;
using uint32 = uint32_t;
using uint64 = uint64_t;
using caffe::Message;
using caffe::RepeatedField;
using caffe::RepeatedPtrField;
}  // namespace protobuf
}  // namespace google
