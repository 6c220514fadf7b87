// Memory with a host side and a device side. A side is updated when a caller asks for it.
#ifndef CAFFE_SYNCEDMEM_HPP_
#define CAFFE_SYNCEDMEM_HPP_

#include "caffe/common.hpp"

namespace caffe {

// On the host backend both sides are one buffer, and head() says which side was written last.
class SyncedMemory {
 public:
  SyncedMemory() : SyncedMemory(0) {}
  explicit SyncedMemory(size_t size) : size_(size), bytes_(size) {}
  ~SyncedMemory();

  const void* cpu_data();
  const void* gpu_data();
  void* mutable_cpu_data();
  void* mutable_gpu_data();
  // Use the caller's memory of size() bytes. The caller frees it.
  void set_cpu_data(void* data);
  void set_gpu_data(void* data);
  void async_gpu_push(const cudaStream_t&) { (void)gpu_data(); }

  enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };
  SyncedHead head() const { return head_; }
  size_t size() const { return size_; }

  // The functions below are not Caffe's. For one call they replace our own memory by a tensor's ("adopted"),
  // on the call's side: the device for CUDA tensors, else the host.

  // The contents of adopted memory. kDefined: valid values. kUndefined: none, so the first access zeroes it.
  // kOverwritten: none, but the first write will write all of it, so only an earlier read zeroes it.
  enum Contents { kDefined, kUndefined, kOverwritten };
  // Use the `bytes` at `address` until drop(). If they are not writable, the first write copies them to
  // memory of our own.
  void adopt(void* address, size_t bytes, Contents contents, bool writable);
  bool adopted() const { return adopted_; }
  // Was it written since it was adopted?
  bool was_written() const { return written_; }
  // Forget adopted memory and its contents. Our own memory keeps its contents.
  void drop() {
    if (adopted_) drop_adopted();
  }
  // Keep what the call wrote when it is over. Returns whether the memory is our own: a tensor's memory is not kept.
  bool keep();
  // A blob is going to use this many bytes. Drop adopted memory if it is too small.
  void fit(size_t bytes) {
    if (adopted_ && bytes > bytes_) drop_adopted();
  }
  // Forget the contents, and free the memory on the call's side.
  void clear();

  // The address on the call's side, and its allocation's token (-1: the memory is not our own).
  const void* data() { return device_call() ? gpu_data() : cpu_data(); }
  void* mutable_data() { return device_call() ? mutable_gpu_data() : mutable_cpu_data(); }
  int64_t token() const { return side_of_call().token; }
  int64_t host_token() const { return host_.token; }
  // From now on the caller owns the memory on the call's side.
  void release_to_caller();
  // At a call's end: start the copy of the host's values to the call's side, and zero what nobody wrote.
  void settle() {
    if (head_ == HEAD_AT_CPU || unwritten_) (void)data();
  }

  // The blob that made this memory. Other blobs may share it.
  const void* maker = nullptr;

 private:
  struct Side {
    void* address = nullptr;
    int64_t token = -1;
    int device = -1;  // where the allocation is
    bool own = false;
  };

#ifdef CAFFE_HOST_BACKEND
  static bool device_call() { return false; }
  Side& device_side() { return host_; }
  const Side& side_of_call() const { return host_; }
#else
  static bool device_call() { return call_context.device >= 0; }
  Side& device_side() { return device_; }
  const Side& side_of_call() const { return device_call() ? device_ : host_; }
  Side device_;
#endif
  Side& side_of_call() { return device_call() ? device_side() : host_; }

  void to_cpu();
  void to_gpu();
  void make(Side* side, bool on_device);
  void free(Side* side);
  void drop_adopted();
  void detach();
  void nobody_wrote();
  void await_push();

  Side host_;
  size_t size_;
  size_t bytes_;  // bytes in use: fewer than size_ if an adopted tensor is smaller
  SyncedHead head_ = UNINITIALIZED;
  bool adopted_ = false;
  bool read_only_ = false;
  bool unwritten_ = false;
  bool written_ = false;
  struct Push;  // a copy from host to device that may be under way
  std::unique_ptr<Push, void (*)(Push*)> push_{nullptr, nullptr};

  DISABLE_COPY_AND_ASSIGN(SyncedMemory);
};

// Not Caffe's. Both addresses are on the call's side.
void copy_on_side_of_call(void* to, const void* from, size_t bytes);

// Caffe's functions, for layers that allocate host memory.
void CaffeMallocHost(void** ptr, size_t size, bool* use_cuda);
void CaffeFreeHost(void* ptr, bool use_cuda);

}  // namespace caffe

#endif  // CAFFE_SYNCEDMEM_HPP_
