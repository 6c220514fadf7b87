// A layer's bottoms and tops. During a call they use the memory of tensors.
#pragma once

#include <optional>

#include "caffe/blob.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

static_assert(CAFFE_MOST_AXES == kMaxBlobAxes, "a record has room for a blob's shape");

inline void* address(int64_t word) { return reinterpret_cast<void*>(word); }
inline int64_t word(const void* address) { return reinterpret_cast<int64_t>(address); }

template <typename Dtype>
bool has_shape_of(const Blob<Dtype>& blob, const caffe_blob_record& record) {
  return blob.num_axes() == record.axes && std::equal(blob.shape().begin(), blob.shape().end(), record.shape);
}

template <typename Dtype>
void report_shape(const Blob<Dtype>& blob, caffe_blob_record* record) {
  record->axes = blob.num_axes();
  std::copy(blob.shape().begin(), blob.shape().end(), record->shape);
}

template <typename Dtype>
void adopt(const Blob<Dtype>& blob, const shared_ptr<SyncedMemory>& memory, int64_t at,
           SyncedMemory::Contents contents, bool writable) {
  memory->adopt(address(at), sizeof(Dtype) * blob.count(), contents, writable);
}

template <typename Dtype>
void copy(const Blob<Dtype>& blob, int64_t to, const void* from) {
  copy_on_side_of_call(address(to), from, sizeof(Dtype) * blob.count());
}

// After this the blob uses no tensor's memory.
template <typename Dtype>
void drop_tensors(const Blob<Dtype>& blob) {
  if (!blob.has_memory()) return;
  blob.data()->drop();
  blob.diff()->drop();
}

// Memory that a call hands out. The caller must take a reference before the layer's next call,
// which releases it.
class HandedOut {
 public:
  ~HandedOut() { release(); }
  void release() {
    for (int64_t token : tokens_) host_services.release(token);
    tokens_.clear();
  }
  // Hand out the memory itself. This call made it.
  void give(SyncedMemory* memory, int64_t token) {
    memory->release_to_caller();
    tokens_.push_back(token);
  }
  // Hand out a copy, because the layer's next call will overwrite the layer's own memory.
  template <typename Dtype>
  void give_copy(const Blob<Dtype>& blob, int64_t from, int64_t* at, int64_t* token) {
    SyncedMemory copied(sizeof(Dtype) * blob.count());
    *at = word(copied.mutable_data());
    *token = copied.token();
    copy(blob, *at, address(from));
    give(&copied, *token);
  }

 private:
  vector<int64_t> tokens_;
};

// The blobs that a layer is called with. Behind the list's end are some pointers to a blob without memory:
// many layers read bottom[1] without declaring that they need it. In Caffe the process would crash. Here the
// blob's CHECKs report an error.
template <typename Dtype>
class BlobList {
 public:
  const vector<Blob<Dtype>*>& list() const { return list_; }
  Blob<Dtype>& operator[](int64_t i) const { return *list_[i]; }
  void assign(const vector<Blob<Dtype>*>& blobs, Blob<Dtype>* absent) {
    const size_t behind = 8;
    list_ = blobs;
    list_.reserve(blobs.size() + behind);
    std::fill_n(list_.data() + list_.size(), behind, absent);
  }

 private:
  vector<Blob<Dtype>*> list_;
};

template <typename Dtype>
class CallBlobs {
 public:
  using Record = caffe_call_record;

  // The layer's Forward or Backward of this mode writes each element of its results.
  void set_overwrites(int mode, bool backward) { overwrites_[mode][backward] = true; }

  const vector<Blob<Dtype>*>& bottom() const { return bottom_.list(); }
  const vector<Blob<Dtype>*>& top() const { return top_.list(); }
  const vector<bool>& propagate_down() const { return propagate_down_; }

  void make(const Record& record) {
    owned_.clear();
    vector<Blob<Dtype>*> bottoms, tops;
    in_place_of_.assign(record.bottoms, -1);
    kept_.assign(record.bottoms, false);
    for (int64_t i = 0; i < record.bottoms; ++i) bottoms.push_back(new_blob());
    for (int64_t i = 0; i < record.tops; ++i) {
      const int64_t source = top_of(record, i).in_place_of;
      CHECK_LT(source, record.bottoms) << "top " << i << " is to be in place of a bottom that does not exist";
      tops.push_back(source < 0 ? new_blob() : bottoms[source]);
      if (source >= 0) in_place_of_[source] = static_cast<int>(i);
    }
    bottom_.assign(bottoms, &*absent_);
    top_.assign(tops, &*absent_);
    fresh_.assign(record.tops, false);
    loss_weights_.assign(record.tops, LossWeight());
    propagate_down_.assign(record.bottoms, false);
  }

