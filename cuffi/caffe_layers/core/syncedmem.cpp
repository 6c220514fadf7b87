#include "caffe/syncedmem.hpp"

#include <string.h>

namespace caffe {

#ifdef CAFFE_HOST_BACKEND

// Both sides are one buffer, so nothing is copied between them.
struct SyncedMemory::Push {};
namespace {
void zero(void* address, size_t bytes, bool) { memset(address, 0, bytes); }
void copy(void* to, const void* from, size_t bytes, bool) { memcpy(to, from, bytes); }
}  // namespace
void SyncedMemory::await_push() {}

#else

namespace {

void zero(void* address, size_t bytes, bool on_device) {
  if (on_device) {
    CUDA_CHECK(cudaMemsetAsync(address, 0, bytes, current_stream()));
  } else {
    memset(address, 0, bytes);
  }
}

void copy(void* to, const void* from, size_t bytes, bool on_device) {
  if (on_device) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, current_stream()));
  } else {
    memcpy(to, from, bytes);
  }
}

bool capturing() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA_CHECK(cudaStreamIsCapturing(current_stream(), &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

// An asynchronous copy to the device. The host must not write to its buffer until the copy is done.
struct SyncedMemory::Push {
  cudaEvent_t done = nullptr;
  bool under_way = false;
  // A replayed CUDA graph copies from here.
  std::vector<std::unique_ptr<char[]> > captured;

  ~Push() {
    if (done) (void)cudaEventDestroy(done);
  }
};

void SyncedMemory::await_push() {
  if (!push_ || !push_->under_way) return;
  push_->under_way = false;
  // During a capture CUDA forbids to wait for an event. The device was idle when the capture began.
  if (!capturing()) CUDA_CHECK(cudaEventSynchronize(push_->done));
}

#endif

SyncedMemory::~SyncedMemory() {
  try {
    free(&host_);
    if (&device_side() != &host_) free(&device_side());
  } catch (const Error&) {  // if the device is gone, so is its memory
  }
}

const void* SyncedMemory::cpu_data() {
  if (unwritten_) nobody_wrote();
  to_cpu();
  return host_.address;
}

const void* SyncedMemory::gpu_data() {
  if (unwritten_) nobody_wrote();
  to_gpu();
  return device_side().address;
}

void* SyncedMemory::mutable_cpu_data() {
  unwritten_ = false;
  written_ = true;
  if (read_only_) detach();
  to_cpu();
  await_push();
  head_ = HEAD_AT_CPU;
  return host_.address;
}

void* SyncedMemory::mutable_gpu_data() {
  unwritten_ = false;
  written_ = true;
  if (read_only_) detach();
  to_gpu();
  head_ = HEAD_AT_GPU;
  return device_side().address;
}

void SyncedMemory::set_cpu_data(void* data) {
  CHECK(data);
  drop();
  free(&host_);
  host_.address = data;
  head_ = HEAD_AT_CPU;
}

void SyncedMemory::set_gpu_data(void* data) {
  CHECK(data);
  drop();
  free(&device_side());
  device_side().address = data;
  head_ = HEAD_AT_GPU;
}

void SyncedMemory::adopt(void* address, size_t bytes, Contents contents, bool writable) {
  CHECK_LE(bytes, size_);
  Side& side = side_of_call();
  free(&side);
  side.address = address;
  bytes_ = bytes;
  head_ = contents == kUndefined ? UNINITIALIZED : device_call() ? HEAD_AT_GPU : HEAD_AT_CPU;
  unwritten_ = contents == kOverwritten;
  adopted_ = true;
  written_ = false;
  read_only_ = !writable;
}

void SyncedMemory::drop_adopted() {
  adopted_ = read_only_ = unwritten_ = false;
  bytes_ = size_;
  clear();
}

bool SyncedMemory::keep() {
  settle();
  if (!side_of_call().own) return false;
  adopted_ = read_only_ = false;
  bytes_ = size_;
  return true;
}

void SyncedMemory::nobody_wrote() {
  unwritten_ = false;
  head_ = UNINITIALIZED;
}

void SyncedMemory::clear() {
  free(&side_of_call());
  head_ = UNINITIALIZED;
}

void SyncedMemory::release_to_caller() {
  side_of_call() = Side();
  head_ = UNINITIALIZED;
}

void SyncedMemory::detach() {
  Side own;
  make(&own, device_call());
  if (head_ != UNINITIALIZED) copy(own.address, side_of_call().address, bytes_, device_call());
  side_of_call() = own;
  read_only_ = false;
}

void SyncedMemory::make(Side* side, bool on_device) {
#ifdef CAFFE_HOST_BACKEND
  const int64_t device = CAFFE_ON_HOST;
#else
  // Host memory is page-locked, because some layers pass host addresses to kernels.
  const int64_t device = on_device ? call_context.device : CAFFE_ON_PAGE_LOCKED_HOST;
#endif
  side->address = host_services.allocate(size_, device, &side->token);
  CHECK(side->address) << "allocation of " << size_ << " bytes failed";
  side->device = static_cast<int>(device);
  side->own = true;
}

void SyncedMemory::free(Side* side) {
  if (side == &host_) await_push();
  if (side->own) host_services.release(side->token);
  *side = Side();
}

#ifdef CAFFE_HOST_BACKEND

void SyncedMemory::to_cpu() {
  if (head_ == UNINITIALIZED) {
    if (!host_.address) make(&host_, false);
    zero(host_.address, bytes_, false);
    head_ = HEAD_AT_CPU;
  } else if (head_ == HEAD_AT_GPU) {
    head_ = SYNCED;
  }
}

void SyncedMemory::to_gpu() {
  if (head_ == UNINITIALIZED) {
    to_cpu();
    head_ = HEAD_AT_GPU;
  } else if (head_ == HEAD_AT_CPU) {
    head_ = SYNCED;
  }
}

#else

void SyncedMemory::to_cpu() {
  if (head_ == HEAD_AT_CPU || head_ == SYNCED) return;
  if (!host_.address) make(&host_, false);
  if (head_ == UNINITIALIZED) {
    await_push();
    zero(host_.address, bytes_, false);
    head_ = HEAD_AT_CPU;
    return;
  }
  if (capturing()) {
    LOG(FATAL) << "the layer reads or writes a blob on the host, which cannot be captured in a CUDA graph";
  }
  CUDA_CHECK(
      cudaMemcpyAsync(host_.address, device_.address, bytes_, cudaMemcpyDeviceToHost, current_stream()));
  CUDA_CHECK(cudaStreamSynchronize(current_stream()));
  head_ = SYNCED;
}

void SyncedMemory::to_gpu() {
  if (head_ == HEAD_AT_GPU || head_ == SYNCED) return;
  if (!device_.address) {
    CHECK_GE(call_context.device, 0) << "a blob is wanted on the GPU in a call for CPU tensors";
    make(&device_, true);
  }
  CHECK(!device_.own || device_.device == call_context.device)
      << "the layer's memory is on GPU " << device_.device << ", the call on GPU " << call_context.device;
  if (head_ == UNINITIALIZED) {
    zero(device_.address, bytes_, true);
    head_ = HEAD_AT_GPU;
    return;
  }
  if (!push_) push_ = {new Push, [](Push* push) { delete push; }};
  const void* source = host_.address;
  if (capturing()) {
    // Keep a copy: each replay of the graph must copy the present values.
    push_->captured.emplace_back(new char[bytes_]);
    source = memcpy(push_->captured.back().get(), source, bytes_);
    CUDA_CHECK(cudaMemcpyAsync(device_.address, source, bytes_, cudaMemcpyHostToDevice, current_stream()));
  } else {
    if (!push_->done) CUDA_CHECK(cudaEventCreateWithFlags(&push_->done, cudaEventDisableTiming));
    CUDA_CHECK(cudaMemcpyAsync(device_.address, source, bytes_, cudaMemcpyHostToDevice, current_stream()));
    CUDA_CHECK(cudaEventRecord(push_->done, current_stream()));
    push_->under_way = true;
  }
  head_ = SYNCED;
}

#endif

void copy_on_side_of_call(void* to, const void* from, size_t bytes) {
#ifdef CAFFE_HOST_BACKEND
  copy(to, from, bytes, false);
#else
  copy(to, from, bytes, call_context.device >= 0);
#endif
}

void CaffeMallocHost(void** ptr, size_t size, bool* use_cuda) {
  *use_cuda = false;
  *ptr = malloc(size ? size : 1);
#ifndef CAFFE_HOST_BACKEND
  if (Caffe::mode() == Caffe::GPU) {
    ::free(*ptr);
    CUDA_CHECK(cudaMallocHost(ptr, size));
    *use_cuda = true;
  }
#endif
  CHECK(*ptr) << "host allocation of size " << size << " failed";
}

void CaffeFreeHost(void* ptr, bool use_cuda) {
#ifndef CAFFE_HOST_BACKEND
  if (use_cuda) {
    CUDA_CHECK(cudaFreeHost(ptr));
    return;
  }
#endif
  (void)use_cuda;
  ::free(ptr);
}

}  // namespace caffe
