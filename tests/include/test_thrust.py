"""thrust's names on the processor (include/caffe_thrust), compared with Python."""

import bisect
import itertools
import operator
import subprocess

import pytest
from conftest import ROOT
from support.compiler import WORDS

SORTS = """
#include "boost/names.hpp"
#include "caffe_thrust/thrust.h"
#include <stdio.h>
#include <vector>
int main() {
  const int n = 40;
  std::vector<float> keys;
  for (int i = 0; i < n; ++i) keys.push_back(i * 7 % 3);
  std::vector<int> at(boost::counting_iterator<int>(0), boost::counting_iterator<int>(n)), sorted = at;
  thrust::sort_by_key(&keys[0], &keys[0] + n, &at[0], thrust::greater<float>());
  for (int i = 0; i < n; ++i) printf("%g:%d ", keys[i], at[i]);
  boost::shared_array<float> held(new float[2]), same = held;
  held[1] = 5;
  boost::scoped_array<int> alone(new int[1]);
  alone[0] = same[1] == 5 && same.get() == held.get();
  held.reset();
  if (held || !alone[0]) return 1;
  thrust::sort_by_key(at.begin(), at.end(), keys.begin());
  for (int i = 0; i < n; ++i) printf("%d:%g ", at[i], keys[i]);
  thrust::sort(sorted.begin(), sorted.end(), thrust::greater<int>());
  printf("%d %d ", sorted[0], sorted[n - 1]);
  const int most = thrust::reduce(at.begin(), at.end(), 1, thrust::maximum<int>());
  printf("%d %d\\n", thrust::reduce(at.begin(), at.end()), most);
}
"""


OF_NVCC = ["-include", "caffe_old_nvcc.h"]  # as in mk/cuda.mk
ON_HOST = [*WORDS, "-DCAFFE_HOST_BACKEND=1", "-Iinclude/host", "-x", "c++"]


def said_by(source: str, compiler: list, folder) -> str:
    """The output of a program."""
    (folder / "program.cu").write_text(source)
    wing = "cuffi/caffe_layers/include"
    command = [*compiler, "-std=c++17", "-Iinclude", f"-I{wing}", f"-I{wing}/legacy", folder / "program.cu"]
    subprocess.run([*command, "-o", folder / "program"], cwd=ROOT, check=True)
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("compiler", ["host", "nvcc"])
def test_thrust_sorts_host_memory(compiler, tmp_path, request):
    """Equal keys keep their order."""
    said = said_by(
        SORTS, ON_HOST if compiler == "host" else [request.getfixturevalue("nvcc"), *OF_NVCC], tmp_path
    )
    descending = sorted(range(40), key=lambda i: -(i * 7 % 3))
    pairs = [f"{i * 7 % 3}:{i}" for i in descending] + [f"{i}:{i * 7 % 3}" for i in range(40)]
    assert said == " ".join([*pairs, "39 0", "780 39\n"])


