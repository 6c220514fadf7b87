// What a launcher says of its launch, if it is no C++ function of a library but steps that src/edge/launch_steps.h runs.
// The compiler of the kernels (NVRTC) and the extension that makes calls read this file.
#ifndef CAFFE_LAUNCH_H_
#define CAFFE_LAUNCH_H_

// The address of the struct in the steps' memory.
#define CAFFE_LAUNCH_AT 0x10000

enum caffe_launch_problem {
  CAFFE_FITS,
  CAFFE_NO_INT,
  CAFFE_NO_INDEX,
  CAFFE_NO_NUMBER,
  CAFFE_NO_DTYPE,
  CAFFE_NO_INSTANCE
};

// A variable of the kernels that is filled before the launch.
struct caffe_launch_upload {
  unsigned long long symbol, from, bytes;
  unsigned is_value;  // `from` is the value itself, of 8 bytes
};

struct caffe_launch {
  unsigned kernel;  // its number, from 1 on; 0 while there is none
  unsigned problem, count, uploads, is_cooperative;
  unsigned grid[3], block[3];
  unsigned long long shared;
  // Of a problem: the address of a text, the value, and the number of bits.
  unsigned long long text;
  long long value;
  double number;
  unsigned bits;
  struct caffe_launch_upload upload[8];
  // The kernel's arguments as they lie in memory, and where each begins.
  unsigned offsets[64];
  unsigned long long arguments[512];
};

#endif  // CAFFE_LAUNCH_H_
