#include "caffe/proto/message.hpp"

#include <algorithm>
#include <istream>
#include <iterator>
#include <mutex>
#include <ostream>
#include <type_traits>
#include <unordered_set>
#include <variant>

#include "caffe/fatal.hpp"
#include "wire.hpp"

namespace caffe {
namespace {

template <typename T>
constexpr bool kIsNumber = std::is_arithmetic_v<T>;

template <typename T>
WireType NumberWireType(Coding coding) {
  if (!std::is_floating_point_v<T> && coding != Coding::kFixed) return kWireVarint;
  return sizeof(T) == 8 ? kWire64 : kWire32;
}

template <typename T>
bool ReadNumber(WireReader* reader, Coding coding, T* value) {
  if constexpr (!std::is_floating_point_v<T>) {
    if (coding != Coding::kFixed) {
      uint64_t bits;
      if (!reader->Varint(&bits)) return false;
      if (coding == Coding::kZigzag) bits = bits >> 1 ^ (0 - (bits & 1));
      *value = static_cast<T>(bits);
      return true;
    }
  }
  return reader->Fixed(value);
}

template <typename T>
void AppendNumber(T value, Coding coding, std::string* output) {
  if constexpr (!std::is_floating_point_v<T>) {
    if (coding != Coding::kFixed) {
      uint64_t bits =
          static_cast<uint64_t>(value);  // a negative one as 64 bits, whatever T's size: the format's rule
      if (coding == Coding::kZigzag) bits = bits << 1 ^ (static_cast<int64_t>(bits) < 0 ? ~uint64_t{0} : 0);
      AppendVarint(bits, output);
      return;
    }
  }
  output->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

[[noreturn]] void Malformed(int number) {
  throw Error("protobuf message: field " + std::to_string(number) + " does not parse: its bytes are damaged");
}

}  // namespace

void ListIndexError(int index, int size) {
  throw Error("protobuf message: element " + std::to_string(index) + " of a repeated field that has " +
              std::to_string(size));
}

struct Message::Field {
  using Child = std::unique_ptr<Message>;
  using Children = std::unique_ptr<RepeatedMessages>;
  using Texts = RepeatedPtrField<std::string>;

  int number = 0;
  Coding coding = Coding::kVarint;
  std::string pending;  // wire bytes of whole fields, with tags, that are not yet merged into the value
  std::variant<std::monostate, int32_t, int64_t, uint32_t, uint64_t, float, double, bool, std::string, Child,
               RepeatedField<int32_t>, RepeatedField<int64_t>, RepeatedField<uint32_t>,
               RepeatedField<uint64_t>, RepeatedField<float>, RepeatedField<double>, RepeatedField<bool>,
               Texts, Children>
      value;

  void Append(std::string* output) const {
    std::visit([&](const auto& held) { AppendValue(held, output); }, value);
    output->append(pending);
  }

  // The value as a T, or nullptr if the field is empty. A value of another type is first written to bytes,
  // and those are read as a T.
  template <typename T, typename Merge>
  T* As(Merge merge) {
    if (!std::holds_alternative<T>(value) && !std::holds_alternative<std::monostate>(value)) {
      std::string bytes;
      Append(&bytes);
      pending.swap(bytes);
      value = std::monostate();
    }
    if (!pending.empty()) {
      std::string bytes;
      bytes.swap(pending);
      WireReader reader(bytes.data(), bytes.size());
      for (WireField field; !reader.done();) {
        if (!reader.Next(&field)) Malformed(number);
        merge(field);
      }
    }
    return std::get_if<T>(&value);
  }

  template <typename T>
  T& Hold() {
    if (!std::holds_alternative<T>(value)) value = T();
    return std::get<T>(value);
  }

  template <typename T>
  T* AsNumber(Coding wanted) {
    const auto merge = [&](const WireField& field) {
      if (field.type != NumberWireType<T>(wanted)) return;  // bytes of another type count as unknown
      WireReader reader(field.data, field.size);
      ReadNumber(&reader, wanted, &Hold<T>());  // which field's bytes are, as a whole
    };
    T* held = As<T>(merge);
    coding = wanted;
    return held;
  }

  template <typename T>
  RepeatedField<T>* AsNumbers(Coding wanted) {
    const auto merge = [&](const WireField& field) {
      if (field.type != NumberWireType<T>(wanted) && field.type != kWireBytes) return;
      RepeatedField<T>& list = Hold<RepeatedField<T>>();
      WireReader reader(field.data, field.size);
      while (!reader.done()) {  // one element, or a packed run of them
        if (!ReadNumber(&reader, wanted, list.Add())) Malformed(number);
      }
    };
    RepeatedField<T>* held = As<RepeatedField<T>>(merge);
    coding = wanted;
    return held;
  }