ON_DEVICE = """
#ifdef __CUDACC__
#define CAFFE_CORE 1  // whose cudaMemcpy is CUDA's
#include "caffe/util/thrust_stream.hpp"
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
namespace caffe {
thread_local CallContext call_context;
}
#else
#include "caffe_thrust/thrust.h"
#endif
#include <stdio.h>
struct Square : thrust::unary_function<float, float> {
  __host__ __device__ float operator()(float x) const { return x * x; }
};
struct Row : thrust::unary_function<int, int> {
  int columns;
  Row(int of) : columns(of) {}
  __host__ __device__ int operator()(int i) { return i / columns; }  // not const
};
template <typename Vector>
void show(const Vector& v) {
  for (int i = 0; i < (int)v.size(); ++i) printf("%g ", (double)v[i]);
  printf("| ");
}
int main() {
  using namespace thrust::placeholders;
  thrust::device_vector<float> x(6);
  thrust::sequence(x.begin(), x.end());
  float* raw = thrust::raw_pointer_cast(&x[0]);
  thrust::device_ptr<float> p(raw), q = thrust::device_pointer_cast(raw);
  thrust::transform(thrust::device, raw, raw + 6, raw, 7 - _1 * 3.f);
  thrust::transform(p, p + 6, q, Square());
  show(x);
  printf("%g ", (double)thrust::reduce(thrust::device, raw, raw + 6));
  printf("%g ", (double)thrust::reduce(p, p + 6, 0.f, thrust::maximum<float>()));
  printf("%g ", (double)thrust::inner_product(x.begin(), x.end(), x.begin(), 0.f));
  printf("%d | ", (int)(thrust::max_element(x.begin() + 1, x.end()) - x.begin()));
  thrust::counting_iterator<int> from(1);
  thrust::device_vector<int> keys(6), ids(6), out(6), ask(3);
  thrust::copy(from, from + 6, ids.begin());
  thrust::transform(ids.begin(), ids.end(), keys.begin(), _1 % 2);
  thrust::stable_sort_by_key(thrust::device, keys.begin(), keys.end(), ids.begin(), thrust::greater<int>());
  show(ids);
  thrust::transform_exclusive_scan(thrust::device, keys.begin(), keys.end(), out.begin(), 1 == _1, 0,
                                   thrust::plus<int>());
  show(out);
  thrust::inclusive_scan(out.begin(), out.end(), out.begin());
  thrust::replace_if(thrust::device, out.begin(), out.end(), keys.begin(), 0 != _1, -1);
  show(out);
  thrust::device_vector<int>::iterator end =
      thrust::remove_if(ids.begin(), ids.end(), keys.begin(), _1 > 0);
  printf("%d %d %d | ", (int)(end - ids.begin()), (int)ids[0], (int)thrust::count(ids.begin(), end, 4));
  thrust::sequence(thrust::device, ids.begin(), ids.end(), 10, 2);
  ask[0] = 13, ask[1] = 99, ask[2] = 10;
  thrust::lower_bound(thrust::device, ids.begin(), ids.end(), ask.begin(), ask.end(), out.begin());
  thrust::host_vector<int> there = out;
  show(there);
  const auto row = thrust::make_transform_iterator(from, Row(2));
  thrust::copy(row, row + 3, ask.begin());
  show(ask);
  thrust::device_vector<float> weights(3);
  thrust::sequence(weights.begin(), weights.end());
  ask[0] = 3;
  thrust::stable_sort_by_key(ask.begin(), ask.end(),
                             thrust::make_zip_iterator(thrust::make_tuple(weights.begin(), ids.begin())));
  show(weights), show(ids);
  typedef thrust::tuple<thrust::device_ptr<int>, thrust::device_ptr<float>> Both;
  thrust::zip_iterator<Both> both = thrust::make_zip_iterator(
      thrust::make_tuple(thrust::device_pointer_cast(thrust::raw_pointer_cast(&ask[0])),
                         thrust::device_pointer_cast(thrust::raw_pointer_cast(&weights[0]))));
  thrust::copy(both + 1, both + 3, both);
  show(ask), show(weights);
  printf("%d %g | ", (int)thrust::get<0>(*both), (double)thrust::get<1>(both[1]));
  // Ranges whose two ends are made one by one.
  thrust::transform(thrust::make_counting_iterator(4), thrust::make_counting_iterator(10),
                    thrust::make_constant_iterator(3), out.begin(), thrust::divides<int>());
  show(out);
  printf("%d ", (int)thrust::reduce(thrust::make_transform_iterator(from, Row(2)),
                                    thrust::make_transform_iterator(from + 6, Row(2))));
  thrust::copy(thrust::make_zip_iterator(thrust::make_tuple(out.begin() + 3, x.begin() + 3)),
               thrust::make_zip_iterator(thrust::make_tuple(out.end(), x.end())),
               thrust::make_zip_iterator(thrust::make_tuple(ids.begin(), x.begin())));
  printf("%d %g | ", (int)ids[2], (double)x[0]);
  thrust::counting_iterator<int> at = from, end_at(5);
  printf("%d %d %d | ", (int)(end_at - at), (int)(at < end_at), (int)(at + 4 == end_at));
  printf("%d ", *at++);
  printf("%d ", *at--);
  printf("%d", *++at);
  return 0;
}
"""


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_thrust_on_the_device(place, tmp_path, request):
    """The host backend has our thrust, a GPU nvcc's. The numbers are counted out by hand."""
    compiler = ON_HOST if place == "cpu" else [request.getfixturevalue("nvcc"), *OF_NVCC, "-arch=native"]
    said = said_by(ON_DEVICE, compiler, tmp_path)
    wanted = [
        "49 16 1 4 25 64",
        "159 64 7395 5",
        "1 3 5 2 4 6",
        "0 1 2 3 3 3",
        "-1 -1 -1 6 9 12",
        "3 2 1",
        "2 6 0 6 9 12",
        "0 1 1",
        "1 2 0",  # weights by the keys 3, 1, 1
        "12 14 10 16 18 20",
        "1 3 3",
        "2 0 0",
        "1 0",
        "1 1 2 2 2 3",
        "9 3 4",
        "4 1 1",
        "1 2 2",
    ]
    assert said == " | ".join(wanted)


