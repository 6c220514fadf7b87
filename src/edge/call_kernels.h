// Kernels that are data: images for GPUs, and for each launcher the steps (launch_steps.h) that compute its launch.
//
// Images are the modules of one build; a GPU's driver loads one at the first launch on it. Both live as long as the process,
// as a library's code does, because plans and launchers keep their addresses.
#pragma once

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_driver.h"
#include "launch_steps.h"

namespace caffe {

// The error text of this thread's last failed launch. A plain array, because it outlives every destructor.
inline thread_local char kernels_error[2048];

inline int kernels_failed(const std::string& text) {
  snprintf(kernels_error, sizeof(kernels_error), "%s", text.c_str());
  return 1;
}

// The kernels of one build.
class Images {
 public:
  struct Image {
    int architecture;  // 90 for sm_90 or compute_90
    bool is_ptx;       // else it is for this GPU and later ones of its major number
    std::string content;
  };
  struct Loaded {
    int device;
    Driver::Context context;
    Driver::Module module;
    std::vector<std::atomic<Driver::Function>> functions;
    std::vector<std::atomic<unsigned>> shared;  // the dynamic shared memory that each function was allowed
    const Loaded* next;
  };

  std::vector<Image> images;
  std::vector<std::string> kernels, symbols;  // by their names in the images
  std::vector<unsigned> numbers;              // of the kernels, as launchers say them, sorted
  std::vector<int> lines;                     // of each kernel in the user's file
  std::string file, targets;                  // what the user's file is called, "sm_90"

  // What is loaded for a device; null with an error's text.
  Loaded* on(int device) {
    for (Loaded* l = loaded_.load(std::memory_order_acquire); l; l = const_cast<Loaded*>(l->next))
      if (l->device == device) return l;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Loaded* l = loaded_.load(std::memory_order_acquire); l; l = const_cast<Loaded*>(l->next))
      if (l->device == device) return l;
    return loaded(device);
  }

 private:
  std::atomic<Loaded*> loaded_{nullptr};
  std::mutex mutex_;

  const Image* fitting(int gpu) const {
    const Image* best = nullptr;
    for (const Image& i : images)
      if (!i.is_ptx && i.architecture / 10 == gpu / 10 && i.architecture <= gpu &&
          (!best || i.architecture > best->architecture))
        best = &i;
    for (const Image& i : images)
      if (!best && i.is_ptx && i.architecture <= gpu) best = &i;
    return best;
  }

  Loaded* loaded(int device) {
    const Driver& driver = Driver::get();
    if (!driver.missing.empty()) return kernels_failed("NVIDIA's driver: " + driver.missing), nullptr;
    int major = 0, minor = 0;
    driver.device_attribute(&major, Driver::kMajor, device);
    driver.device_attribute(&minor, Driver::kMinor, device);
    const std::string gpu = "sm_" + std::to_string(10 * major + minor);
    const Image* const image = fitting(10 * major + minor);
    if (!image) return kernels_failed("built for " + targets + ", this GPU is " + gpu), nullptr;
    auto made = std::make_unique<Loaded>();
    made->device = device;
    if (const int error = driver.retain(&made->context, device))
      return kernels_failed(driver.text_of(error)), nullptr;
    driver.push(made->context);
    const int error = driver.load(&made->module, image->content.data());
    Driver::Context popped;
    driver.pop(&popped);
    if (error)
      return kernels_failed("the kernels, built for " + targets + ", do not load on " + gpu + ": " +
                            driver.text_of(error)),
             nullptr;
    made->functions = std::vector<std::atomic<Driver::Function>>(kernels.size());
    made->shared = std::vector<std::atomic<unsigned>>(kernels.size());
    made->next = loaded_.load();
    loaded_.store(made.get(), std::memory_order_release);
    return made.release();
  }
};

