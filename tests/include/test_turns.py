"""The loops of phases at the ends of their types: which threads have a turn, and what an index beyond 2^31 is."""

import subprocess

from conftest import ROOT
from support.compiler import WORDS

PROGRAM = r"""
#include <stdio.h>
#include <cuda_runtime.h>
using namespace cuda_host;
static int wrong;
#define CHECK(what) if (!(what)) ++wrong, printf("line %d: %s\n", __LINE__, #what)

// How many of i, i + 1, ... are in, asked of each.
template <bool with_end, typename Index, typename End>
void count_turns(Index i, End end) {
  if (!(with_end ? i <= end : i < end)) return;  // the head asks that
  for (int width : {1, 8, 256}) {
    int number = 0;
    while (number < width && (with_end ? Index(i + number) <= end : Index(i + number) < end)) ++number;
    CHECK((turns<with_end>(width, i, end)) == number);
    int calls = 0;
    each_turn<with_end>(uint3{5, 1, 2}, 40, 4294967000u, width, i, end,
                        [&](uint3 thread, int place, unsigned int x, Index at) {
                          CHECK(thread.x == 5u + calls && thread.y == 1 && thread.z == 2 && place == 40 + calls);
                          CHECK(x == 4294967000u + calls && at == Index(i + calls));
                          ++calls;
                        });
    CHECK(calls == number);
  }
}
template <typename Index, typename End>
void ends(Index i, End first) {
  for (int more : {0, 1, 7, 8, 255, 256, 300}) 
    count_turns<false>(i, End(first + more)), count_turns<true>(i, End(first + more));
}
void along(unsigned int block, unsigned int width) {
  unsigned int expected = block * width, calls = 0;
  each_thread_along(uint3{block, 0, 0}, uint3{width, 2, 1}, [&](uint3 thread, int number, unsigned int x) {
    CHECK(number == int(calls) && x == expected + thread.x && thread.x == calls % width && thread.y == calls / width);
    ++calls;
  });
  CHECK(calls == 2 * width);
}
int main() {
  ends(0, 0), ends(-100, -90), ends(5u, 6), ends(5u, 6u), ends(5, 6u), ends(3ull, 4), ends(3, 4ull), ends(-5LL, -2);
  ends(2147483300, 2147483301), ends(2147483640u, 2147483640u), ends(3000000000u, 3000000001u);
  ends(size_t(5000000000), size_t(5000000001)), ends(0, 1.5f), ends(7, 7.0);
  for (unsigned int block : {0u, 3u, 2097151u, 2097152u, 4194303u}) along(block, 1024), along(block, 32);
  const int numbers[] = {-2147483647 - 1, -1, 0, 1, 1023, 2147483646, 2147483647};
  for (int a : numbers)
    for (int b : numbers) {
      const unsigned int t = a, u = b;
      CHECK(below(t, b) == (t < u) && below(t, u) == (t < u) && below(a, b) == (a < b));
      CHECK(below(t, (long long)b) == ((long long)t < b) && below(t, 0.5f * b) == (t < 0.5f * b));
    }
  return wrong;
}
"""


def test_who_has_a_turn(tmp_path):
    source, program = tmp_path / "turns.cpp", tmp_path / "turns"
    source.write_text(PROGRAM)
    command = [*WORDS, "-std=c++17", f"-I{ROOT}/include/host", f"-I{ROOT}/include", source, "-o", program]
    built = subprocess.run([*command, "-Wl,--unresolved-symbols=ignore-all"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