X, Y, SORTED = [3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8], [1, 1, 3, 4, 7]
ALGORITHMS = """
#include "caffe_thrust/thrust.h"
#include <stdio.h>
typedef thrust::host_vector<int> Ints;
void show(const char* name, const Ints& values) {
  printf("%s", name);
  for (int value : values) printf(" %d", value);
  printf("\\n");
}
template <typename Function>
void apply(const char* name, Function function) {
  const int x[] = {X}, y[] = {Y};
  Ints out;
  for (int i = 0; i < 8; ++i) out.push_back(function(x[i], y[i]));
  show(name, out);
}
struct Less {
  bool operator()(int a, int b) const { return a > b; }
};
// The same walk for all: 10, 11, ... lie there.
template <typename Iterator>
void walk(Iterator first, Iterator last) {
  Iterator at = first;
  printf("%d ", int(*at++));
  printf("%d ", int(*at));
  printf("%d ", int(*++at));
  printf("%d ", int(*at--));
  printf("%d ", int(*at));
  printf("%d ", int(*--at));
  at += 4;
  printf("%d ", int(*at));
  at -= 3;
  printf("%d %d %d %d ", int(*at), int(at[2]), int(*(at + 3)), int(*(at - 1)));
  printf("%d %d ", int(last - at), int(at - last));
  printf("%d%d%d %d%d%d %d%d%d\\n", at == first, at != first, first < at, first == first, first != first,
         first < first, first == at, at != at, at < first);
}
int main() {
  int there[8];
  thrust::sequence(there, there + 8, 10);
  thrust::device_ptr<int> p(there), none, q = 2 + p;
  walk(p, p + 8);
  walk(there, there + 8);
  thrust::counting_iterator<int> from = thrust::make_counting_iterator(10);
  walk(from, from + 8);
  const auto always = thrust::make_constant_iterator(7);
  printf("%d %d %d ", *always, always[5], int((always + 3) - always));
  printf("%d%d %d %d %d\\n", bool(none), bool(p), *q, int(q.get() - there), *thrust::device_ptr<const int>(q));
  using namespace thrust::placeholders;
  const int px[] = {X}, py[] = {Y}, ps[] = {SORTED};
  const Ints x(px, px + 8), y(py, py + 8), sorted(ps, ps + 5), ask = {0, 1, 2, 7, 8};
  Ints out(8), keys(8), map = {7, 0, 3};
#define SHOW(name, ...) (out.assign(8, -1), __VA_ARGS__, show(name, out))
  SHOW("gather", thrust::gather(map.begin(), map.end(), x.begin(), out.begin()));
  SHOW("scatter", thrust::scatter(x.begin(), x.begin() + 3, map.begin(), out.begin()));
  SHOW("tabulate", thrust::tabulate(out.begin() + 1, out.end(), _1 * 2 + 1));
  SHOW("sequence", thrust::sequence(thrust::host, out.begin(), out.end() - 1));
  SHOW("sequence from", thrust::sequence(out.begin(), out.end() - 1, 5));
  SHOW("sequence by", thrust::sequence(out.begin(), out.end() - 1, 5, 3));
  SHOW("copy_if", thrust::copy_if(x.begin(), x.end(), y.begin(), out.begin(), _1 > 2));
  SHOW("replace_if", thrust::copy(x.begin(), x.end(), out.begin()),
       thrust::replace_if(out.begin(), out.end(), y.begin(), _1 > 2, 0));
  SHOW("remove_if", thrust::copy(x.begin(), x.end(), out.begin()),
       out.erase(thrust::remove_if(out.begin(), out.end(), y.begin(), _1 > 2), out.end()));
  SHOW("sort", thrust::copy(x.begin(), x.end(), out.begin()), thrust::sort(out.begin(), out.end()));
  SHOW("sort_by_key", keys = y, thrust::copy(x.begin(), x.end(), out.begin()),
       thrust::sort_by_key(keys.begin(), keys.end(), out.begin()));
  SHOW("inclusive_scan", thrust::inclusive_scan(x.begin(), x.end(), out.begin()));
  SHOW("inclusive_scan largest",
       thrust::inclusive_scan(x.begin(), x.end(), out.begin(), thrust::maximum<int>()));
  SHOW("exclusive_scan", thrust::exclusive_scan(x.begin(), x.end(), out.begin()));
  SHOW("exclusive_scan from", thrust::exclusive_scan(x.begin(), x.end(), out.begin(), 10));
  SHOW("exclusive_scan product",
       thrust::exclusive_scan(x.begin(), x.end(), out.begin(), 2, thrust::multiplies<int>()));
  SHOW("transform_inclusive_scan", thrust::transform_inclusive_scan(x.begin(), x.end(), out.begin(), _1 * 2,
                                                                    thrust::plus<int>()));
  SHOW("scan of nothing", thrust::transform_inclusive_scan(x.begin(), x.begin(), out.begin(), _1 * 2,
                                                           thrust::plus<int>()));
  SHOW("reduce", out = {thrust::reduce(x.begin(), x.end()), thrust::reduce(x.begin(), x.end(), 5),
                        thrust::reduce(x.begin(), x.end(), 2, thrust::minimum<int>()),
                        thrust::transform_reduce(x.begin(), x.end(), _1 * 2, 5, thrust::plus<int>())});
#define BY_KEY(...)                                                                                \
  SHOW("by key", keys.assign(8, -1), thrust::reduce_by_key(map.begin(), map.end(), x.begin(), keys.begin(), \
                                                           __VA_ARGS__));           \
  show("keys", keys)
  map = {4, 4, 2, 5, 5, 5, 5, 4};
  BY_KEY(out.begin());
  BY_KEY(out.begin(), _1 % 2 == _2 % 2);
  BY_KEY(out.begin(), thrust::equal_to<int>(), thrust::multiplies<int>());
#define SEARCH(name)                                                                                          \
  SHOW(#name, out.resize(5), thrust::name(sorted.begin(), sorted.end(), ask.begin(), ask.end(), out.begin())); \
  SHOW(#name " down", out.resize(5),                                                                          \
       thrust::name(sorted.rbegin(), sorted.rend(), ask.begin(), ask.end(), out.begin(), Less()))
  SEARCH(lower_bound);
  SEARCH(upper_bound);
  SEARCH(binary_search);
  SHOW("one", out = {int(thrust::lower_bound(sorted.begin(), sorted.end(), 3) - sorted.begin()),
                     int(thrust::upper_bound(sorted.begin(), sorted.end(), 3) - sorted.begin()),
                     thrust::binary_search(sorted.begin(), sorted.end(), 3)});
#define FUNCTION(name) apply(#name, thrust::name<int>())
  FUNCTION(plus), FUNCTION(minus), FUNCTION(multiplies), FUNCTION(divides), FUNCTION(modulus);
  FUNCTION(maximum), FUNCTION(minimum), FUNCTION(less), FUNCTION(greater), FUNCTION(less_equal);
  FUNCTION(greater_equal), FUNCTION(equal_to), FUNCTION(not_equal_to);
#define PLACES(op) apply("_1 " #op " _2", _1 op _2), apply("_1 " #op " 3", _1 op 3)
  PLACES(+), PLACES(-), PLACES(*), PLACES(/), PLACES(%), PLACES(==), PLACES(!=), PLACES(<), PLACES(>);
  PLACES(<=), PLACES(>=), apply("&&", _1 > 2 && _2 > 2), apply("||", _1 > 4 || _2 > 4);
  out = {thrust::identity<int>()(7), thrust::negate<int>()(7), thrust::square<int>()(7)};
  for (int a : {0, 1}) {
    out.push_back(thrust::logical_not<bool>()(a));
    for (int b : {0, 1})
      out.insert(out.end(), {thrust::logical_and<bool>()(a, b), thrust::logical_or<bool>()(a, b)});
  }
  show("of one", out);
}
"""