// A context that is current until the end of the scope, where torch has not made it so: in a thread without one.
class InContext {
 public:
  InContext(const Driver& driver, Driver::Context context) : driver_(driver) {
    Driver::Context now = nullptr;
    driver.current(&now);
    if (now == context) return;
    if (now)
      pushed_ = driver.push(context) == 0;
    else
      driver.set(context);
  }
  ~InContext() {
    Driver::Context popped;
    if (pushed_) driver_.pop(&popped);
  }
  InContext(const InContext&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

// One launcher of a build.
class Program {
 public:
  Images* images;
  std::vector<steps::Step> code;
  std::vector<uint64_t> registers;  // as they are at the begin
  // For each word of a call the register that gets it, and whether it is a double's bits that become a float's.
  std::vector<std::pair<uint16_t, bool>> parameters;
  std::vector<unsigned char> data;
  size_t local_bytes = 0;
  std::vector<size_t> symbols;  // of the images, those that the steps name by kSymbolsAt, in this order
  size_t stream = 0;            // the word with the stream

  int64_t run(const int64_t* words, int32_t device) const {
    caffe_launch launch;
    memset(&launch, 0, offsetof(caffe_launch, upload));
    if (const char* const why = computed(words, &launch)) return kernels_failed(why);
    if (launch.problem) return kernels_failed(problem(launch));
    if (!launch.kernel) return kernels_failed("its launcher launches nothing");
    return started(launch, reinterpret_cast<void*>(words[stream]), device);
  }

  // The launch of these words; why there is none, or null.
  const char* computed(const int64_t* words, caffe_launch* launch) const {
    uint64_t r[steps::kMostRegisters];
    unsigned char local[steps::kMostLocal];
    std::copy(registers.begin(), registers.end(), r);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const uint64_t word = static_cast<uint64_t>(words[i]);
      r[parameters[i].first] =
          parameters[i].second ? steps::bits_of<float>(static_cast<float>(steps::as<double>(word))) : word;
    }
    return steps::Machine(data, launch, local, local_bytes).run(code, r);
  }

 private:
  std::string text_at(uint64_t address) const {
    if (address < steps::kDataAt || address >= steps::kDataAt + data.size()) return "a number";
    const auto from = data.begin() + static_cast<ptrdiff_t>(address - steps::kDataAt);
    return std::string(from, std::find(from, data.end(), 0));
  }

  std::string problem(const caffe_launch& launch) const {
    const std::string text = text_at(launch.text);
    char number[64];
    snprintf(number, sizeof(number), "%f", launch.number);
    switch (launch.problem) {
      case CAFFE_NO_INT:
        return text + ": " + std::to_string(launch.value) + " does not fit the kernel's int";
      case CAFFE_NO_INDEX:
        return text + ": " + std::to_string(launch.value) + " does not fit " + std::to_string(launch.bits) +
               " bits";
      case CAFFE_NO_NUMBER:
        return text + ": " + number + " is no number of the tensors' type";
      case CAFFE_NO_DTYPE: {
        static const char* const names[] = {"float32", "float64", "float16", "bfloat16", "int32",
                                            "int64",   "int8",    "uint8",   "int16",    "uint16",
                                            "uint32",  "uint64",  "bool"};
        const bool known = launch.value >= 0 && launch.value < 13;
        return "expected " + text + ", got " + (known ? names[launch.value] : "a tensor of another dtype");
      }
      default:
        return text;
    }
  }

  int64_t started(const caffe_launch& launch, void* stream, int32_t device) const {
    Images::Loaded* const loaded = images->on(device);
    if (!loaded) return 1;
    const Driver& driver = Driver::get();
    const InContext context(driver, loaded->context);
    const std::vector<unsigned>& known = images->numbers;
    const size_t number =
        static_cast<size_t>(std::lower_bound(known.begin(), known.end(), launch.kernel) - known.begin());
    if (number == known.size() || known[number] != launch.kernel || launch.count > 64)
      return kernels_failed("its launcher names no kernel");
    Driver::Function function = loaded->functions[number].load(std::memory_order_acquire);
    if (!function) {
      if (const int error = driver.function(&function, loaded->module, images->kernels[number].c_str()))
        return failed(error, "the kernel " + images->kernels[number], number, device);
      loaded->functions[number].store(function, std::memory_order_release);
    }
    for (unsigned i = 0; i < launch.uploads; ++i)
      if (const int error = uploaded(driver, *loaded, launch.upload[i], stream))
        return failed(error, "a variable's values", number, device);
    const unsigned shared = static_cast<unsigned>(launch.shared);
    if (launch.shared > 0xffffffffull) return failed(Driver::kInvalidValue, "kernel launch", number, device);
    if (shared > 48u << 10 && shared > loaded->shared[number].load()) {
      if (const int error =
              driver.function_attribute(function, Driver::kDynamicShared, static_cast<int>(shared)))
        return failed(error, "kernel launch", number, device);
      loaded->shared[number].store(shared);
    }
    void* arguments[64];
    for (unsigned i = 0; i < launch.count; ++i)
      arguments[i] = const_cast<char*>(reinterpret_cast<const char*>(launch.arguments)) + launch.offsets[i];
    const unsigned *g = launch.grid, *b = launch.block;
    const int error = launch.is_cooperative ? driver.launch_cooperative(function, g[0], g[1], g[2], b[0],
                                                                        b[1], b[2], shared, stream, arguments)
                                            : driver.launch(function, g[0], g[1], g[2], b[0], b[1], b[2],
                                                            shared, stream, arguments, nullptr);
    return error ? failed(error, "kernel launch", number, device) : 0;
  }

  int uploaded(const Driver& driver, const Images::Loaded& loaded, const caffe_launch_upload& one,
               void* stream) const {
    const uint64_t number = (one.symbol - steps::kSymbolsAt) >> 32;
    Driver::Address to = 0;
    size_t bytes = 0;
    if (number >= symbols.size() || symbols[number] >= images->symbols.size()) return Driver::kNotFound;
    const std::string& name = images->symbols[symbols[number]];
    if (const int error = driver.global(&to, &bytes, loaded.module, name.c_str())) return error;
    if (one.bytes > bytes) return Driver::kInvalidValue;
    if (!one.is_value) return driver.copy(to, one.from, one.bytes, stream);
    // By value, so that a graph of CUDA keeps it.
    if (const int error = driver.fill(to, static_cast<unsigned>(one.from), 1, stream)) return error;
    return driver.fill(to + 4, static_cast<unsigned>(one.from >> 32), 1, stream);
  }

  int64_t failed(int error, const std::string& what, size_t number, int32_t device) const {
    const Driver& driver = Driver::get();
    std::string text = images->file + ":" + std::to_string(images->lines[number]) + ": " + what + ": ";
    text += driver.text_of(error);
    if (error == Driver::kInvalidValue) {
      int threads = 0, bytes = 0, most = 0;
      driver.device_attribute(&threads, Driver::kMostThreads, device);
      driver.device_attribute(&bytes, Driver::kMostShared, device);
      driver.device_attribute(&most, Driver::kMostSharedOptIn, device);
      text += ": a block of this GPU has at most " + std::to_string(threads) + " threads and " +
              std::to_string(most) +
              " bytes of shared memory, a grid at most 2147483647 x 65535 x 65535 blocks";
    }
    return kernels_failed(text);
  }
};

// A C function of a library, by its arguments as words (src/edge/ffi_run.h), or a launcher that is data.
class Function {
 public:
  using Run = int64_t (*)(const int64_t* words);
  Function() = default;
  // The address, and of what it is.
  Function(unsigned long long address, bool is_program)
      : address_(static_cast<uintptr_t>(address)), is_program_(is_program) {}
  explicit operator bool() const { return address_ != 0; }
  int64_t operator()(const int64_t* words, int32_t device) const {
    if (is_program_) return reinterpret_cast<const Program*>(address_)->run(words, device);
    return reinterpret_cast<Run>(address_)(words);
  }

