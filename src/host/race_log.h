// What the race finder tells: a line for each mistake, once. tools/cases/races.py reads them.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

namespace cuda_host {

class RaceLog {
 public:
  static RaceLog& now() {
    static RaceLog log;
    const char* path = getenv("CAFFE_RACES");
    if (log.path_ != (path ? path : "")) {  // for another run
      log = RaceLog();
      log.path_ = path ? path : "";
    }
    return log;
  }
  // Was nothing told of these two places in the code?
  bool is_new(const char* kernel, uint32_t first, uint32_t second) {
    return told_.size() < kMostReports && told_.emplace(kernel, first, second).second;
  }
  template <typename... Values>
  static void write(const char* format, Values... values) {
    const std::string& path = now().path_;
    FILE* file = path.empty() ? nullptr : fopen(path.c_str(), "a");
    fprintf(file ? file : stderr, format, values...);
    if (file) fclose(file);
  }
  // A kernel ran.
  void ran(const char* kernel) {
    if (path_.empty() || !ran_.insert(kernel).second) return;
    if (FILE* const file = fopen(path_.c_str(), "a")) {
      fprintf(file, "ran\t%s\n", kernel);
      fclose(file);
    }
  }
  // What is not watched, and why. Once for each kernel, as long as the process lives.
  template <typename Value>
  static void left(const char* kernel, const char* what, const char* format, Value value) {
    static auto* const all = new std::set<std::pair<std::string, std::string> >;
    if (all->emplace(kernel, what).second)
      write((std::string("left\t%s\t%s\t") + format + "\n").c_str(), kernel, what, value);
  }
  // A launch, at this place of a library, that CUDA would refuse. If the program asks for no error until it ends, that is its
  // mistake.
  static void refused(const char* kernel, const char* why, const std::string& library, uint32_t place) {
    left(kernel, "launch", "%s", why);
    static struct AtEnd {
      ~AtEnd() {
        for (const auto& [its, one] : unasked())
          write("refused\t%s\t%s\t%s\t%#x\t%#x\n", its.c_str(), one.why.c_str(), one.library.c_str(),
                one.launch, one.next);
      }
    } at_end;
    unasked()[kernel] = {why, library, place, 0};
  }
  // The host uses CUDA at this place, and has not asked for the error.
  static void goes_on(uint32_t place) {
    for (auto& [kernel, one] : unasked())
      if (!one.next) one.next = place;
  }
  struct Refused {
    std::string why, library;
    uint32_t launch, next;
  };
  // By kernel, launches that were refused since the program last asked for errors.
  static std::map<std::string, Refused>& unasked() {
    static auto* const all = new std::map<std::string, Refused>;
    return *all;
  }

 private:
  static constexpr size_t kMostReports = 100;  // a kernel without atomics can race in every pair of threads
  std::string path_;
  std::set<std::string> ran_;
  std::set<std::tuple<std::string, uint32_t, uint32_t> > told_;
};

}  // namespace cuda_host
