// Reads a LayerParameter by the accessors made of zoo.proto, shows what it finds, changes it and writes it.
#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <sstream>
#include <vector>

#include "caffe/host_services.hpp"
#include "caffe/proto/caffe.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

using caffe::LayerParameter;
using caffe::ZooParameter;
using caffe::ZooParameter_Cage;
using caffe::ZooParameter_Size_Name;
using caffe::ZooParameter_Size_Parse;
using google::protobuf::TextFormat;
using std::string;

void StockView(const void* message, string* type,
               LayerParameter* copy);  // stock_view.cpp, which knows no zoo_param

namespace {

template <typename T>
void Show(const char* name, bool has, const T& value) {
  std::cout << name << (has ? " set " : " unset ") << std::setprecision(17) << value << "\n";
}

template <typename List>
void ShowList(const char* name, const List& list) {
  std::cout << name << " list";
  for (const auto& value : list) std::cout << " " << std::setprecision(17) << value;
  std::cout << "\n";
}

string Hex(const string& text) {
  std::ostringstream out;
  for (unsigned char c : text) out << std::hex << std::setw(2) << std::setfill('0') << int{c};
  return out.str();
}

void ShowAll(const ZooParameter& zoo) {
#define SHOW(x) Show(#x, zoo.has_##x(), zoo.x())
  SHOW(a_int32), SHOW(a_int64), SHOW(a_uint32), SHOW(a_uint64), SHOW(a_sint32), SHOW(a_sint64),
      SHOW(a_fixed32);
  SHOW(a_fixed64), SHOW(a_sfixed32), SHOW(a_sfixed64), SHOW(a_float), SHOW(a_double), SHOW(a_nan),
      SHOW(a_bool);
  SHOW(a_size), SHOW(a_diet), SHOW(camelcase);
  Show("class", zoo.has_class_(), zoo.class_());
  Show("a_string", zoo.has_a_string(), Hex(zoo.a_string()));
  Show("a_bytes", zoo.has_a_bytes(), Hex(zoo.a_bytes()));
  Show("a_cage.width", zoo.a_cage().has_width(), zoo.a_cage().width());
  Show("a_cage.bars", zoo.a_cage().has_bars(), zoo.a_cage().bars());
  Show("new.a_int32", zoo.new_().has_a_int32(), zoo.new_().a_int32());
#define SHOW_LIST(x) ShowList(#x, zoo.x())
  SHOW_LIST(r_int32), SHOW_LIST(r_sint64), SHOW_LIST(r_uint32), SHOW_LIST(r_float), SHOW_LIST(r_double);
  SHOW_LIST(r_bool), SHOW_LIST(r_string), SHOW_LIST(r_size), SHOW_LIST(r_fixed64);
  ShowList("operator", zoo.operator_());
  std::cout << "r_cage list";
  for (const ZooParameter::Cage& cage : zoo.r_cage())
    std::cout << " " << cage.width() << "/" << cage.animals_size();
  std::cout << "\n";
}

void Check(bool right, const char* what) {
  if (!right) std::cout << "WRONG " << what << "\n";
}
#define CHECK(...) Check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__)

// What is a message, byte by byte, and what is none beside it.
void CheckWire() {
  const auto reads = [](const string& bytes) { return ZooParameter().ParseFromString(bytes); };
  const string ten(9, '\xff'), four(4, 'x'), eight(8, 'x');
  CHECK(reads("\xf8\xff\xff\xff\x0f\x01") &&
        !reads("\x80\x80\x80\x80\x10\x01"));  // a field's number has 29 bits
  CHECK(!reads("\x07") && !reads("\x0e" + eight) && !reads("\x0f" + eight) && !reads("\x0c"));
  CHECK(reads("\x08" + ten + "\x01") && !reads("\x08" + ten + "\x81\x01") && !reads("\x08\x80"));
  CHECK(reads("\x09" + eight) && !reads("\x09" + eight.substr(1)) && reads("\x0d" + four) &&
        !reads("\x0dxxx"));
  CHECK(reads("\x0a\x04" + four) && !reads("\x0a\x05" + four) && reads(string("\x0a\0", 2)));
  CHECK(reads("\x0b\x0c") && !reads("\x0b\x14") && !reads("\x0b") && reads("\x0b\x08\x01\x13\x14\x0c"));
  CHECK(!reads("\x0b\x13\x0c\x14") && !reads("\x0b\x08\x0c"));
}

void CheckSemantics() {
  CHECK(caffe::ZooParameter_Size_LARGE == ZooParameter::BIG);
  CHECK(ZooParameter::Size_Name(3) == "LARGE" && ZooParameter_Size_Name(1) == "SMALL");
  CHECK(caffe::ZooParameter_Size_Size_MAX == 3 && ZooParameter::Size_MIN == 1 &&
        ZooParameter::Size_ARRAYSIZE == 4);
  CHECK(ZooParameter::Cage::default_ == caffe::ZooParameter_Cage_Bars_default);
  CHECK(ZooParameter_Cage::kWidthFieldNumber == 1);
  ZooParameter::Size size;
  CHECK(ZooParameter_Size_Parse("BIG", &size) && size == ZooParameter::LARGE &&
        !ZooParameter_Size_Parse("?", &size));
  CHECK(caffe::Diet_IsValid(7) && !caffe::Diet_IsValid(8) && caffe::Phase_Name(caffe::TEST) == "TEST");

  ZooParameter zoo;
  ZooParameter::Cage* cage = zoo.mutable_a_cage();
  string* text = zoo.mutable_a_string();
  CHECK(*text == zoo.a_string() && !ZooParameter().has_a_string());
  for (int i = 0; i < 100; ++i) zoo.add_r_cage()->add_animals("x");
  const ZooParameter::Cage& first = zoo.r_cage(0);
  zoo.set_a_float(2);
  zoo.add_r_cage();
  *zoo.mutable_r_cage(0)->mutable_animals(0) += "y";
  cage->set_width(9), *text = "kept";
  CHECK(zoo.a_cage().width() == 9 && zoo.a_string() == "kept" && &first == &zoo.r_cage(0));
  CHECK(first.animals(0) == "xy" && zoo.r_cage_size() == 101);
  zoo.mutable_new_()->mutable_new_()->set_class_(1);
  const ZooParameter copy = zoo;
  zoo = zoo;
  zoo.CopyFrom(zoo.new_());
  CHECK(zoo.new_().class_() == 1 && !zoo.has_a_float());
  zoo.MergeFrom(copy);
  CHECK(zoo.a_float() == 2 && zoo.new_().new_().class_() == 1 && zoo.new_().class_() == 1);
  ZooParameter other;
  other.Swap(&zoo);
  CHECK(zoo.SerializeAsString().empty() && other.a_float() == 2);
  zoo = std::move(other);
  zoo.clear_a_float();
  CHECK(!zoo.has_a_float() && zoo.a_float() == 1e-8f);
  zoo.Clear();
  CHECK(&zoo.a_cage() == &ZooParameter::Cage::default_instance());

  caffe::RepeatedField<bool>* bools = zoo.mutable_r_bool();
  bools->Add(true), bools->Add(false), bools->Set(1, true), bools->Resize(3, false);
  CHECK(zoo.r_bool_size() == 3 && zoo.r_bool(1) && !zoo.r_bool().Get(2) && *bools->begin());
  zoo.add_r_int32(1), zoo.add_r_int32(-2), zoo.set_r_int32(0, 5);
  CHECK(std::accumulate(zoo.r_int32().begin(), zoo.r_int32().end(), 0) == 3 && zoo.r_int32().data()[1] == -2);
  CheckWire();
  CHECK(!zoo.ParseFromString("\x0a") && !zoo.ParseFromString(string("\0", 1)) && zoo.ParseFromArray("", 0));
  try {
    zoo.r_int32(0);
    CHECK(false);
  } catch (const std::exception& error) {
    CHECK(string(error.what()) == "protobuf message: element 0 of a repeated field that has 0");
  }

  caffe::PoolingParameter pooling;
  CHECK(pooling.zoo_ratio() == 0.25f && pooling.pool() == caffe::PoolingParameter_PoolMethod_MAX);
  const auto* ratio = pooling.GetDescriptor()->FindFieldByName("zoo_ratio");
  pooling.GetReflection()->SetFloat(&pooling, ratio, 3);
  CHECK(pooling.zoo_ratio() == 3 && ratio->default_value_float() == 0.25f);
}

// A field by its descriptor: what it is, and of a number its value, before and after it is set, and cleared.
void ShowFields(ZooParameter zoo) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *zoo.GetDescriptor();
  const google::protobuf::Reflection& by = *zoo.GetReflection();
  std::cout << zoo.GetTypeName() << " " << type.full_name() << " " << type.name() << " " << type.field_count()
            << "\n";
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    std::cout << field->name() << " " << field->number() << " " << field->index() << " " << field->type()
              << " " << field->is_required() << field->is_repeated() << field->has_default_value();
    const auto walk = [&](auto value, auto get, auto set) {
      std::cout << std::setprecision(17) << " " << by.HasField(zoo, field) << " " << value;
      set(get() + 1);
      std::cout << " " << by.HasField(zoo, field) << " " << get();
      by.ClearField(&zoo, field);
      std::cout << " " << by.HasField(zoo, field) << " " << get();
    };
#define WALK(Name)                                                        \
  walk(                                                                   \
      by.Get##Name(zoo, field), [&] { return by.Get##Name(zoo, field); }, \
      [&](auto value) { by.Set##Name(&zoo, field, value); })
    if (!field->is_repeated()) {
      switch (field->type()) {
        case FieldDescriptor::TYPE_INT32:
        case FieldDescriptor::TYPE_SINT32:
        case FieldDescriptor::TYPE_SFIXED32:
          WALK(Int32);
          break;
        case FieldDescriptor::TYPE_UINT32:
        case FieldDescriptor::TYPE_FIXED32:
          WALK(UInt32);
          break;
        case FieldDescriptor::TYPE_FLOAT:
          WALK(Float);
          break;
        case FieldDescriptor::TYPE_DOUBLE:
          WALK(Double);
          break;
        case FieldDescriptor::TYPE_BOOL:
          std::cout << " " << by.GetBool(zoo, field);
          by.SetBool(&zoo, field, false);
          std::cout << " " << zoo.a_bool();
          by.SetBool(&zoo, field, true);
          std::cout << " " << zoo.a_bool();
          break;
        default:
          break;
      }
    }
    std::cout << "\n";
  }
}

template <typename F>
string Thrown(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

string Shown(int number) { return std::to_string(number) + " "; }
string Shown(const string& text) { return text + " "; }
string Shown(const ZooParameter::Cage& cage) { return std::to_string(cage.width()) + " "; }

template <typename List>
string All(const List& list) {
  string shown;
  for (int i = 0; i < list.size(); ++i) shown += Shown(list.Get(i));
  return shown;
}

// What a fork's code may do with repeated fields, of numbers, of strings and of messages.
template <typename List, typename T>
void CheckList(const T& a, const T& b, const T& c) {
  const std::vector<T> values{a, b, c};
  List list(values.begin(), values.end()), other;
  const auto holds = [](const List& list, std::initializer_list<T> wanted) {
    return list.size() == static_cast<int>(wanted.size()) &&
           All(list) == All(List(wanted.begin(), wanted.end()));
  };
  CHECK(All(list) == Shown(a) + Shown(b) + Shown(c) && list.size() == 3);
  CHECK(!list.empty() && other.empty() && other.begin() == other.end());
  list.SwapElements(0, 2);
  CHECK(holds(list, {c, b, a}));
  list.SwapElements(1, 1);
  CHECK(holds(list, {c, b, a}));
  list.RemoveLast();
  CHECK(holds(list, {c, b}));
  *list.Mutable(0) = b, list[1] = a;
  CHECK(holds(list, {b, a}));
  other.Reserve(3);
  CHECK(other.empty());
  other.Add(values.begin() + 1, values.end()), *other.Add() = a, other.Add(c);
  CHECK(holds(other, {b, c, a, c}));
  list.MergeFrom(other);
  CHECK(holds(list, {b, a, b, c, a, c}) && holds(other, {b, c, a, c}));
  list.Swap(&other);
  CHECK(holds(list, {b, c, a, c}) && holds(other, {b, a, b, c, a, c}));
  list.CopyFrom(other), list.CopyFrom(list);
  CHECK(holds(list, {b, a, b, c, a, c}));
  list[0] = c;
  CHECK(holds(other, {b, a, b, c, a, c}));
  List moved(std::move(other));
  other = List(list), list = std::move(moved);
  CHECK(holds(list, {b, a, b, c, a, c}) && holds(other, {c, a, b, c, a, c}));
  other.Clear();
  CHECK(other.empty() && other.size() == 0);
  for (const int index : {-1, 6}) {
    const auto wrong = [&](auto f) {
      return Thrown(f) ==
             "protobuf message: element " + std::to_string(index) + " of a repeated field that has 6";
    };
    CHECK(wrong([&] { list.Get(index); }) && wrong([&] { list.Mutable(index); }) &&
          wrong([&] { list[index]; }));
    CHECK(wrong([&] { const_cast<const List&>(list)[index]; }) && wrong([&] { list.at(index); }));
    CHECK(wrong([&] { list.SwapElements(index, 0); }) && wrong([&] { list.SwapElements(0, index); }));
  }
  CHECK(Thrown([&] { other.RemoveLast(); }) == "protobuf message: element -1 of a repeated field that has 0");
}

// A list's iterators are those of an array: each of their words, on "a" to "e".
template <typename List, typename Iterator>
void CheckIterators(List& list, Iterator begin, Iterator end) {
  Iterator at = begin;
  CHECK(end - begin == 5 && begin + 5 == end && end - 5 == begin && begin != end && begin < end &&
        !(begin < begin));
  CHECK(*at == "a" && at->front() == 'a' && at[4] == "e" && *++at == "b" && *at++ == "b" && *at == "c");
  CHECK(*at-- == "c" && *at == "b" && *--at == "a" && *(at += 4) == "e" && *(at -= 3) == "b");
  CHECK(std::find(begin, end, "d") - begin == 3 && std::distance(begin, end) == list.size());
}

void CheckLists() {
  CheckList<caffe::RepeatedField<int>>(1, 2, 3);
  CheckList<caffe::RepeatedField<bool>>(true, false, false);
  CheckList<caffe::RepeatedPtrField<string>>(string("a"), string("b"), string("c"));
  ZooParameter::Cage cages[3];
  for (int i = 0; i < 3; ++i) cages[i].set_width(i);
  CheckList<caffe::RepeatedPtrField<ZooParameter::Cage>>(cages[0], cages[1], cages[2]);

  caffe::RepeatedField<float> numbers;
  numbers.Resize(3, 2), numbers.Truncate(2), numbers.Resize(4, 5), numbers.Resize(3, 7), numbers.Set(0, 1);
  CHECK(All(numbers) == "1 2 5 " && numbers.Capacity() >= 4 && numbers.end() - numbers.begin() == 3);
  numbers.mutable_data()[1] = 4, *numbers.begin() = 3;
  const caffe::RepeatedField<float>& fixed = numbers;
  CHECK(fixed.data()[1] == 4 && *fixed.begin() == 3 && *(fixed.end() - 1) == 5);
  CHECK(fixed.cbegin() == fixed.data() && fixed.cend() == fixed.data() + 3 && fixed.at(2) == 5 &&
        fixed[2] == 5);

  caffe::RepeatedPtrField<string> texts;
  for (const char* text : {"a", "x", "y", "b", "c", "d", "e"}) texts.AddAllocated(new string(text));
  const string *first = &texts[0], *last = &texts[6];
  texts.DeleteSubrange(1, 2), texts.DeleteSubrange(5, 0);
  CHECK(All(texts) == "a b c d e " && &texts[0] == first && &texts[4] == last);
  CHECK(Thrown([&] { texts.DeleteSubrange(4, 2); }) ==
        "protobuf message: element 5 of a repeated field that has 5");
  CHECK(Thrown([&] { texts.DeleteSubrange(-1, 2); }) ==
        "protobuf message: element -1 of a repeated field that has 5");
  CheckIterators(texts, texts.begin(), texts.end()), CheckIterators(texts, texts.cbegin(), texts.cend());
  const caffe::RepeatedPtrField<string>& const_texts = texts;
  CheckIterators(const_texts, const_texts.begin(), const_texts.end());
  texts.SwapElements(0, 4);  // as protobuf's: the elements stay where they are, their places change
  CHECK(&texts[4] == first && &texts[0] == last && All(texts) == "e b c d a ");
}

// Bytes of a known field that are none of its type's; a number read as another type's.
void CheckDamage() {
  ZooParameter zoo;
  const string damaged = "protobuf message: field 21 does not parse: its bytes are damaged";
  CHECK(zoo.ParseFromString("\xaa\x01\x02\x05\x80"));  // a run of r_int32 whose second number has no end
  CHECK(Thrown([&] { zoo.r_int32_size(); }) == damaged);
  CHECK(zoo.ParseFromString("\x9a\x01\x01\x0a") && Thrown([&] { zoo.a_cage(); }) != "nothing");
  CHECK(zoo.ParseFromString("\xea\x01\x01\x0a") && Thrown([&] { zoo.r_cage(); }) != "nothing");
  zoo.Clear();
  const auto* field = zoo.GetDescriptor()->FindFieldByName("a_int32");
  zoo.set_a_int32(-5);
  CHECK(zoo.GetReflection()->GetUInt32(zoo, field) == 4294967291u && zoo.a_int32() == -5);
  ZooParameter moved(std::move(zoo));
  CHECK(moved.a_int32() == -5);
  moved.set_needed(3);
  CHECK(moved.ByteSize() == 11 + 3 && moved.needed() == 3);
}

void CheckText() {
  ZooParameter zoo;
  CHECK(!TextFormat::ParseFromString("a_size: SMALL\n a_diet: HUGE", &zoo) && zoo.ByteSize() == 0);
  CHECK(!TextFormat::ParseFromString("a_int32: 1", &zoo));
  CHECK(!TextFormat::ParseFromString("needed: 1 needed: 2", &zoo));
  CHECK(!TextFormat::ParseFromString(string("needed: 1\0", 10), &zoo));
  CHECK(!TextFormat::ParseFromString("needed: 1 a_string: '\xff'", &zoo));
  CHECK(TextFormat::ParseFromString("needed: 1 a_bytes: 'a\\000' 'b' a_cage < width: 3 >; r_int32: 1", &zoo));
  CHECK(zoo.a_bytes() == string("a\0b", 3) && zoo.needed() == 1 && zoo.r_int32_size() == 1);
  CHECK(TextFormat::MergeFromString("a_int32: 4 a_int32: 5 a_cage { animals: 'x' } r_int32: [2, 3]", &zoo));
  CHECK(!TextFormat::MergeFromString("a_int32: x", &zoo));
  CHECK(zoo.a_int32() == 5 && zoo.needed() == 1 && zoo.r_int32_size() == 3 && zoo.a_cage().width() == 3);
  CHECK(TextFormat::ParseFromString("needed: 2 # \xff", &zoo) && zoo.ShortDebugString() == "needed: 2");

  string text;
  zoo.Clear();
  CHECK(zoo.DebugString().empty() && zoo.ShortDebugString().empty());
  zoo.set_a_int32(4), zoo.mutable_a_cage()->set_width(3);  // without what is required
  CHECK(TextFormat::PrintToString(zoo, &text) && text == "a_int32: 4\na_cage {\n  width: 3\n}\n");
  CHECK(zoo.ShortDebugString() == "a_int32: 4 a_cage { width: 3 }");
  CHECK(zoo.ParseFromString("\xf8\x3f\x05") && zoo.ShortDebugString() == "1023: 5");  // no field's number

  const auto service = caffe::host_services.text;
  caffe::host_services.text = nullptr;
  CHECK(Thrown([&] { zoo.DebugString(); }).find("needs Python's protobuf") != string::npos);
  caffe::host_services.text = service;
  CHECK(zoo.ParseFromString("\x9a\x01\x01\x0a"));  // a_cage, damaged
  CHECK(Thrown([&] { zoo.DebugString(); }).find("Python's protobuf failed") != string::npos);
}

string Read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

extern "C" int caffe_layer_services(const void* services);

// Reads the first path; writes the next two; reads the fourth, as text, and writes it to the last.
extern "C" __attribute__((visibility("default"))) void zoo(const void* services,
                                                           const char* const* paths) try {
  caffe_layer_services(services);
  LayerParameter layer;
  CHECK(layer.ParseFromString(Read(paths[0])));
  string type;
  LayerParameter copy;
  StockView(&layer, &type, &copy);
  Show("type", layer.has_type(), type);
  ShowAll(copy.zoo_param());
  ShowAll(layer.zoo_param());
  ShowFields(layer.zoo_param());
  std::ofstream(paths[1]) << layer.DebugString();
  std::ofstream(paths[2], std::ios::binary) << layer.SerializeAsString();
  LayerParameter from_text;
  CHECK(TextFormat::ParseFromString(Read(paths[3]), &from_text));
  std::ofstream(paths[4], std::ios::binary) << from_text.SerializeAsString();
  CHECK(!TextFormat::ParseFromString("zoo_param {\n a_size: HUGE }", &from_text));
  CheckSemantics();
  CheckLists();
  CheckDamage();
  CheckText();
  std::cout.flush();
} catch (const std::exception& error) {
  std::cout << "WRONG " << error.what() << std::endl;
}
