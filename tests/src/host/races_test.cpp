// Prints what the race finder reports of accesses made by hand: at the ends of the memory that it was told of.
#define CAFFE_HOST_RACES 1
#include "host_races.h"

using cuda_host::RaceFinder;

int main() {
  alignas(8) static int memory[8];
  int* body[] = {memory + 4, memory};
  RaceFinder finder;
  const auto all = [&](int thread, int first, RaceFinder::Kind kind, char* place) {
    finder.run_as(thread);
    for (int i = first; i < 8; ++i) finder.access(memory + i, 4, kind, place + i);
    finder.pause();
  };
  char* const code = reinterpret_cast<char*>(&main);
  finder.begin_launch("ends", 2, body, sizeof body);
  finder.stacks_are(memory, 8);
  finder.dynamic_shared_is(memory + 2, 8);
  finder.begin_block(0);
  all(0, 0, RaceFinder::kWrite, code);
  all(1, 0, RaceFinder::kRead, code + 100);
  finder.begin_block(1);
  all(0, 0, RaceFinder::kRead, code + 200);
  finder.end_launch();
  finder.begin_launch("later", 2, body, sizeof body);  // nothing is known of the one before
  finder.begin_block(0);
  all(1, 0, RaceFinder::kRead, code + 300);
  finder.end_launch();
  // Eight bytes that one thread wrote, of which another reads the second half.
  finder.begin_launch("halves", 2, body, sizeof body);
  finder.begin_block(0);
  finder.run_as(0);
  finder.access(memory + 6, 8, RaceFinder::kWrite, code);
  all(1, 7, RaceFinder::kRead, code + 100);
  finder.end_launch();
}
