// What passes between C++ and Python: a handle to a tensor, and a Value, which is any argument or result.
#pragma once

#include <atomic>

#include "types.h"

namespace at {
class Tensor;
}
namespace aten {

using c10::ScalarType;

// What a handle points to: the fields of a tensor, read once. The runtime (aten_python.cpp) fills them in, again after an
// operation in place.
struct Lent {
  static constexpr size_t kOwnAxes = 8;
  std::atomic<long> holders{1};
  void* object = nullptr;  // a PyObject, owned
  void* data = nullptr;
  size_t axes = 0;
  int64_t *sizes = own, *strides = own;
  int64_t own[2 * kOwnAxes];
  std::unique_ptr<int64_t[]> more;  // of a tensor with more axes
  ScalarType dtype = ScalarType::Undefined;
  c10::DeviceType device = c10::kCPU;
  int index = -1;
  const char* hidden = nullptr;  // why its memory does not have its values; null if it has
  // Do several elements share memory, as after expand(), and has the code asked how the tensor lies in memory?
  bool overlaps = false, layout_known = false;

  void set_axes(size_t count) {
    axes = count;
    if (count > kOwnAxes) more.reset(new int64_t[2 * count]);
    sizes = count > kOwnAxes ? more.get() : own;
    strides = sizes + count;
  }
  void find_overlap() {
    int64_t elements = 1, reach = 1;
    for (size_t i = 0; i < axes; ++i) elements *= sizes[i], reach += (sizes[i] - 1) * strides[i];
    overlaps = elements > 0 && elements > reach, layout_known = false;
  }
};
void drop(Lent* lent);  // the last holder is gone

class Handle {
  Lent* lent_ = nullptr;

 public:
  Handle() {}
  explicit Handle(Lent* owned) : lent_(owned) {}
  Handle(const Handle& other) : lent_(other.lent_) {
    if (lent_) ++lent_->holders;
  }
  Handle(Handle&& other) noexcept : lent_(other.lent_) { other.lent_ = nullptr; }
  Handle& operator=(Handle other) noexcept { return std::swap(lent_, other.lent_), *this; }
  ~Handle() {
    if (lent_ && !--lent_->holders) drop(lent_);
  }
  Lent* get() const { return lent_; }
  Lent* operator->() const {
    if (!lent_) throw c10::Error("an undefined tensor is used: tensor.defined() is false");
    return lent_;
  }
};

// An argument or a result of Python.
struct Value {
  enum Tag : char {
    kNone,
    kBool,
    kInt,
    kReal,
    kText,
    kTensor,
    kList,
    kTuple,
    kType,
    kDevice,
    kLayout,
    kFormat,
    kSlice,
    kEllipsis,
    kComplex,
    kDict,
    kObject
  };
  Tag tag = kNone;
  bool exact = false;   // an argument that is not converted
  bool whole = false;   // a real number that pybind11 makes an int of: one of numpy or of a tensor, no float
  int64_t integer = 0;  // of a device: its type << 8 | its index + 1
  double real = 0;
  std::string text;
  Handle tensor;
  std::vector<Value> list;
  std::shared_ptr<void> object;  // any other object of Python
  Value() {}
  Value(Tag tag_, int64_t integer_) : tag(tag_), integer(integer_) {}
  explicit Value(Tag tag_, std::vector<Value> list_ = {}) : tag(tag_), list(std::move(list_)) {}
};
using Values = std::vector<Value>;

// An operation of torch, with the names of the arguments that are passed. A torch of another version may have others.
struct Operation {
  const char *name, *overload, *arguments;
  mutable void* resolved = nullptr;  // a PyObject: what resolve() in aten_service.py returns
};
Value ask(const Operation& operation, const Values& arguments);
// One of the operations that are Python's and not ATen's: SPECIAL in aten_service.py.
Value special(const char* what, const Values& arguments);
// The same, and the result stays Python's own object.
Value special_object(const char* what, const Values& arguments);
// The bytes of Python's bytes or bytearray; false for other objects.
bool bytes_of(const Value& object, std::string* text);
// A C++ object within a Python object, by the name of its type; null if there is none.
Value capsule_of(std::shared_ptr<void> held, const char* type);
std::shared_ptr<void> held_by(const Value& object, const char* type);
void* stream_of(int device);
int exchange_device(int device);  // makes another GPU the current one; -1 if there is none
// Run parts of [begin, end) by several threads, without the interpreter's lock, and the number of this thread.
void parallel(int64_t begin, int64_t end, int64_t grain, void (*run)(const void*, int64_t, int64_t),
              const void* body);
int thread_number();
// Give the interpreter's lock back, and take it again.
void* unlock();
void relock(void* state);
// Of overloads, the first that takes the arguments as they are is called; else the first that can convert them.
bool converts();
void set_converts(bool on);
[[noreturn]] void wrong_type(const char* wanted, const Value& got);

// A C++ type <-> a Value.
template <typename T, typename = void>
struct As;
template <typename T>
Value of(const T& value) {
  return As<std::decay_t<T>>::of(value);
}
template <typename T>
T to(const Value& value) {
  return As<T>::to(value);
}
// special() with C++'s types.
template <typename R = Value, typename... A>
R call(const char* what, const A&... arguments) {
  return to<R>(special(what, {of(arguments)...}));
}
at::Tensor made(const Value& value, const c10::TensorOptions& options);

}  // namespace aten
