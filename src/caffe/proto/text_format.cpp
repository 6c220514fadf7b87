// Text is turned into wire format and back by the message's descriptor alone; no field is made on the way.
#include "caffe/proto/text_format.hpp"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "caffe/proto/descriptor.hpp"
#include "wire.hpp"

namespace google {
namespace protobuf {
namespace {

using caffe::AppendBytes;
using caffe::AppendTag;
using caffe::AppendVarint;
using caffe::Coding;
using caffe::WireField;
using caffe::WireReader;
using caffe::WireType;

WireType TypeOnWire(const FieldDescriptor* field) {
  switch (field->type()) {
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return caffe::kWireBytes;
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return caffe::kWire64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return caffe::kWire32;
    default:
      return caffe::kWireVarint;
  }
}

// -------------------------------------------------------------------------------------------------------
// from text

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) { Advance(); }

  // Fields until `end` ('\0': the end of the text), appended to `output` as wire format.
  void Fields(const Descriptor* message, char end, std::string* output) {
    while (!At(end)) {
      if (kind_ != kWord) Fail("expected a field of " + message->name());
      const FieldDescriptor* field = message->FindFieldByName(token_);
      if (!field) Fail(message->full_name() + " has no field \"" + token_ + "\"");
      Advance();
      const bool colon = Take(':');
      if (!colon && field->type() != FieldDescriptor::TYPE_MESSAGE) Fail("expected ':'");
      if (field->is_repeated() && Take('[')) {
        for (bool more = !At(']'); more; more = Take(',')) Value(field, output);
        Expect(']');
      } else {
        Value(field, output);
      }
      if (!Take(',')) Take(';');
    }
  }

 private:
  enum Kind { kEnd, kWord, kNumber, kText, kSymbol };

  void Value(const FieldDescriptor* field, std::string* output) {
    const uint32_t number = static_cast<uint32_t>(field->number());
    if (const Descriptor* message = field->message_type()) {
      const char end = Take('<') ? '>' : '}';
      if (end == '}') Expect('{');
      std::string bytes;
      Fields(message, end, &bytes);
      Expect(end);
      AppendBytes(number, bytes, output);
      return;
    }
    if (TypeOnWire(field) == caffe::kWireBytes) {
      if (kind_ != kText) Fail("expected a string");
      std::string bytes;
      for (; kind_ == kText; Advance()) bytes += token_;
      AppendBytes(number, bytes, output);
      return;
    }
    AppendTag(number, TypeOnWire(field), output);
    const bool negative = Take('-');
    switch (field->type()) {
      case FieldDescriptor::TYPE_FLOAT:
        Fixed(static_cast<float>(Real(negative)), output);
        break;
      case FieldDescriptor::TYPE_DOUBLE:
        Fixed(Real(negative), output);
        break;
      case FieldDescriptor::TYPE_FIXED32:
      case FieldDescriptor::TYPE_SFIXED32:
        Fixed(static_cast<uint32_t>(Integer(negative)), output);
        break;
      case FieldDescriptor::TYPE_FIXED64:
      case FieldDescriptor::TYPE_SFIXED64:
        Fixed(Integer(negative), output);
        break;
      case FieldDescriptor::TYPE_SINT32:
      case FieldDescriptor::TYPE_SINT64: {
        const uint64_t bits = Integer(negative);
        AppendVarint(bits << 1 ^ (bits >> 63 ? ~uint64_t{0} : 0), output);
        break;
      }
      case FieldDescriptor::TYPE_BOOL:
        AppendVarint(Bool(), output);
        break;
      case FieldDescriptor::TYPE_ENUM:
        AppendVarint(kind_ == kWord ? Constant(field->enum_type()) : Integer(negative), output);
        break;
      default:
        AppendVarint(Integer(negative), output);
    }
    Advance();
  }