 private:
  uintptr_t address_ = 0;
  bool is_program_ = false;
};

// -------------------------------------------------------------------------------------------- for Python

inline bool text_from(PyObject* object, std::string* to) {
  Py_ssize_t size = 0;
  char* text = nullptr;
  if (PyBytes_AsStringAndSize(object, &text, &size)) return false;
  to->assign(text, static_cast<size_t>(size));
  return true;
}

inline bool texts_from(PyObject* tuple, std::vector<std::string>* to) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    to->emplace_back();
    if (!text_from(PyTuple_GetItem(tuple, i), &to->back())) return false;
  }
  return !PyErr_Occurred();
}

// images(images, kernels, symbols, file, targets): their address. images: (architecture, is_ptx, content). kernels:
// (number, line, name), sorted.
inline PyObject* kernels_images(PyObject*, PyObject* given) {
  PyObject *listed, *kernels, *symbols, *file, *targets;
  if (!PyArg_ParseTuple(given, "O!O!O!SS", &PyTuple_Type, &listed, &PyTuple_Type, &kernels, &PyTuple_Type,
                        &symbols, &file, &targets))
    return nullptr;
  auto made = std::make_unique<Images>();
  for (Py_ssize_t i = 0; i < PyTuple_Size(listed); ++i) {
    int is_ptx = 0;
    PyObject* content = nullptr;
    Images::Image image;
    if (!PyArg_ParseTuple(PyTuple_GetItem(listed, i), "ipS", &image.architecture, &is_ptx, &content) ||
        !text_from(content, &image.content))
      return nullptr;
    image.is_ptx = is_ptx;
    made->images.push_back(std::move(image));
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(kernels); ++i) {
    unsigned number = 0;
    int line = 0;
    PyObject* name = nullptr;
    if (!PyArg_ParseTuple(PyTuple_GetItem(kernels, i), "IiS", &number, &line, &name)) return nullptr;
    made->numbers.push_back(number);
    made->lines.push_back(line);
    made->kernels.emplace_back();
    if (!text_from(name, &made->kernels.back())) return nullptr;
  }
  if (!texts_from(symbols, &made->symbols) || !text_from(file, &made->file) ||
      !text_from(targets, &made->targets))
    return nullptr;
  return PyLong_FromVoidPtr(made.release());
}