  // After SetUp. Caffe keeps a top's loss weight in its diff, where some layers read it in Forward.
  void keep_loss_weight(int64_t i, Dtype weight) {
    if (weight != 0) loss_weights_[i] = {weight, new_blob()};
    if (top_[i].owns_diff()) top_[i].diff()->clear();
  }

  void check_counts(const Record& record) const {
    CHECK_EQ(record.bottoms, bottom().size()) << "bottoms, as many as at set up";
    CHECK_EQ(record.tops, top().size()) << "tops, as many as at set up";
  }

  void check_absent() {
    if (!absent_->has_memory()) return;
    absent_.emplace();
    LOG(FATAL) << "the layer shapes a blob that it was not given: it has " << bottom().size()
               << " bottom(s) and " << top().size() << " top(s), and needs more";
  }

  void drop() {
    for (const auto& blob : owned_) drop_tensors(*blob);
  }

  // Bottoms are read-only: before a layer writes to one, SyncedMemory copies it. Only in place
  // are they writable. Backward sees the bottoms as Forward left them (keep_bottoms).
  void bind_bottoms(const Record& record, bool backward) {
    if (!backward) forget_bottoms();
    for (int64_t i = 0; i < record.bottoms; ++i) {
      const caffe_blob_record& given = record.blobs[i];
      Blob<Dtype>& blob = bottom_[i];
      blob.Reshape(given.shape, static_cast<int>(given.axes));
      if (kept_[i]) continue;
      const int top = in_place_of_[i];
      const int64_t in_place = top < 0 ? 0 : top_of(record, top).data;
      const int64_t at = in_place ? in_place : given.data;
      if (!at) continue;
      if (in_place && given.data && in_place != given.data) copy(blob, in_place, address(given.data));
      adopt(blob, blob.data(), at, SyncedMemory::kDefined, top >= 0);
    }
  }

  // After Forward: keep the bottoms that it wrote to, for Backward. The caller's tensors are as before.
  void keep_bottoms(const Record& record) {
    for (int64_t i = 0; i < record.bottoms; ++i) {
      Blob<Dtype>& blob = bottom_[i];
      if (in_place_of_[i] >= 0 || !blob.has_memory()) continue;
      SyncedMemory& memory = *blob.data();
      // By ShareData or set_cpu_data a layer gives the blob other memory, which stays without our help.
      const bool other = !memory.adopted() || !blob.owns_data();
      const bool written = memory.adopted() && memory.was_written() && memory.keep();
      kept_[i] = written || other;
    }
  }