  std::string* AsText() {
    return As<std::string>([&](const WireField& field) {
      if (field.type == kWireBytes) Hold<std::string>().assign(field.data, field.size);
    });
  }

  Texts* AsTexts() {
    return As<Texts>([&](const WireField& field) {
      if (field.type == kWireBytes) Hold<Texts>().Add()->assign(field.data, field.size);
    });
  }

  Child* AsChild(Maker make) {
    return As<Child>([&](const WireField& field) {
      if (field.type != kWireBytes) return;
      Child& child = Hold<Child>();
      if (!child) child.reset(make());
      if (!child->Merge(field.data, field.size)) Malformed(number);
    });
  }

  Children* AsChildren(ListMaker make) {
    return As<Children>([&](const WireField& field) {
      if (field.type != kWireBytes) return;
      Children& children = Hold<Children>();
      if (!children) children.reset(make());
      if (!children->Append()->Merge(field.data, field.size)) Malformed(number);
    });
  }

 private:
  void AppendValue(std::monostate, std::string*) const {}

  template <typename T, typename = std::enable_if_t<kIsNumber<T>>>
  void AppendValue(T held, std::string* output) const {
    AppendTag(number, NumberWireType<T>(coding), output);
    AppendNumber(held, coding, output);
  }

  template <typename T>
  void AppendValue(const RepeatedField<T>& held, std::string* output) const {
    if (held.empty()) return;
    std::string packed;
    for (T value : held) AppendNumber(value, coding, &packed);
    AppendBytes(number, packed, output);
  }

  void AppendValue(const std::string& held, std::string* output) const { AppendBytes(number, held, output); }

  void AppendValue(const Texts& held, std::string* output) const {
    for (const std::string& text : held) AppendBytes(number, text, output);
  }

  void AppendValue(const Child& held, std::string* output) const {
    AppendBytes(number, held->SerializeAsString(), output);
  }

