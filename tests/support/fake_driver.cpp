// A driver for tests: it keeps a log, and runs two kernels on the processor.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

static std::string log_text;
static thread_local void* current = nullptr;
static float weights[4];

static void say(const char* text) { log_text += text, log_text += '\n'; }

extern "C" {
const char* fake_log() { return log_text.c_str(); }
void fake_clear() { log_text.clear(); }
int cuInit(unsigned) { return 0; }
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, say("set"), 0; }
int cuCtxPushCurrent_v2(void* context) { return current = context, 0; }
int cuCtxPopCurrent_v2(void** context) { return *context = current, current = nullptr, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  say("retain");
  return *context = reinterpret_cast<void*>(intptr_t{0x1000} + device), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const char* const major = getenv("FAKE_MAJOR");
  *value = attribute == 75 ? (major ? atoi(major) : 9) : attribute == 76 ? 0 : attribute == 1 ? 1024 : 232448;
  return 0;
}
int cuModuleLoadData(void** module, const void* content) {
  say((std::string("load ") + static_cast<const char*>(content)).c_str());
  if (getenv("FAKE_OLD") && !strncmp(static_cast<const char*>(content), "ptx", 3)) return 222;
  return *module = reinterpret_cast<void*>(1), 0;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  if (!strcmp(name, "missing")) return 500;
  return *function = strdup(name), 0;
}
int cuModuleGetGlobal_v2(unsigned long long* address, size_t* bytes, void*, const char* name) {
  if (strcmp(name, "weights")) return 500;
  *bytes = sizeof(weights);
  return *address = reinterpret_cast<uintptr_t>(weights), 0;
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  char text[64];
  snprintf(text, sizeof(text), "attribute %d %d", attribute, value);
  say(text);
  return value > 232448 ? 1 : 0;
}
static int launched(const char* kind, void* function, const unsigned* n, unsigned shared, void* stream,
                    void** values) {
  char text[256];
  snprintf(text, sizeof(text), "%s %s <<<%u %u %u, %u %u %u, %u, %p>>>", kind, static_cast<char*>(function),
           n[0], n[1], n[2], n[3], n[4], n[5], shared, stream);
  say(text);
  if (n[3] * n[4] * n[5] > 1024 || !n[0]) return 1;
  if (!strcmp(static_cast<char*>(function), "scale")) {  // (int n, const float* x, float* y, float by)
    const int count = *static_cast<int*>(values[0]);
    const float *x = *static_cast<float**>(values[1]), by = *static_cast<float*>(values[3]);
    float* const y = *static_cast<float**>(values[2]);
    for (int i = 0; i < count; ++i) y[i] = x[i] * by + weights[i % 4];
  }
  return 0;
}
int cuLaunchKernel(void* f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z,
                   unsigned shared, void* stream, void** values, void**) {
  const unsigned n[] = {a, b, c, x, y, z};
  return launched("launch", f, n, shared, stream, values);
}
int cuLaunchCooperativeKernel(void* f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z,
                              unsigned shared, void* stream, void** values) {
  const unsigned n[] = {a, b, c, x, y, z};
  return launched("cooperative", f, n, shared, stream, values);
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void*) {
  memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return say("copy"), 0;
}
int cuMemsetD32Async(unsigned long long to, unsigned value, size_t, void*) {
  memcpy(reinterpret_cast<void*>(to), &value, 4);
  return say("fill"), 0;
}
int cuGetErrorName(int error, const char** text) {
  if (error == 222) return *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 0;
  return *text = error == 1 ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_NOT_FOUND", 0;
}
int cuGetErrorString(int error, const char** text) {
  return *text = error == 1 ? "invalid argument" : "named symbol not found", 0;
}
}
