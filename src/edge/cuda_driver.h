// The functions of NVIDIA's driver that launch a kernel. They are looked up when they are first needed, because a machine
// without a GPU has no driver. The declarations are the driver's C interface as it is documented; no header of it is read.
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include <atomic>
#include <mutex>
#include <string>

namespace caffe {

struct Driver {
  using Context = void*;
  using Module = void*;
  using Function = void*;
  using Address = unsigned long long;
  enum { kInvalidValue = 1, kNotFound = 500 };
  // Attributes of a device, and of a function.
  enum { kMostThreads = 1, kMostShared = 8, kMajor = 75, kMinor = 76, kMostSharedOptIn = 97 };
  enum { kDynamicShared = 8 };

  int (*init)(unsigned);
  int (*current)(Context*);
  int (*push)(Context);
  int (*pop)(Context*);
  int (*set)(Context);
  int (*retain)(Context*, int device);
  int (*device_attribute)(int*, int, int device);
  int (*load)(Module*, const void*);
  int (*function)(Function*, Module, const char*);
  int (*global)(Address*, size_t*, Module, const char*);
  int (*function_attribute)(Function, int, int);
  int (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**);
  int (*launch_cooperative)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            void*, void**);
  int (*copy)(Address, Address, size_t, void*);
  int (*fill)(Address, unsigned, size_t, void*);
  int (*name)(int, const char**);
  int (*words)(int, const char**);
  std::string missing;  // why it cannot be used

  // The one that is in use, looked up at the first call.
  static const Driver& get() {
    if (const Driver* const known = now().load(std::memory_order_acquire)) return *known;
    return use("libcuda.so.1");
  }
  // Use another one from now on. None is ever removed.
  static const Driver& use(const char* path) {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    const Driver* const made = new Driver(path);
    now().store(made, std::memory_order_release);
    return *made;
  }
  std::string text_of(int error) const {
    const char *called = nullptr, *said = nullptr;
    name(error, &called);
    words(error, &said);
    return std::string(called ? called : "unknown error") + ": " + (said ? said : std::to_string(error));
  }

 private:
  static std::atomic<const Driver*>& now() {
    static std::atomic<const Driver*> driver{nullptr};
    return driver;
  }
  explicit Driver(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      missing = dlerror();
      return;
    }
    find(library, "cuInit", &init);
    find(library, "cuCtxGetCurrent", &current);
    find(library, "cuCtxPushCurrent_v2", &push);
    find(library, "cuCtxPopCurrent_v2", &pop);
    find(library, "cuCtxSetCurrent", &set);
    find(library, "cuDevicePrimaryCtxRetain", &retain);
    find(library, "cuDeviceGetAttribute", &device_attribute);
    find(library, "cuModuleLoadData", &load);
    find(library, "cuModuleGetFunction", &function);
    find(library, "cuModuleGetGlobal_v2", &global);
    find(library, "cuFuncSetAttribute", &function_attribute);
    find(library, "cuLaunchKernel", &launch);
    find(library, "cuLaunchCooperativeKernel", &launch_cooperative);
    find(library, "cuMemcpyDtoDAsync_v2", &copy);
    find(library, "cuMemsetD32Async", &fill);
    find(library, "cuGetErrorName", &name);
    find(library, "cuGetErrorString", &words);
    if (!missing.empty()) return;
    if (const int error = init(0)) missing = text_of(error);
  }
  template <typename Pointer>
  void find(void* library, const char* called, Pointer* to) {
    *to = reinterpret_cast<Pointer>(dlsym(library, called));
    if (!*to && missing.empty()) missing = std::string("the driver has no ") + called;
  }
};

}  // namespace caffe