def by_key(keys, values, equal, total):
    """thrust's reduce_by_key, filled up to eight."""
    runs = []
    for key, value in zip(keys, values, strict=True):
        if runs and equal(runs[-1][0], key):
            runs[-1][1] = total(runs[-1][1], value)
        else:
            runs.append([key, value])
    return tuple([*part, *[-1] * (8 - len(runs))] for part in zip(*runs, strict=True))


def algorithms():
    """The (name, numbers) that ALGORITHMS prints, computed by Python."""
    scan, kept = itertools.accumulate, [x for x, y in zip(X, Y, strict=True) if y <= 2]
    yield "gather", [X[7], X[0], X[3], *[-1] * 5]
    yield "scatter", [X[1], -1, -1, X[2], -1, -1, -1, X[0]]
    yield "tabulate", [-1, *range(1, 15, 2)]
    yield "sequence", [*range(7), -1]
    yield "sequence from", [*range(5, 12), -1]
    yield "sequence by", [*range(5, 26, 3), -1]
    taken = [x for x, y in zip(X, Y, strict=True) if y > 2]
    yield "copy_if", taken + [-1] * (8 - len(taken))
    yield "replace_if", [0 if y > 2 else x for x, y in zip(X, Y, strict=True)]
    yield "remove_if", kept
    yield "sort", sorted(X)
    yield "sort_by_key", [x for _, x in sorted(zip(Y, X, strict=True), key=operator.itemgetter(0))]
    yield "inclusive_scan", [*scan(X)]
    yield "inclusive_scan largest", [*scan(X, max)]
    yield "exclusive_scan", [0, *scan(X)][:8]
    yield "exclusive_scan from", [*scan([10, *X])][:8]
    yield "exclusive_scan product", [*scan([2, *X], operator.mul)][:8]
    yield "transform_inclusive_scan", [2 * s for s in scan(X)]
    yield "scan of nothing", [-1] * 8
    yield "reduce", [sum(X), sum(X) + 5, min(X), 2 * sum(X) + 5]
    keys = [4, 4, 2, 5, 5, 5, 5, 4]
    for equal, total in (
        (operator.eq, operator.add),
        (lambda a, b: a % 2 == b % 2, operator.add),
        (operator.eq, operator.mul),
    ):
        found = by_key(keys, X, equal, total)
        yield from (("by key", found[1]), ("keys", found[0]))
    yield from searches()
    yield "one", [2, 3, 1]
    signs = {"plus": "+", "minus": "-", "multiplies": "*", "divides": "/", "modulus": "%"}
    compared = {"less": "<", "greater": ">", "less_equal": "<=", "greater_equal": ">="}
    compared |= {"equal_to": "==", "not_equal_to": "!="}
    for name, sign in (signs | {"maximum": "max", "minimum": "min"} | compared).items():
        yield name, [computed(sign, x, y) for x, y in zip(X, Y, strict=True)]
    for sign in (*signs.values(), "==", "!=", "<", ">", "<=", ">="):
        yield f"_1 {sign} _2", [computed(sign, x, y) for x, y in zip(X, Y, strict=True)]
        yield f"_1 {sign} 3", [computed(sign, x, 3) for x in X]
    yield "&&", [int(x > 2 and y > 2) for x, y in zip(X, Y, strict=True)]
    yield "||", [int(x > 4 or y > 4) for x, y in zip(X, Y, strict=True)]
    yield "of one", [7, -7, 49, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1]


