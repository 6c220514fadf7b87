// What stands behind the classes that tools/caffe/proto.py makes of a .proto: one Message for all of them.
//
// A message is a list of fields, each a number with the wire bytes that came for it and, once an accessor has
// asked, a value of the accessor's type. A generated class adds accessors to Message and no data, and each
// accessor is inlined into its caller. So classes of one name from two .proto files, stock Caffe's in the
// core and a fork's in its layer, are one thing in memory and hand each other fields they know nothing of;
// and a header of 500 fields costs little to compile.
//
// An accessor may decode bytes even if it is const: share a message among threads only after it has been read
// once.
#ifndef CAFFE_PROTO_MESSAGE_HPP_
#define CAFFE_PROTO_MESSAGE_HPP_

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

// A serialized FileDescriptorProto: names and types, for those who ask (DebugString, TextFormat,
// GetDescriptor).
struct ProtoFile {
  const char* bytes;
  size_t size;
};

// A value's name, empty if the enum has none of that number; and the other way round.
const std::string& EnumName(const ProtoFile* file, const char* name, int value);
bool EnumNumber(const ProtoFile* file, const char* name, const std::string& value, int* number);

// How a number lies on the wire: all else follows from its C++ type.
enum class Coding : uint8_t { kVarint, kZigzag, kFixed };

// Repeated messages as Message sees them, which does not know their class.
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

  // The parsers say false if the bytes are no message, and keep what came before the bad place.
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

  // Of a number: int32_t, int64_t, uint32_t, uint64_t, float, double or bool. An enum is an int32_t.
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
    static const T& instance = *new T;  // never destroyed: a static of a layer's may use it at exit
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

  // By host_services.text, whose kinds these are. False if `input` is a text that is wrong.
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
  std::vector<std::unique_ptr<Field>>
      fields_;  // by number; each stays where it is, for accessors hand out references
};

// A list of messages: RepeatedMessages besides.
template <typename T>
class RepeatedPtrField : public PointerList<T>, public RepeatedMessages {
 public:
  using PointerList<T>::PointerList;
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

// The names that code written for protobuf's library uses.
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

#endif  // CAFFE_PROTO_MESSAGE_HPP_
