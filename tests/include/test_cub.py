"""cub's collectives and device algorithms, compared with torch. On CUDA nvcc's own cub serves."""

import pytest
import torch

from cuffi import load_inline

TEXT = r"""
#include <cub/cub.cuh>
#ifdef CAFFE_HOST_BACKEND
typedef cub::Max Max;
typedef cub::Min Min;
#else  // CUDA 13's cub lacks them
struct Max {
  template <typename T> __host__ __device__ T operator()(const T& a, const T& b) const { return b > a ? b : a; }
};
struct Min {
  template <typename T> __host__ __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
#endif
struct Plus {
  template <typename T, typename U>
  __host__ __device__ auto operator()(const T& a, const U& b) const { return a + b; }
};
struct Last {  // not commutative
  __device__ double2 operator()(const double2& a, const double2& b) const {
    return make_double2(a.x * b.x, a.y * b.x + b.y);
  }
};
struct Running {
  double total;
  __device__ double operator()(double of_block) {
    const double before = total;
    total += of_block;
    return before;
  }
};
// Sum; sum of `valid`; of two items a thread; the largest; where it is.
__global__ void reduced(const float* x, int valid, double* o) {
  typedef cub::BlockReduce<double, 96> Reduce;
  typedef cub::BlockReduce<cub::KeyValuePair<int, float>, 96, cub::BLOCK_REDUCE_RAKING> Arg;
  __shared__ typename Reduce::TempStorage room;
  __shared__ typename Arg::TempStorage arg_room;
  const int t = threadIdx.x;
  const double sum = Reduce(room).Sum(x[t]);
  __syncthreads();
  const double some = Reduce(room).Sum(x[t], valid);
  __syncthreads();
  double two[2] = {x[t], 2 * x[t]};
  const double both = Reduce(room).Sum(two);
  __syncthreads();
  const double most = Reduce(room).Reduce(x[t], Max(), valid);
  const auto arg = Arg(arg_room).Reduce(cub::KeyValuePair<int, float>(t, x[t]), cub::ArgMax());
  if (t == 0) o[0] = sum, o[1] = some, o[2] = both, o[3] = most, o[4] = arg.key, o[5] = arg.value;
}
// 64 threads of (16, 4), two items each, in three rounds with what came before.
__global__ void scanned(const double* x, double* o, double* products) {
  typedef cub::BlockScan<double, 16, cub::BLOCK_SCAN_WARP_SCANS, 4> Scan;
  typedef cub::BlockScan<double2, 16, cub::BLOCK_SCAN_RAKING, 4> Pairs;
  typedef cub::BlockLoad<double, 16, 2, cub::BLOCK_LOAD_WARP_TRANSPOSE, 4> Load;
  typedef cub::BlockStore<double, 16, 2, cub::BLOCK_STORE_TRANSPOSE, 4> Store;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Pairs::TempStorage pairs;
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } room;
  Running running = {0};
  for (int round = 0; round < 3; ++round) {
    double items[2], sums[2];
    Load(room.load).Load(x + 128 * round, items, 300 - 128 * round, 7.0);
    __syncthreads();
    Scan(room.scan).InclusiveSum(items, sums, running);
    __syncthreads();
    Store(room.store).Store(o + 128 * round, sums, 300 - 128 * round);
  }
  const int t = threadIdx.y * 16 + threadIdx.x;
  double all, least, none;
  Scan(room.scan).ExclusiveSum(x[t], none, all);
  __syncthreads();
  Scan(room.scan).ExclusiveScan(x[t], least, 0.25, Min());
  __syncthreads();
  double2 pair = make_double2(1 + x[t] / 64, x[t]), made;
  Pairs(room.pairs).InclusiveScan(pair, made, Last());
  double* own = products + 5 * t;
  own[0] = none, own[1] = all, own[2] = least, own[3] = made.x, own[4] = made.y;
}
// Eight numbers for each lane: of warps of 32, and of 8.
__global__ void warps(const int* x, int* o) {
  typedef cub::WarpReduce<int> Reduce;
  typedef cub::WarpReduce<int, 8> Small;
  typedef cub::WarpScan<int> Scan;
  __shared__ typename Reduce::TempStorage room[2];
  __shared__ typename Small::TempStorage small[8];
  __shared__ typename Scan::TempStorage scan[2];
  const int t = threadIdx.x, w = t / 32;
  int* own = o + 8 * t;
  own[0] = Reduce(room[w]).Sum(x[t]);
  own[1] = Reduce(room[w]).Reduce(x[t], Max(), 20);
  own[2] = Small(small[t / 8]).Sum(x[t]);
  int all;
  Scan(scan[w]).InclusiveSum(x[t], own[3], all);
  own[4] = all;
  Scan(scan[w]).ExclusiveSum(x[t], own[5]);
  Scan(scan[w]).InclusiveScan(x[t], own[6], Min());
  Scan(scan[w]).ExclusiveScan(x[t], own[7], 3, Max());
}
__global__ void exchanged(const int* x, int* o) {
  typedef cub::BlockExchange<int, 32, 3> Exchange;
  __shared__ typename Exchange::TempStorage room;
  int items[3] = {x[threadIdx.x], x[threadIdx.x + 32], x[threadIdx.x + 64]};
  Exchange(room).StripedToBlocked(items);
  for (int i = 0; i < 3; ++i) o[threadIdx.x * 6 + i] = items[i];
  Exchange(room).BlockedToStriped(items);
  for (int i = 0; i < 3; ++i) o[threadIdx.x * 6 + 3 + i] = items[i];
}
// Each class has a room of its own, if the kernel gives it none.
__global__ void without_rooms(const int* x, int* o) {
  int first, second;
  cub::BlockScan<int, 64>().InclusiveSum(x[threadIdx.x], first);
  cub::BlockScan<int, 64, cub::BLOCK_SCAN_WARP_SCANS>().InclusiveSum(2 * x[threadIdx.x], second);
  o[128 * blockIdx.x + threadIdx.x] = first, o[128 * blockIdx.x + 64 + threadIdx.x] = second;
}
extern "C" int without_rooms_of(const int* x, int* o) {
  without_rooms<<<3, 64>>>(x, o);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int reduced_of(const float* x, int valid, double* o) {
  reduced<<<1, 96>>>(x, valid, o);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int scanned_of(const double* x, double* o, double* products) {
  scanned<<<1, dim3(16, 4)>>>(x, o, products);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int warps_of(const int* x, int* o) { warps<<<1, 64>>>(x, o); return CAFFE_LAUNCH_STATUS(); }
extern "C" int exchanged_of(const int* x, int* o) { exchanged<<<1, 32>>>(x, o); return CAFFE_LAUNCH_STATUS(); }
template <typename Call>
static int twice(const Call& call) {
  size_t bytes = 0;
  void* memory = nullptr;
  cudaError_t status = call(memory, bytes);
  if (status == cudaSuccess) status = cudaMalloc(&memory, bytes);
  if (status == cudaSuccess) status = call(memory, bytes);
  cudaFree(memory);
  return status != cudaSuccess;
}
extern "C" int device_of(const float* x, int n, float* o, float* scan, float* before) {
  return twice([&](void* m, size_t& b) { return cub::DeviceReduce::Sum(m, b, x, o, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceReduce::Max(m, b, x, o + 1, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceReduce::Min(m, b, x, o + 2, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceReduce::Reduce(m, b, x, o + 3, n, Max(), 2.f); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceScan::InclusiveSum(m, b, x, scan, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceScan::ExclusiveScan(m, b, x, before, Min(), 1.f, n); });
}
// With elements, initial values and sums of unlike types.
extern "C" int counted_of(const unsigned char* x, int n, int* o, int* scan, int* before, const float* y, float* sums) {
  return twice([&](void* m, size_t& b) { return cub::DeviceReduce::Sum(m, b, x, o, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceScan::InclusiveSum(m, b, x, scan, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceScan::ExclusiveSum(m, b, x, before, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceReduce::Reduce(m, b, y, sums, n, Plus(), 0); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceScan::ExclusiveScan(m, b, y, sums + 1, Plus(), 0, n); });
}
extern "C" int sorted_of(const float* x, const int* v, int n, float* xs, int* vs, long long* keys, long long* ks) {
  return twice([&](void* m, size_t& b) { return cub::DeviceRadixSort::SortPairs(m, b, x, xs, v, vs, n); }) ||
         twice([&](void* m, size_t& b) { return cub::DeviceRadixSort::SortKeysDescending(m, b, keys, ks, n, 0, 8); });
}
"""