def searches():
    """(name, numbers) of the searches in sorted values."""
    ask = [0, 1, 2, 7, 8]
    for name, find in (
        ("lower_bound", bisect.bisect_left),
        ("upper_bound", bisect.bisect_right),
        ("binary_search", lambda values, x, key=int: sorted(map(key, values)).count(key(x))),
    ):
        found = [find(SORTED, a) for a in ask]
        down = [find(SORTED[::-1], -a, key=lambda x: -abs(x)) for a in ask]
        if name == "binary_search":
            found = down = [int(a in SORTED) for a in ask]
        yield from ((name, found), (f"{name} down", down))


def computed(sign: str, x: int, y: int) -> int:
    """The results of C++ for two positive integers."""
    if sign in ("max", "min"):
        return max(x, y) if sign == "max" else min(x, y)
    return int(eval(f"{x} {sign.replace('/', '//')} {y}"))


def test_each_iterator_algorithm_and_function(tmp_path):
    source = ALGORITHMS
    for name, values in (("X", X), ("Y", Y), ("SORTED", SORTED)):
        source = source.replace(f"{{{name}}}", f"{{{', '.join(map(str, values))}}}")
    said = said_by(source, ON_HOST, tmp_path).splitlines()
    # A pointer's own answers, the second ones, are right.
    assert said[:4] == ["10 11 12 12 11 10 14 11 13 14 10 7 -7 011 100 000"] * 3 + ["7 7 3 01 12 2 12"]
    assert said[4:] == [" ".join([name, *map(str, values)]) for name, values in algorithms()]
