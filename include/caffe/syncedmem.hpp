// Memory with a host side and a device side, each brought up to date when it is asked for.
#ifndef CAFFE_SYNCEDMEM_HPP_
#define CAFFE_SYNCEDMEM_HPP_

#include <cstdlib>
#include <memory>

#include "caffe/common.hpp"

namespace caffe {

// On the host backend both sides are one buffer, and only head() tells who wrote last.
class SyncedMemory {
 public:
  SyncedMemory() : SyncedMemory(0) {}
  explicit SyncedMemory(size_t size) : size_(size), bytes_(size) {}
  ~SyncedMemory();

  const void* cpu_data();
  const void* gpu_data();
  void* mutable_cpu_data();
  void* mutable_gpu_data();
  // The caller's memory of size() bytes, which stays the caller's.
  void set_cpu_data(void* data);
  void set_gpu_data(void* data);
  void async_gpu_push(const cudaStream_t& stream);

  enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };
  SyncedHead head() const { return head_; }
  size_t size() const { return size_; }

  // What follows is ours: one call's memory (a tensor's) in the place of our own, on the side where the call
  // has it.

  // What adopted memory holds: something; nothing, so that it is zeroed at first touch; nothing, but whoever
  // writes it first writes all of it, so that it is zeroed only if it is read before.
  enum Contents { kDefined, kUndefined, kOverwritten };
  // Use `bytes` at `address` until drop(). Not writable: the first write moves the contents to memory of our
  // own.
  void adopt(void* address, size_t bytes, Contents contents, bool writable);
  bool adopted() const { return adopted_; }
  // Was it written since it was adopted?
  bool was_written() const { return written_; }
  // Forget what was adopted, contents and all; memory of our own keeps its contents.
  void drop() {
    if (adopted_) drop_adopted();
  }
  // A blob is about to use this many bytes: adopted memory that is too small is dropped.
  void fit(size_t bytes) {
    if (adopted_ && bytes > bytes_) drop_adopted();
  }
  // Forget the contents and give the memory on the call's side back.
  void clear();

  // The address on the call's side and the token of the allocation there (-1: not ours).
  const void* data() { return device_call() ? gpu_data() : cpu_data(); }
  void* mutable_data() { return device_call() ? mutable_gpu_data() : mutable_cpu_data(); }
  int64_t token() const { return side_of_call().token; }
  int64_t host_token() const { return host_.token; }
  // The memory on the call's side is the caller's from now on.
  void release_to_caller();
  // In a call on the device: what the host wrote is on its way there.
  void settle() {
    if (head_ == HEAD_AT_CPU || unwritten_) (void)data();
  }

  // The blob that made this, to tell its own memory from another's that it shares.
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
  size_t bytes_;  // of which so many are in use: as many as an adopted tensor has
  SyncedHead head_ = UNINITIALIZED;
  bool adopted_ = false;
  bool read_only_ = false;
  bool unwritten_ = false;
  bool written_ = false;
  struct Push;  // a copy from host to device that may be under way
  std::unique_ptr<Push, void (*)(Push*)> push_{nullptr, nullptr};

  DISABLE_COPY_AND_ASSIGN(SyncedMemory);
};

// Ours: both ends are on the side where the running call has its tensors.
void copy_on_side_of_call(void* to, const void* from, size_t bytes);

// Upstream's names, for sources that take host memory directly.
void CaffeMallocHost(void** ptr, size_t size, bool* use_cuda);
void CaffeFreeHost(void* ptr, bool use_cuda);

}  // namespace caffe

#endif  // CAFFE_SYNCEDMEM_HPP_