// program(images, steps, registers, parameters, data, local_bytes, symbols, stream): its address.
// steps: five numbers of 16 bits each; registers: 64 bits each; parameters: (register, is_float).
inline PyObject* kernels_program(PyObject*, PyObject* given) {
  unsigned long long images;
  PyObject *code, *registers, *parameters, *data, *symbols;
  Py_ssize_t local_bytes, stream;
  if (!PyArg_ParseTuple(given, "KSSO!SnO!n", &images, &code, &registers, &PyTuple_Type, &parameters, &data,
                        &local_bytes, &PyTuple_Type, &symbols, &stream))
    return nullptr;
  auto made = std::make_unique<Program>();
  std::string text;
  made->images = reinterpret_cast<Images*>(static_cast<uintptr_t>(images));
  if (!text_from(code, &text)) return nullptr;
  made->code.resize(text.size() / sizeof(steps::Step));
  memcpy(made->code.data(), text.data(), made->code.size() * sizeof(steps::Step));
  if (!text_from(registers, &text)) return nullptr;
  made->registers.resize(text.size() / sizeof(uint64_t));
  memcpy(made->registers.data(), text.data(), made->registers.size() * sizeof(uint64_t));
  if (!text_from(data, &text)) return nullptr;
  made->data.assign(text.begin(), text.end());
  made->local_bytes = static_cast<size_t>(local_bytes);
  for (Py_ssize_t i = 0; i < PyTuple_Size(symbols); ++i)
    made->symbols.push_back(PyLong_AsSize_t(PyTuple_GetItem(symbols, i)));
  made->stream = static_cast<size_t>(stream);
  const size_t count = made->registers.size();
  for (Py_ssize_t i = 0; i < PyTuple_Size(parameters); ++i) {
    int to = 0, is_float = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(parameters, i), "ip", &to, &is_float)) return nullptr;
    made->parameters.emplace_back(static_cast<uint16_t>(to), is_float);
  }
  bool fits = count <= steps::kMostRegisters && made->local_bytes <= steps::kMostLocal;
  for (const auto& [to, is_float] : made->parameters) fits = fits && to < count;
  fits = fits && made->code.size() <= steps::kMostRegisters;
  for (const steps::Step& s : made->code) {
    const bool jumps = s.op == steps::k_bra || s.op == steps::k_bra_if || s.op == steps::k_bra_unless;
    const bool puts = s.op == steps::k_put_u32 || s.op == steps::k_put_u64;
    const size_t bytes = s.op == steps::k_put_u32 ? 4 : 8;
    fits = fits && s.op < steps::kOperations && s.to < count && s.a < count && s.c < count &&
           (jumps  ? s.b <= made->code.size()
            : puts ? s.b < steps::kMostRegisters && 4 * s.b + bytes <= sizeof(caffe_launch)
                   : s.b < count);
  }
  if (!fits || made->stream >= made->parameters.size())
    return PyErr_SetString(PyExc_ValueError, "steps that cannot be run"), nullptr;
  return PyLong_FromVoidPtr(made.release());
}

