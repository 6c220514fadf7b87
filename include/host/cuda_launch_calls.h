// Launches as function calls: cudaLaunchKernel, cudaLaunchKernelEx and the like, of a kernel or of its void*.
#pragma once

#include "cuda_launch.h"

namespace cuda_host {

template <typename... Parameters, size_t... I>
inline void call_kernel(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...>) {
  (void)arguments;
  kernel(*static_cast<std::remove_reference_t<Parameters>*>(arguments[I])...);
}
// A kernel is called with zeros to know which one it is.
template <typename Parameter>
std::remove_cv_t<Parameter>& zero() {
  alignas(Parameter) static char zeros[sizeof(Parameter)];
  return *reinterpret_cast<std::remove_cv_t<Parameter>*>(zeros);
}
template <typename... Parameters>
inline cudaError_t set_limit(void (*kernel)(Parameters...), int bytes) {
  if (is_too_much_shared(bytes)) return cudaErrorInvalidValue;
  const Allowing allowing(bytes);
  kernel(zero<std::remove_reference_t<Parameters>>()...);
  return cudaSuccess;
}

// The kernels that were cast to void*, whose parameters are then known by the address alone.
struct Known {
  const void* kernel;
  void (*call)(const void* kernel, void** arguments);
  cudaError_t (*limit)(const void* kernel, int bytes);
  Known* next;
};
inline Known* known_kernels = nullptr;
inline const Known* known(const void* kernel) {
  for (const Known* k = __atomic_load_n(&known_kernels, __ATOMIC_ACQUIRE); k; k = k->next)
    if (k->kernel == kernel) return k;
  return nullptr;
}
// `(void*)kernel` is `as_pointer->*kernel` (tools/cuda/to_host.py): `->*` binds as a cast does here.
struct AsPointer {
  template <typename... Parameters>
  void* operator->*(void (*kernel)(Parameters...)) const {
    void* const address = reinterpret_cast<void*>(kernel);
    if (known(address)) return address;
    using Kernel = void (*)(Parameters...);
    const auto call = [](const void* own, void** arguments) {
      call_kernel(reinterpret_cast<Kernel>(const_cast<void*>(own)), arguments,
                  std::index_sequence_for<Parameters...>());
    };
    const auto limit = [](const void* own, int bytes) {
      return set_limit(reinterpret_cast<Kernel>(const_cast<void*>(own)), bytes);
    };
    auto* const made = new Known{address, call, limit, __atomic_load_n(&known_kernels, __ATOMIC_RELAXED)};
    while (!__atomic_compare_exchange_n(&known_kernels, &made->next, made, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    return address;
  }
  template <typename... Parameters>
  void* operator()(void (*kernel)(Parameters...)) const {
    return *this->*kernel;
  }
};
inline constexpr AsPointer as_pointer{};

inline cudaError_t launch(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                          cudaStream_t stream, bool cooperative) {
  const Known* const found = known(kernel);
  if (!found) return refused(cudaErrorInvalidDeviceFunction);
  configure(grid, block, shared_bytes, stream, cooperative);
  found->call(kernel, arguments);
  return cudaPeekAtLastError();
}

}  // namespace cuda_host

template <typename... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  cuda_host::configure(grid, block, shared_bytes, stream);
  cuda_host::call_kernel(kernel, arguments, std::index_sequence_for<Parameters...>());
  return cudaPeekAtLastError();
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return cuda_host::launch(kernel, grid, block, arguments, shared_bytes, stream, false);
}
// Its blocks can wait for each other, by cooperative_groups::this_grid().sync().
template <typename... Parameters>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                               void** arguments, size_t shared_bytes = 0,
                                               cudaStream_t stream = nullptr) {
  cuda_host::configure(grid, block, shared_bytes, stream, true);
  cuda_host::call_kernel(kernel, arguments, std::index_sequence_for<Parameters...>());
  return cudaPeekAtLastError();
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return cuda_host::launch(kernel, grid, block, arguments, shared_bytes, stream, true);
}
// Of a kernel: its limit of dynamic shared memory.
template <typename... Parameters>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                        int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return cuda_host::set_limit(kernel, value);
}
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  const cuda_host::Known* const found = cuda_host::known(kernel);
  return found ? found->limit(kernel, value) : cuda_host::allow_shared_bytes(value);  // else it is for all
}

// A launch with attributes. Those that let a kernel begin early have no effect; a cluster of blocks is refused.
enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore,
  cudaLaunchAttributeAccessPolicyWindow,
  cudaLaunchAttributeCooperative,
  cudaLaunchAttributeSynchronizationPolicy,
  cudaLaunchAttributeClusterDimension,
  cudaLaunchAttributeClusterSchedulingPolicyPreference,
  cudaLaunchAttributeProgrammaticStreamSerialization,
  cudaLaunchAttributeProgrammaticEvent,
  cudaLaunchAttributePriority
};
union cudaLaunchAttributeValue {
  int cooperative, priority, programmaticStreamSerializationAllowed;
  struct {
    unsigned int x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned int numAttrs;
};
namespace cuda_host {
// -1: the launch is refused; else, is it cooperative?
inline int asked_of(const cudaLaunchConfig_t& config) {
  int cooperative = 0;
  for (unsigned int i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& a = config.attrs[i];
    if (a.id == cudaLaunchAttributeCooperative) cooperative = a.val.cooperative != 0;
    if (a.id == cudaLaunchAttributeClusterDimension &&
        a.val.clusterDim.x * a.val.clusterDim.y * a.val.clusterDim.z > 1)
      return -1;
  }
  return cooperative;
}
}  // namespace cuda_host
template <typename... Parameters, typename... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                                      Arguments&&... arguments) {
  const int cooperative = cuda_host::asked_of(*config);
  if (cooperative < 0) return cuda_host::refused(cudaErrorNotSupported);
  cuda_host::configure(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream,
                       cooperative != 0);
  kernel(std::forward<Arguments>(arguments)...);
  return cudaPeekAtLastError();
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                       void** arguments) {
  const int cooperative = cuda_host::asked_of(*config);
  if (cooperative < 0) return cuda_host::refused(cudaErrorNotSupported);
  return cuda_host::launch(kernel, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                           config->stream, cooperative != 0);
}
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}