  template <typename T>
  static void Fixed(T value, std::string* output) {
    output->append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  double Real(bool negative) {
    char* end = nullptr;
    const double value = strtod(token_.c_str(), &end);  // inf and nan as well
    const bool suffix = kind_ == kNumber && (*end == 'f' || *end == 'F') && end[1] == '\0';
    if ((kind_ != kNumber && kind_ != kWord) || end == token_.c_str() || (*end && !suffix))
      Fail("expected a number");
    return negative ? -value : value;
  }

  uint64_t Integer(bool negative) {
    char* end = nullptr;
    errno = 0;
    const uint64_t value = strtoull(token_.c_str(), &end, 0);
    if (kind_ != kNumber || *end || errno) Fail("expected an integer");
    return negative ? 0 - value : value;
  }

  bool Bool() {
    if (token_ == "true" || token_ == "True" || token_ == "t" || token_ == "1") return true;
    if (token_ != "false" && token_ != "False" && token_ != "f" && token_ != "0")
      Fail("expected true or false");
    return false;
  }

  uint64_t Constant(const EnumDescriptor* type) {
    const int* number = type->FindNumber(token_);
    if (!number) {
      std::string names;
      for (const auto& value : type->values()) names += (names.empty() ? "" : ", ") + value.first;
      Fail("expected one of " + names);
    }
    return static_cast<uint64_t>(*number);
  }

  bool At(char symbol) const { return symbol ? kind_ == kSymbol && token_[0] == symbol : kind_ == kEnd; }

  bool Take(char symbol) {
    const bool here = At(symbol);
    if (here) Advance();
    return here;
  }

  void Expect(char symbol) {
    if (!Take(symbol)) Fail(std::string("expected '") + symbol + "'");
  }

  [[noreturn]] void Fail(const std::string& wanted) const {
    const std::string got = kind_ == kEnd ? "the end of the text" : "'" + token_ + "'";
    throw std::invalid_argument("line " + std::to_string(line_) + ": " + wanted + ", at " + got);
  }

  void Advance() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size() || !isspace(static_cast<unsigned char>(text_[at_]))) break;
      line_ += text_[at_] == '\n';
    }
    token_.clear();
    if (at_ >= text_.size()) {
      kind_ = kEnd;
      return;
    }
    const unsigned char first = text_[at_];
    if (first == '"' || first == '\'') {
      kind_ = kText;
      Quoted(first);
    } else if (isalpha(first) || first == '_') {
      kind_ = kWord;
      while (isalnum(static_cast<unsigned char>(Peek())) || Peek() == '_') token_ += text_[at_++];
    } else if (isdigit(first) || first == '.') {
      kind_ = kNumber;
      while (isalnum(static_cast<unsigned char>(Peek())) || Peek() == '.' ||
             (AfterExponent() && strchr("+-", Peek()))) {
        token_ += text_[at_++];
      }
    } else {
      kind_ = kSymbol;
      token_ = text_[at_++];
    }
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool AfterExponent() const {
    const bool hexadecimal = token_.size() > 1 && (token_[1] == 'x' || token_[1] == 'X');
    return Peek() && !hexadecimal && !token_.empty() && (token_.back() == 'e' || token_.back() == 'E');
  }

  void Quoted(char quote) {
    for (++at_; Peek() != quote; ++at_) {
      if (!Peek() || Peek() == '\n') Fail("a string without its end");
      if (Peek() != '\\') {
        token_ += Peek();
        continue;
      }
      ++at_;
      static const char kEscapes[] = "ntr\\\'\"", kMeanings[] = "\n\t\r\\\'\"";
      const char* known = Peek() ? strchr(kEscapes, Peek()) : nullptr;
      if (Peek() >= '0' && Peek() <= '7') {
        int code = 0;
        for (int digits = 0; digits < 3 && Peek() >= '0' && Peek() <= '7'; ++digits)
          code = code * 8 + text_[at_++] - '0';
        token_ += static_cast<char>(code);
        --at_;
      } else if (known) {
        token_ += kMeanings[known - kEscapes];
      } else {
        Fail("an unknown escape in a string");
      }
    }
    ++at_;
  }

  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1;
  Kind kind_ = kEnd;
  std::string token_;
};

// ---------------------------------------------------------------------------------------------------------
// to text

class Printer {
 public:
  explicit Printer(bool one_line) : one_line_(one_line) {}

  // `message` may be nullptr: numbers are shown for names.
  void Fields(const Descriptor* message, const char* data, size_t size) {
    std::vector<WireField> fields;
    WireReader reader(data, size);
    for (WireField field; !reader.done() && reader.Next(&field);) fields.push_back(field);
    // By number, whatever the order of the text or the bytes that the message came from.
    std::stable_sort(fields.begin(), fields.end(),
                     [](const WireField& a, const WireField& b) { return a.number < b.number; });
    for (size_t i = 0; i < fields.size(); ++i) {
      const WireField& field = fields[i];
      const FieldDescriptor* known =
          message ? message->FindFieldByNumber(static_cast<int>(field.number)) : nullptr;
      const std::string name = known ? known->name() : std::to_string(field.number);
      if (known && !known->is_repeated() && IsOverruled(fields, i)) {
        continue;
      } else if (known && known->message_type()) {
        Child(known, name, fields, i);
      } else if (known && field.type == TypeOnWire(known)) {
        One(known, name, field);
      } else if (known && known->is_repeated() && field.type == caffe::kWireBytes) {
        Packed(known, name, field);
      } else {
        Line(name + ": " + (field.type == caffe::kWireBytes ? Quoted(field) : Unknown(field)));
      }
    }
  }

  std::string Text() {
    if (one_line_ && !text_.empty()) text_.pop_back();
    return text_;
  }

 private:
  // Of a field that is not repeated, the last one wins.
  static bool IsOverruled(const std::vector<WireField>& fields, size_t i) {
    const auto same = [&](const WireField& other) { return other.number == fields[i].number; };
    return std::any_of(fields.begin() + i + 1, fields.end(), same);
  }

  // ... but a message is merged with the earlier ones.
  void Child(const FieldDescriptor* known, const std::string& name, const std::vector<WireField>& fields,
             size_t i) {
    std::string bytes;
    for (size_t j = known->is_repeated() ? i : 0; j <= i; ++j) {
      if (fields[j].number == fields[i].number) bytes.append(fields[j].data, fields[j].size);
    }
    Line(name + " {");
    ++depth_;
    Fields(known->message_type(), bytes.data(), bytes.size());
    --depth_;
    Line("}");
  }