  // After Backward.
  void forget_bottoms() {
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] && bottom_[i].owns_data()) bottom_[i].data()->clear();
      kept_[i] = false;
    }
  }

  // For Forward. A top that already has contents got them from the layer's set up, and keeps its own memory.
  void bind_tops(const Record& record) {
    for (int64_t i = 0; i < record.tops; ++i) {
      const caffe_blob_record& given = top_of(record, i);
      Blob<Dtype>& blob = top_[i];
      fresh_[i] =
          given.in_place_of < 0 && blob.owns_data() && blob.data()->head() == SyncedMemory::UNINITIALIZED;
      if (!fresh_[i] || !given.data || !has_shape_of(blob, given)) continue;
      const bool overwritten = overwrites_[record.mode][false];
      adopt(blob, blob.data(), given.data, contents(given.flags & CAFFE_DATA_UNDEFINED, overwritten), true);
    }
    for (int64_t i = 0; i < record.tops; ++i) bind_loss_weight(top_[i], loss_weights_[i]);
  }

  void report_top_shapes(Record* record) const {
    for (int64_t i = 0; i < record->tops; ++i) report_shape(top_[i], &record->blobs[record->bottoms + i]);
  }

  // After Forward. Tops that share memory come first, because handing out its owner would take
  // the memory away.
  void report_tops(Record* record, HandedOut* handed_out) {
    for (const bool own : {false, true}) {
      for (int64_t i = 0; i < record->tops; ++i) {
        if (top_[i].owns_data() == own) report_top(i, &record->blobs[record->bottoms + i], handed_out);
      }
    }
  }

  // For Backward.
  void bind_for_backward(const Record& record) {
    for (int64_t i = 0; i < record.tops; ++i) {
      const caffe_blob_record& given = top_of(record, i);
      Blob<Dtype>& blob = top_[i];
      // Shared memory, and memory that the layer keeps since its set up, already holds the values.
      if (given.in_place_of >= 0 || !given.data || !blob.owns_data()) continue;
      if (blob.data()->head() == SyncedMemory::UNINITIALIZED)
        adopt(blob, blob.data(), given.data, SyncedMemory::kDefined, false);
    }
    for (int64_t i = 0; i < record.bottoms; ++i) bind_bottom_diff(i, record);
    for (int64_t i = 0; i < record.tops; ++i) bind_top_diff(top_[i], top_of(record, i));
  }

 private:
  struct LossWeight {
    Dtype value = 0;
    Blob<Dtype>* filled = nullptr;  // with this value, as many as the top has elements
  };

  static const caffe_blob_record& top_of(const Record& record, int64_t i) {
    return record.blobs[record.bottoms + i];
  }

  Blob<Dtype>* new_blob() {
    owned_.emplace_back(new Blob<Dtype>());
    return owned_.back().get();
  }

  // The contents of memory that the caller gives for a result.
  static SyncedMemory::Contents contents(bool undefined, bool overwritten) {
    return !undefined    ? SyncedMemory::kDefined
           : overwritten ? SyncedMemory::kOverwritten
                         : SyncedMemory::kUndefined;
  }

  void report_top(int64_t i, caffe_blob_record* top, HandedOut* handed_out) {
    Blob<Dtype>& blob = top_[i];
    const bool same_shape = has_shape_of(blob, *top);
    report_shape(blob, top);
    if (!blob.has_memory()) {
      top->data = 0;
      top->data_token = CAFFE_NO_TOKEN;
      return;
    }
    SyncedMemory& memory = *blob.data();
    const int64_t at = word(memory.data());
    top->data_token = memory.token();
    const bool own = blob.owns_data(), allocated = top->data_token != CAFFE_NO_TOKEN;
    // Is the memory a tensor's: the top's own, or one that it shares?
    const bool is_tensor = memory.adopted() && !allocated;
    if (is_tensor && (own ? same_shape : !is_another_tops(memory))) {
      top->data = at;
    } else if (own && allocated && fresh_[i]) {
      // The top owns it, and Forward made it. Memory that the layer keeps for Backward is
      // copied instead, below.
      top->data = at;
      handed_out->give(&memory, top->data_token);
    } else {
      handed_out->give_copy(blob, at, &top->data, &top->data_token);
    }
  }

  // Does another top own this memory? Then it is copied, because two results need two tensors.
  bool is_another_tops(const SyncedMemory& memory) const {
    return std::find(top().begin(), top().end(), memory.maker) != top().end();
  }

  void bind_bottom_diff(int64_t i, const Record& record) {
    const caffe_blob_record& given = record.blobs[i];
    Blob<Dtype>& blob = bottom_[i];
    const bool wanted = given.flags & CAFFE_WANTED;
    propagate_down_[i] = wanted;
    if (in_place_of_[i] >= 0) {
      const int64_t gradient = top_of(record, in_place_of_[i]).diff;
      const int64_t at = wanted && given.diff ? given.diff : gradient;
      if (at && gradient && at != gradient) copy(blob, at, address(gradient));
      if (at) adopt(blob, blob.diff(), at, SyncedMemory::kDefined, wanted);
    } else if (wanted && given.diff && blob.owns_diff()) {
      SyncedMemory& memory = *blob.diff();
      // Some layers already write the gradient in Forward, and Backward only scales it.
      const bool written = memory.head() != SyncedMemory::UNINITIALIZED;
      if (written) copy(blob, given.diff, memory.data());
      const bool undefined = !written && (given.flags & CAFFE_DIFF_UNDEFINED);
      const bool overwritten = overwrites_[record.mode][true];
      adopt(blob, blob.diff(), given.diff, contents(undefined, overwritten), true);
    }
  }

  static void bind_loss_weight(const Blob<Dtype>& top, const LossWeight& weight) {
    if (!weight.value || !top.owns_diff() || !top.count()) return;
    Blob<Dtype>& filled = *weight.filled;
    if (filled.count() != top.count()) {
      filled.ReshapeLike(top);
      caffe_set(filled.count(), weight.value, filled.mutable_cpu_data());
    }
    adopt(top, top.diff(), word(filled.data()->data()), SyncedMemory::kDefined, false);
  }

  static void bind_top_diff(const Blob<Dtype>& blob, const caffe_blob_record& given) {
    if (given.in_place_of >= 0 || !blob.has_memory()) return;
    SyncedMemory& memory = *blob.diff();
    if (!given.diff) {
      if (blob.owns_diff()) memory.clear();  // this top has no gradient: zeros
    } else if (blob.owns_diff()) {
      adopt(blob, blob.diff(), given.diff, SyncedMemory::kDefined, false);
    } else {
      copy(blob, word(memory.mutable_data()), address(given.diff));
    }
  }

  vector<LossWeight> loss_weights_;  // of each top
  bool overwrites_[2][2] = {};       // by the mode, and by: is it Backward?
  vector<std::unique_ptr<Blob<Dtype>>> owned_;
  BlobList<Dtype> bottom_, top_;
  std::optional<Blob<Dtype>> absent_{std::in_place};
  vector<int> in_place_of_;  // for each bottom: the top that is the same blob, or -1
  vector<bool> propagate_down_;
  vector<char> kept_;   // for each bottom: it has what Forward left in it, until Backward
  vector<char> fresh_;  // for each top: it had no contents before this Forward
};

}  // namespace caffe
