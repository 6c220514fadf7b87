// The features of an ARM64 processor, which Linux tells each process. g++ before 14 has no __builtin_cpu_supports there.
#pragma once

#if defined(__aarch64__)
#include <string.h>
#include <sys/auxv.h>

// The names are those of /proc/cpuinfo; build_ffi.py (ARM_FEATURES) has the compiler's macro for each.
static bool caffe_cpu_supports(const char* feature) {
  static const struct {
    const char* name;
    unsigned long kind;
    int bit;
  } known[] = {{"atomics", AT_HWCAP, 8}, {"asimdhp", AT_HWCAP, 10},  {"asimdrdm", AT_HWCAP, 12},
               {"jscvt", AT_HWCAP, 13},  {"fcma", AT_HWCAP, 14},     {"asimddp", AT_HWCAP, 20},
               {"sve", AT_HWCAP, 22},    {"asimdfhm", AT_HWCAP, 23}, {"sve2", AT_HWCAP2, 1},
               {"frint", AT_HWCAP2, 8},  {"i8mm", AT_HWCAP2, 13},    {"bf16", AT_HWCAP2, 14},
               {"mops", AT_HWCAP2, 43}};
  for (const auto& one : known)
    if (!strcmp(one.name, feature)) return getauxval(one.kind) >> one.bit & 1;
  return false;
}
#endif
