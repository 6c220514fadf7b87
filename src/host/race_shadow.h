// The shadow of the memory: for each element, who last wrote and read it, when, and where in the code.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cuda_host {

constexpr uint32_t kNobody = 0xffffffffu;
constexpr size_t kPageBytes = 4096;
// kAtomicSame: an atomic operation that leaves the value as it is.
enum Kind { kRead, kWrite, kVolatileRead, kVolatileWrite, kAtomicRead, kAtomicSame, kAtomic, kAtomicWrite };
// The strong accesses are the atomic and the volatile ones.
constexpr bool is_strong(Kind kind) { return kind >= kVolatileRead; }
constexpr bool is_atomic(Kind kind) { return kind >= kAtomicRead; }
constexpr bool is_store(Kind kind) { return kind == kWrite || kind == kVolatileWrite; }
constexpr bool is_changing(Kind kind) { return is_store(kind) || kind >= kAtomic; }

// Who accesses: the thread of the grid, the time, and the place in the code, with marks.
constexpr uint32_t kStrong = 1u << 30, kWaits = 1u << 29;  // of a strong access, and of one that waits
struct AccessTime {
  uint32_t thread = kNobody, time = 0, pc = 0;
  bool has(uint32_t mark) const { return pc & mark; }
  uint32_t place() const { return pc & (kWaits - 1); }
};
struct Access {
  const void* memory;
  size_t bytes;
  bool shared;
  Kind kind;
  AccessTime by;
  bool is_late = true;    // it surely comes after the volatile writes that are there
  bool is_first = false;  // the first write of this memory, which changes it whatever was there
};
// Lanes of one warp that read at one time, or wrote the value that was there (kWroteSame in `pc`).
constexpr uint32_t kWroteSame = 1u << 31;
struct Reader {
  uint32_t warp = kNobody, lanes = 0, time = 0, pc = 0;
};
// What few elements have: atomic operations, and readers of several warps.
struct Rare {
  AccessTime atomic, same;  // the last one that changed the value, and the last other
  bool block_only = false;  // the atomic operation was for its block only
  std::vector<Reader> readers;
};
struct Cell {
  AccessTime write;
  Reader reader;
  std::unique_ptr<Rare> rare;
  Cell() = default;
  Cell(const Cell& other) { *this = other; }
  Cell& operator=(const Cell& other) {
    write = other.write, reader = other.reader;
    rare.reset(other.rare ? new Rare(*other.rare) : nullptr);
    return *this;
  }
  Rare& with_rare() {
    if (!rare) rare.reset(new Rare);
    return *rare;
  }
};
// The cells of kPageBytes of memory, one for each `grain` bytes. The grain is as fine as the accesses so far.
struct Page {
  size_t grain = 8;
  std::vector<Cell> cells = std::vector<Cell>(kPageBytes / 8);
  void split() {
    std::vector<Cell> finer(cells.size() * 2);
    for (size_t i = 0; i < finer.size(); ++i) finer[i] = cells[i / 2];
    cells.swap(finer);
    grain /= 2;
  }
};

// The cells of all memory that a launch has accessed.
class Shadow {
 public:
  // Visit the cells of an access. False: the shadow has no more memory.
  template <typename Visit>
  bool for_cells(const Access& own, const Visit& visit) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(own.memory), end = begin + own.bytes;
    for (uintptr_t at = begin; at < end;) {
      Page* page = page_of(at);
      if (!page) return false;
      while (page->grain > 1 && (at % page->grain || end - at < page->grain)) {
        page->split();
        cells_ += page->cells.size() / 2;
      }
      visit(page->cells[at % kPageBytes / page->grain]);
      at += page->grain;
    }
    return true;
  }
  void clear() {
    // The next launch takes their memory.
    while (!pages_.empty() && spare_.size() < kMostSpare) spare_.push_back(pages_.extract(pages_.begin()));
    pages_.clear();
    cells_ = 0;
    last_page_ = nullptr;
  }
  static size_t most_bytes() { return most() * sizeof(Cell); }

 private:
  static size_t most() {
    static const char* const text = getenv("CAFFE_RACES_MEGABYTES");
    static const size_t number = (text && *text ? atoll(text) : 2048) * (size_t(1) << 20) / sizeof(Cell);
    return number;
  }
  Page* page_of(uintptr_t at) {
    const uintptr_t number = at / kPageBytes;
    if (last_page_ && number == last_number_) return last_page_;
    const auto found = pages_.find(number);
    if (found == pages_.end() && cells_ >= most()) return nullptr;
    last_page_ = found == pages_.end() ? &made(number) : &found->second;
    if (found == pages_.end()) cells_ += last_page_->cells.size();
    last_number_ = number;
    return last_page_;
  }

  Page& made(uintptr_t number) {
    if (spare_.empty()) return pages_[number];
    Pages::node_type node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = number;
    Page& page = node.mapped();
    std::fill(page.cells.begin(), page.cells.end(), Cell());
    return pages_.insert(std::move(node)).position->second;
  }

  using Pages = std::unordered_map<uintptr_t, Page>;
  static constexpr size_t kMostSpare = 4096;  // of 24 KiB or more
  Pages pages_;
  std::vector<Pages::node_type> spare_;
  Page* last_page_ = nullptr;
  uintptr_t last_number_ = 0;
  size_t cells_ = 0;
};

// What readers' numbers mean in blocks of so many threads.
struct Warps {
  int64_t block_threads;
  uint32_t of_block() const { return static_cast<uint32_t>((block_threads + 31) / 32); }
  uint32_t thread_of(const Reader& one, int lane) const {
    const uint32_t warps = of_block();
    return static_cast<uint32_t>(one.warp / warps * block_threads + one.warp % warps * 32 + lane);
  }
  template <typename Visit>
  void for_readers(const Cell& cell, const Visit& visit) const {
    const auto each = [&](const Reader& one) {
      for (uint32_t lanes = one.lanes; lanes; lanes &= lanes - 1)
        visit(AccessTime{thread_of(one, __builtin_ctz(lanes)), one.time, one.pc & ~kWroteSame},
              bool(one.pc & kWroteSame));
    };
    each(cell.reader);
    if (cell.rare)
      for (const Reader& one : cell.rare->readers) each(one);
  }
  template <typename Is>
  void forget_readers(Cell& cell, const Is& is) {
    const auto keep = [&](Reader& one) {
      for (uint32_t lanes = one.lanes; lanes; lanes &= lanes - 1)
        if (is(AccessTime{thread_of(one, __builtin_ctz(lanes)), one.time, one.pc}))
          one.lanes &= ~(lanes & -lanes);
      return one.lanes != 0;
    };
    keep(cell.reader);
    if (!cell.rare) return;
    auto& more = cell.rare->readers;
    more.erase(std::remove_if(more.begin(), more.end(), [&](Reader& one) { return !keep(one); }), more.end());
  }
};

}  // namespace cuda_host