@pytest.fixture(scope="module")
def m(session_cache):
    return load_inline("cub_things", TEXT)


def numbers(count, dtype=torch.float64):
    return torch.randn(count, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("valid", [1, 40, 96])
def test_a_block_reduces(m, valid):
    x, o = numbers(96, torch.float32), torch.zeros(6, dtype=torch.float64)
    m.reduced_of(x, valid, o)
    d = x.double()
    wanted = [d.sum(), d[:valid].sum(), 3 * d.sum(), d[:valid].max(), d.argmax(), d.max()]
    torch.testing.assert_close(o, torch.stack([w.double() for w in wanted]))


def test_a_block_loads_scans_and_stores(m):
    x, o, products = numbers(300), torch.full((384,), -1.0).double(), torch.zeros(64, 5).double()
    m.scanned_of(x, o, products)
    torch.testing.assert_close(o[:300], x.cumsum(0))
    assert (o[300:] == -1).all()
    first = x[:64]
    wanted, state = [], (1.0, 0.0)
    for i in range(64):
        least = min([0.25, *first[:i].tolist()])
        state = (state[0] * (1 + first[i] / 64), state[1] * (1 + first[i] / 64) + first[i])
        wanted.append([first[:i].sum(), first.sum(), least, *state])
    torch.testing.assert_close(products, torch.tensor(wanted, dtype=torch.float64))


def test_collectives_without_rooms(m):
    x, o = torch.arange(64, dtype=torch.int32) * 37 % 23 - 9, torch.zeros(3, 2, 64, dtype=torch.int32)
    m.without_rooms_of(x, o)
    sums = x.cumsum(0).int()
    assert torch.equal(o, torch.stack([sums, 2 * sums]).expand(3, 2, 64))


def test_warps(m):
    x, o = torch.arange(64, dtype=torch.int32) * 37 % 23 - 9, torch.zeros(64, 8, dtype=torch.int32)
    m.warps_of(x, o)
    for w in range(2):
        own, got = x[32 * w : 32 * w + 32], o[32 * w : 32 * w + 32]
        assert got[0, 0] == own.sum() and got[0, 1] == own[:20].max() and (got[:, 4] == own.sum()).all()
        assert got[::8, 2].tolist() == own.view(4, 8).sum(1).tolist()
        assert torch.equal(got[:, 3], own.cumsum(0).int()) and torch.equal(got[:, 5], got[:, 3] - own)
        assert torch.equal(got[:, 6], own.cummin(0).values)
        assert got[:, 7].tolist() == [max([3, *own[:i].tolist()]) for i in range(32)]


def test_values_are_exchanged(m):
    x, o = torch.arange(96, dtype=torch.int32) * 7, torch.zeros(32, 6, dtype=torch.int32)
    m.exchanged_of(x, o)
    assert torch.equal(o[:, :3].flatten(), x) and torch.equal(o[:, 3:].t().flatten(), x)


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_memory_of_the_device(m, n):
    x, o = numbers(n, torch.float32), torch.zeros(4)
    scan, before = torch.zeros(n), torch.zeros(n)
    m.device_of(x, n, o, scan, before)
    d, most = x.double(), torch.finfo(torch.float32).max
    assert o[0] == pytest.approx(d.sum().item(), abs=1e-4)
    assert o[1:].tolist() == [x.max(), x.min(), max(2, x.max())] if n else o[1:].tolist() == [-most, most, 2]
    torch.testing.assert_close(scan, d.cumsum(0).float(), atol=1e-4, rtol=1e-5)
    assert before.tolist() == [min([1.0, *x[:i].tolist()]) for i in range(n)]


def test_a_sum_is_larger_than_its_elements(m):
    x, y = torch.arange(1000).remainder(251).to(torch.uint8), numbers(1000, torch.float32).abs()
    o, sums = torch.zeros(1, dtype=torch.int32), torch.zeros(1001)
    scan, before = torch.zeros(1000, dtype=torch.int32), torch.zeros(1000, dtype=torch.int32)
    m.counted_of(x, 1000, o, scan, before, y, sums)
    assert o.item() == x.sum() and torch.equal(scan, x.cumsum(0).int())
    assert torch.equal(before, scan - x)
    torch.testing.assert_close(sums[0].double(), y.double().sum(), rtol=1e-5, atol=0)
    torch.testing.assert_close(sums[1:].double(), y.double().cumsum(0) - y, rtol=1e-5, atol=1e-5)


def test_a_sort_is_stable_and_looks_at_some_bits(m):
    x = torch.tensor([3.0, -1, 2, -1, float("inf"), -float("inf"), 0.5])
    v, keys = torch.arange(7, dtype=torch.int32), torch.tensor([1, 258, 3, 514, -1, 256, 2])
    xs, vs, ks = torch.zeros(7), torch.zeros(7, dtype=torch.int32), torch.zeros(7, dtype=torch.int64)
    m.sorted_of(x, v, 7, xs, vs, keys, ks)
    expected = x.sort(stable=True)
    assert torch.equal(xs, expected.values) and vs.tolist() == expected.indices.tolist()
    assert ks.tolist() == [-1, 3, 258, 514, 2, 1, 256]  # by their lowest byte


def test_zeros_of_both_signs_stay_in_their_order(m):
    x, v = torch.tensor([0.0, -0.0, 1, -0.0, 0, -1]), torch.arange(6, dtype=torch.int32)
    xs, vs, keys = torch.zeros(6), torch.zeros(6, dtype=torch.int32), torch.zeros(6, dtype=torch.int64)
    m.sorted_of(x, v, 6, xs, vs, keys, keys.clone())
    assert vs.tolist() == [5, 0, 1, 3, 4, 2]
    assert torch.equal(xs.signbit(), x[vs.long()].signbit())