// compute(program, words): what the steps say of such a launch, for tests: (problem's text, kernel, grid, block, shared,
// arguments).
inline PyObject* kernels_compute(PyObject*, PyObject* given) {
  unsigned long long program;
  PyObject* listed;
  if (!PyArg_ParseTuple(given, "KO!", &program, &PyTuple_Type, &listed)) return nullptr;
  int64_t words[64] = {};
  for (Py_ssize_t i = 0; i < PyTuple_Size(listed) && i < 64; ++i)
    words[i] = PyLong_AsLongLong(PyTuple_GetItem(listed, i));
  if (PyErr_Occurred()) return nullptr;
  caffe_launch l;
  memset(&l, 0, sizeof(l));
  const char* const why =
      reinterpret_cast<const Program*>(static_cast<uintptr_t>(program))->computed(words, &l);
  PyObject* const arguments =
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(l.arguments), sizeof(l.arguments));
  PyObject* const offsets = PyTuple_New(l.count > 64 ? 0 : l.count);
  for (Py_ssize_t i = 0; offsets && i < PyTuple_Size(offsets); ++i)
    PyTuple_SetItem(offsets, i, PyLong_FromUnsignedLong(l.offsets[i]));
  return Py_BuildValue("(ziI(III)(III)KNN)", why, static_cast<int>(l.problem), l.kernel, l.grid[0], l.grid[1],
                       l.grid[2], l.block[0], l.block[1], l.block[2], l.shared, arguments, offsets);
}

// kernels_error(): the text of this thread's last failed launch.
inline PyObject* kernels_text(PyObject*, PyObject*) {
  return PyUnicode_DecodeUTF8(kernels_error, static_cast<Py_ssize_t>(strlen(kernels_error)), "replace");
}

// driver(path): use this driver from now on.
inline PyObject* kernels_driver(PyObject*, PyObject* path) {
  std::string text;
  if (!text_from(path, &text)) return nullptr;
  Driver::use(text.c_str());
  Py_RETURN_NONE;
}

// The names of all steps, in the order of their numbers.
inline PyObject* kernels_operations() {
  PyObject* const names = PyTuple_New(static_cast<Py_ssize_t>(steps::kOperations));
  for (size_t i = 0; names && i < steps::kOperations; ++i)
    PyTuple_SetItem(names, static_cast<Py_ssize_t>(i), PyUnicode_FromString(steps::kNames[i]));
  return names;
}

}  // namespace caffe