  void One(const FieldDescriptor* known, const std::string& name, const WireField& field) {
    if (field.type == caffe::kWireBytes) {
      Line(name + ": " + Quoted(field));
    } else {
      WireReader reader(field.data, field.size);
      Line(name + ": " + Number(known, &reader));
    }
  }

  void Packed(const FieldDescriptor* known, const std::string& name, const WireField& field) {
    WireReader reader(field.data, field.size);
    while (!reader.done()) {
      const char* before = reader.position();
      Line(name + ": " + Number(known, &reader));
      if (reader.position() == before) return;  // damaged: nothing could be read
    }
  }

  void Line(const std::string& text) {
    if (!one_line_) text_.append(2 * depth_, ' ');
    text_ += text + (one_line_ ? ' ' : '\n');
  }

  static std::string Number(const FieldDescriptor* field, WireReader* reader) {
    if (field->type() == FieldDescriptor::TYPE_FLOAT) return Real<float>(reader, "%.6g", "%.9g");
    if (field->type() == FieldDescriptor::TYPE_DOUBLE) return Real<double>(reader, "%.15g", "%.17g");
    uint64_t bits = 0;
    uint32_t half = 0;
    switch (TypeOnWire(field)) {
      case caffe::kWire32:
        reader->Fixed(&half);
        bits = field->type() == FieldDescriptor::TYPE_SFIXED32
                   ? static_cast<int64_t>(static_cast<int32_t>(half))
                   : half;
        break;
      case caffe::kWire64:
        reader->Fixed(&bits);
        break;
      default:
        reader->Varint(&bits);
    }
    if (field->coding() == Coding::kZigzag) bits = bits >> 1 ^ (0 - (bits & 1));
    switch (field->type()) {
      case FieldDescriptor::TYPE_BOOL:
        return bits ? "true" : "false";
      case FieldDescriptor::TYPE_UINT32:
      case FieldDescriptor::TYPE_UINT64:
      case FieldDescriptor::TYPE_FIXED32:
      case FieldDescriptor::TYPE_FIXED64:
        return std::to_string(bits);
      case FieldDescriptor::TYPE_ENUM:
        if (const std::string* name = field->enum_type()->FindName(static_cast<int>(bits))) return *name;
        [[fallthrough]];
      default:
        return std::to_string(static_cast<int64_t>(bits));
    }
  }

  // The shorter of two forms, if it means the same number.
  template <typename T>
  static std::string Real(WireReader* reader, const char* brief, const char* whole) {
    T value = 0;
    reader->Fixed(&value);
    char text[32];
    snprintf(text, sizeof text, brief, value);
    if (static_cast<T>(strtod(text, nullptr)) != value) snprintf(text, sizeof text, whole, value);
    return text;
  }

  static std::string Unknown(const WireField& field) {
    WireReader reader(field.data, field.size);
    uint64_t bits = 0;
    if (field.type == caffe::kWireVarint) reader.Varint(&bits);
    if (field.type != caffe::kWireVarint) memcpy(&bits, field.data, std::min(field.size, sizeof bits));
    return std::to_string(bits);
  }

  static std::string Quoted(const WireField& field) {
    std::string text = "\"";
    for (size_t i = 0; i < field.size; ++i) {
      const unsigned char c = field.data[i];
      char escaped[8];
      snprintf(escaped, sizeof escaped,
               c == '\n'                 ? "\\n"
               : strchr("\"\\'", c) && c ? "\\%c"
               : isprint(c)              ? "%c"
                                         : "\\%03o",
               c);
      text += escaped;
    }
    return text + "\"";
  }

  const bool one_line_;
  int depth_ = 0;
  std::string text_;
};

}  // namespace

bool TextFormat::MergeFromString(const std::string& text, Message* message) {
  std::string bytes;
  try {
    Parser(text).Fields(message->GetDescriptor(), '\0', &bytes);
  } catch (const std::invalid_argument& error) {
    std::cerr << "prototxt of " << message->GetTypeName() << ": " << error.what() << std::endl;
    return false;
  }
  return message->MergeFromString(bytes);
}

bool TextFormat::ParseFromString(const std::string& text, Message* message) {
  message->Clear();
  return MergeFromString(text, message);
}

bool TextFormat::PrintToString(const Message& message, std::string* output) {
  *output = message.DebugString();
  return true;
}

}  // namespace protobuf
}  // namespace google

namespace caffe {
namespace {

std::string Print(const Message& message, bool one_line) {
  google::protobuf::Printer printer(one_line);
  const std::string bytes = message.SerializeAsString();
  printer.Fields(message.GetDescriptor(), bytes.data(), bytes.size());
  return printer.Text();
}

}  // namespace

std::string Message::DebugString() const { return Print(*this, false); }
std::string Message::ShortDebugString() const { return Print(*this, true); }

}  // namespace caffe