  void AppendValue(const Children& held, std::string* output) const {
    for (int i = 0; i < held->Count(); ++i) AppendBytes(number, held->At(i).SerializeAsString(), output);
  }
};

// --------------------------------------------------------------------------------------- the whole message

Message::Message(const ProtoFile* file, const char* name) : file_(file), name_(name) {}
Message::Message(const Message& other) : file_(other.file_), name_(other.name_) { MergeFrom(other); }
Message::Message(Message&& other) noexcept = default;
Message::~Message() = default;

Message& Message::operator=(const Message& other) {
  if (this == &other) return *this;
  const std::string bytes = other.SerializeAsString();  // before Clear(), because other may be a part of this
  Clear();
  Merge(bytes.data(), bytes.size());
  return *this;
}

Message& Message::operator=(Message&& other) noexcept {
  auto fields = std::move(other.fields_);  // a separate step, because other may be a part of this
  other.fields_.clear();
  fields_.swap(fields);
  return *this;
}

void Message::MergeFrom(const Message& other) {
  const std::string bytes = other.SerializeAsString();
  Merge(bytes.data(), bytes.size());
}

void Message::Swap(Message* other) { fields_.swap(other->fields_); }
void Message::Clear() { fields_.clear(); }

bool Message::Merge(const char* data, size_t size) {
  WireReader reader(data, size);
  for (WireField field; !reader.done();) {
    const char* start = reader.position();
    if (!reader.Next(&field) || field.type == kWireGroupEnd) return false;
    Make(field.number)->pending.append(start, reader.position() - start);
  }
  return true;
}

bool Message::ParseFromArray(const void* data, int size) {
  Clear();
  return Merge(static_cast<const char*>(data), size);
}

bool Message::ParseFromString(const std::string& data) {
  Clear();
  return MergeFromString(data);
}

bool Message::ParseFromIstream(std::istream* input) {
  const std::string data{std::istreambuf_iterator<char>(*input), std::istreambuf_iterator<char>()};
  return ParseFromString(data);
}

bool Message::MergeFromString(const std::string& data) { return Merge(data.data(), data.size()); }

void Message::AppendToString(std::string* output) const {
  for (const auto& field : fields_) field->Append(output);
}

bool Message::SerializeToString(std::string* output) const {
  *output = SerializeAsString();
  return true;
}

bool Message::SerializeToOstream(std::ostream* output) const {
  const std::string data = SerializeAsString();
  return static_cast<bool>(output->write(data.data(), data.size()));
}

std::string Message::SerializeAsString() const {
  std::string output;
  AppendToString(&output);
  return output;
}

size_t Message::ByteSizeLong() const { return SerializeAsString().size(); }

// ---------------------------------------------------------------------------------------------- one field

Message::Field* Message::Find(int number) const {
  for (const auto& field : fields_) {
    if (field->number == number) return field.get();
  }
  return nullptr;
}

Message::Field* Message::Make(int number) {
  const auto place = std::lower_bound(fields_.begin(), fields_.end(), number,
                                      [](const auto& field, int wanted) { return field->number < wanted; });
  if (place != fields_.end() && (*place)->number == number) return place->get();
  auto field = std::make_unique<Field>();
  field->number = number;
  return fields_.insert(place, std::move(field))->get();
}

void Message::ClearField(int number) {
  fields_.erase(std::remove_if(fields_.begin(), fields_.end(),
                               [&](const auto& field) { return field->number == number; }),
                fields_.end());
}

template <typename T>
T Message::GetNumber(int number, Coding coding, T fallback) const {
  Field* field = Find(number);
  const T* held = field ? field->AsNumber<T>(coding) : nullptr;
  return held ? *held : fallback;
}

template <typename T>
void Message::SetNumber(int number, Coding coding, T value) {
  Field* field = Make(number);
  field->pending.clear();
  field->coding = coding;
  field->value = value;
}

template <typename T>
const RepeatedField<T>& Message::GetNumbers(int number, Coding coding) const {
  static const RepeatedField<T>& none = *new RepeatedField<T>;
  Field* field = Find(number);
  const RepeatedField<T>* held = field ? field->AsNumbers<T>(coding) : nullptr;
  return held ? *held : none;
}

template <typename T>
RepeatedField<T>* Message::MutableNumbers(int number, Coding coding) {
  Field* field = Make(number);
  field->AsNumbers<T>(coding);
  return &field->Hold<RepeatedField<T>>();
}

#define CAFFE_PROTO_NUMBER(T)                                                 \
  template T Message::GetNumber<T>(int, Coding, T) const;                     \
  template void Message::SetNumber<T>(int, Coding, T);                        \
  template const RepeatedField<T>& Message::GetNumbers<T>(int, Coding) const; \
  template RepeatedField<T>* Message::MutableNumbers<T>(int, Coding);
CAFFE_PROTO_NUMBER(int32_t)
CAFFE_PROTO_NUMBER(int64_t)
CAFFE_PROTO_NUMBER(uint32_t)
CAFFE_PROTO_NUMBER(uint64_t)
CAFFE_PROTO_NUMBER(float)
CAFFE_PROTO_NUMBER(double)
CAFFE_PROTO_NUMBER(bool)
#undef CAFFE_PROTO_NUMBER

const std::string& Message::GetText(int number, const char* fallback, size_t size) const {
  Field* field = Find(number);
  if (const std::string* held = field ? field->AsText() : nullptr) return *held;
  // Each default is kept once, because callers keep the reference.
  static std::mutex& mutex = *new std::mutex;
  static auto& defaults = *new std::unordered_set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return *defaults.emplace(fallback, size).first;
}

std::string* Message::MutableText(int number, const char* fallback, size_t size) {
  Field* field = Make(number);
  if (std::string* held = field->AsText()) return held;
  return &(field->Hold<std::string>() = std::string(fallback, size));
}

const RepeatedPtrField<std::string>& Message::GetTexts(int number) const {
  Field* field = Find(number);
  const Field::Texts* held = field ? field->AsTexts() : nullptr;
  return held ? *held : Default<Field::Texts>();
}

RepeatedPtrField<std::string>* Message::MutableTexts(int number) {
  Field* field = Make(number);
  field->AsTexts();
  return &field->Hold<Field::Texts>();
}

const Message* Message::FindChild(int number, Maker make) const {
  Field* field = Find(number);
  const Field::Child* held = field ? field->AsChild(make) : nullptr;
  return held ? held->get() : nullptr;
}

Message* Message::MakeChild(int number, Maker make) {
  Field* field = Make(number);
  field->AsChild(make);
  Field::Child& child = field->Hold<Field::Child>();
  if (!child) child.reset(make());
  return child.get();
}

const RepeatedMessages* Message::FindChildren(int number, ListMaker make) const {
  Field* field = Find(number);
  const Field::Children* held = field ? field->AsChildren(make) : nullptr;
  return held ? held->get() : nullptr;
}

RepeatedMessages* Message::MakeChildren(int number, ListMaker make) {
  Field* field = Make(number);
  field->AsChildren(make);
  Field::Children& children = field->Hold<Field::Children>();
  if (!children) children.reset(make());
  return children.get();
}

}  // namespace caffe
