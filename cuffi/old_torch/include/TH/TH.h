// The functions of TH that C extensions of torch.utils.ffi called (2017, 2018), for tensors that Python lends for one
// call. C, C++ and nvcc read this file. THC/THC.h has the same functions for a GPU's tensors.
//
// A look at a tensor is inline C. All else is done by torch, by th_torch: the operation's name, and its
// arguments with a letter each (t tensor, S storage, l long, d double, p address, s string). cuffi/old_torch/ffi/th_operations.py has the
// operations, cuffi/old_torch/src/th_call.h the call.
#ifndef TH_INC
#define TH_INC

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define TH_EXTERNC extern "C"
#else
#define TH_EXTERNC extern
#endif
#define TH_API TH_EXTERNC
#define THC_API TH_EXTERNC
#define TH_INLINE static inline __attribute__((unused))

// The memory of a tensor from its first element on.
typedef struct THStorage {
  void* data;
  ptrdiff_t size;
} THStorage;

// One struct for all types and devices, with the public fields of 2017. Extensions cast between the types.
typedef struct THTensor {
  long *size, *stride;
  int nDimension;
  THStorage* storage;
  ptrdiff_t storageOffset;
  int device;  // -1: the processor, which X_getDevice calls 0, because it stands in for a GPU
} THTensor;
typedef struct THGenerator THGenerator;
typedef struct THHalf {
  unsigned short x;
} THHalf;

// The result of an operation that makes a tensor, else null. An error leaves the call.
TH_EXTERNC THTensor* th_torch(const char* operation, const char* kinds, ...);
TH_EXTERNC __attribute__((noreturn, format(printf, 1, 2))) void th_fail(const char* format, ...);

#define THError(...) th_fail(__VA_ARGS__)
#define THArgCheck(condition, argument, ...) \
  ((condition) ? (void)0 : (th_fail("argument " #argument ": " __VA_ARGS__), (void)0))
#define THAssertMsg(condition, ...) ((condition) ? (void)0 : (th_fail(__VA_ARGS__), (void)0))
#define THAssert(condition) \
  ((condition) ? (void)0 : (th_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition), (void)0))

#define THAlloc malloc
#define THRealloc realloc
#define THFree free
#define THMax(a, b) ((a) > (b) ? (a) : (b))
#define THMin(a, b) ((a) < (b) ? (a) : (b))

TH_INLINE long th_extent(const THTensor* t, const long* of, int dimension) {
  if (dimension < 0 || dimension >= t->nDimension)
    th_fail("dimension %d of a tensor with %d dimensions", dimension, t->nDimension);
  return of[dimension];
}
TH_INLINE ptrdiff_t th_elements(const THTensor* t) {
  ptrdiff_t count = t->nDimension > 0;
  for (int i = 0; i < t->nDimension; ++i) count *= t->size[i];
  return count;
}
TH_INLINE int th_is_contiguous(const THTensor* t) {
  long step = 1;
  for (int i = t->nDimension - 1; i >= 0; --i) {
    if (t->size[i] != 1 && t->stride[i] != step) return 0;
    step *= t->size[i];
  }
  return 1;
}
TH_INLINE int th_same_size(const THTensor* a, const THTensor* b) {
  return a->nDimension == b->nDimension && !memcmp(a->size, b->size, (size_t)a->nDimension * sizeof(long));
}
// "[2 x 3]", for a message; cut if it is long.
#define TH_DESC_BUFF_LEN 64
typedef struct THDescBuff {
  char str[TH_DESC_BUFF_LEN];
} THDescBuff;
TH_INLINE THDescBuff th_size_desc(const THTensor* t) {
  THDescBuff text;
  int at = snprintf(text.str, TH_DESC_BUFF_LEN, "[");
  for (int i = 0; i < t->nDimension && at < TH_DESC_BUFF_LEN; ++i)
    at += snprintf(text.str + at, (size_t)(TH_DESC_BUFF_LEN - at), i ? " x %ld" : "%ld", t->size[i]);
  if (at < TH_DESC_BUFF_LEN) at += snprintf(text.str + at, (size_t)(TH_DESC_BUFF_LEN - at), "]");
  if (at >= TH_DESC_BUFF_LEN) snprintf(text.str + TH_DESC_BUFF_LEN - 5, 5, "...]");
  return text;
}
TH_INLINE ptrdiff_t th_place(const THTensor* t, int dimensions, long a, long b) {
  const long index[2] = {a, b};
  ptrdiff_t place = 0;
  if (t->nDimension != dimensions)
    th_fail("%d indices of a tensor with %d dimensions", dimensions, t->nDimension);
  for (int i = 0; i < dimensions; ++i) {
    if (index[i] < 0 || index[i] >= t->size[i]) th_fail("index %ld of %ld", index[i], t->size[i]);
    place += index[i] * t->stride[i];
  }
  return place;
}

// A family is the functions of one type. X: the tensor's type. Y: the storage's. T: the element's. K and C: the letter
// and the type with which an element is handed to torch. P: a macro that makes a list of parameters, THC's with a state
// in front; P0 is such a list of nothing else.
#define TH_PLAIN(...) (__VA_ARGS__)
#define TH_VIEWS(X, Y, T, P)                                                              \
  typedef THTensor X;                                                                     \
  typedef THStorage Y;                                                                    \
  TH_INLINE T* X##_data P(const X* t) { return (T*)t->storage->data; }                    \
  TH_INLINE Y* X##_storage P(const X* t) { return t->storage; }                           \
  TH_INLINE T* Y##_data P(const Y* s) { return (T*)s->data; }                             \
  TH_INLINE ptrdiff_t Y##_size P(const Y* s) { return s->size; }                          \
  TH_INLINE ptrdiff_t X##_storageOffset P(const X* t) { return t->storageOffset; }        \
  TH_INLINE long X##_size P(const X* t, int i) { return th_extent(t, t->size, i); }       \
  TH_INLINE long X##_stride P(const X* t, int i) { return th_extent(t, t->stride, i); }   \
  TH_INLINE int X##_nDimension P(const X* t) { return t->nDimension; }                    \
  TH_INLINE ptrdiff_t X##_nElement P(const X* t) { return th_elements(t); }               \
  TH_INLINE ptrdiff_t X##_numel P(const X* t) { return th_elements(t); }                  \
  TH_INLINE int X##_isContiguous P(const X* t) { return th_is_contiguous(t); }            \
  TH_INLINE int X##_isSameSizeAs P(const X* t, const X* u) { return th_same_size(t, u); } \
  TH_INLINE int X##_getDevice P(const X* t) { return t->device < 0 ? 0 : t->device; }     \
  TH_INLINE THDescBuff X##_sizeDesc P(const X* t) { return th_size_desc(t); }

#define TH_SIZES(X, P)                                                                                    \
  TH_INLINE void X##_resize1d P(X* t, long a) { th_torch("resize", "tl", t, a); }                         \
  TH_INLINE void X##_resize2d P(X* t, long a, long b) { th_torch("resize", "tll", t, a, b); }             \
  TH_INLINE void X##_resize3d P(X* t, long a, long b, long c) { th_torch("resize", "tlll", t, a, b, c); } \
  TH_INLINE void X##_resize4d P(X* t, long a, long b, long c, long d) {                                   \
    th_torch("resize", "tllll", t, a, b, c, d);                                                           \
  }                                                                                                       \
  TH_INLINE void X##_resize5d P(X* t, long a, long b, long c, long d, long e) {                           \
    th_torch("resize", "tlllll", t, a, b, c, d, e);                                                       \
  }                                                                                                       \
  TH_INLINE void X##_resizeAs P(X* t, X* like) { th_torch("resizeAs", "tt", t, like); }

#define TH_MAKERS(X, P, P0)                                                                     \
  TH_INLINE X* X##_new P0 { return th_torch("new", "sl", #X, 0L); }                             \
  TH_INLINE X* X##_newWithSize1d P(long a) { return th_torch("new", "sl", #X, a); }             \
  TH_INLINE X* X##_newWithSize2d P(long a, long b) { return th_torch("new", "sll", #X, a, b); } \
  TH_INLINE X* X##_newContiguous P(X* t) { return th_torch("newContiguous", "t", t); }

// Tensors live until the call ends, so nothing has to be counted. Some extensions free their arguments.
#define TH_OTHERS(X, P)                                                                                      \
  TH_INLINE void X##_retain P(X* t) { (void)t; }                                                             \
  TH_INLINE void X##_free P(X* t) { (void)t; }                                                               \
  TH_INLINE void X##_copy P(X* t, THTensor* from) { th_torch("copy", "tt", t, from); }                       \
  TH_INLINE void X##_select P(X* t, X* of, int d, long i) { th_torch("select", "ttll", t, of, (long)d, i); } \
  TH_INLINE void X##_zero P(X* t) { th_torch("zero", "t", t); }

// Functions that take or give an element.
#define TH_VALUES(X, Y, T, K, C, P)                                                 \
  TH_INLINE void X##_fill P(X* t, T x) { th_torch("fill", "t" K, t, (C)x); }        \
  TH_INLINE void Y##_fill P(Y* s, T x) { th_torch("fillStorage", "S" K, s, (C)x); } \
  TH_INLINE void X##_cadd P(X* t, X* a, T x, X* b) { th_torch("cadd", "tt" K "t", t, a, (C)x, b); }

// Single elements, which only the processor reads without asking torch.
#define TH_ELEMENTS(X, T)                                                                         \
  TH_INLINE T X##_get1d(const X* t, long a) { return X##_data(t)[th_place(t, 1, a, 0)]; }         \
  TH_INLINE T X##_get2d(const X* t, long a, long b) { return X##_data(t)[th_place(t, 2, a, b)]; } \
  TH_INLINE void X##_set1d(X* t, long a, T x) { X##_data(t)[th_place(t, 1, a, 0)] = x; }          \
  TH_INLINE void X##_set2d(X* t, long a, long b, T x) { X##_data(t)[th_place(t, 2, a, b)] = x; }

#define TH_FAMILY(X, Y, T, K, C, P, P0) \
  TH_VIEWS(X, Y, T, P)                  \
  TH_SIZES(X, P)                        \
  TH_MAKERS(X, P, P0)                   \
  TH_OTHERS(X, P)                       \
  TH_VALUES(X, Y, T, K, C, P)

// The table of types: their names in TH, and in C.
#define TH_TYPES(MAKE)              \
  MAKE(Double, double, "d", double) \
  MAKE(Long, long, "l", long)       \
  MAKE(Int, int, "l", long)         \
  MAKE(Short, short, "l", long)     \
  MAKE(Char, char, "l", long)       \
  MAKE(Byte, unsigned char, "l", long)

#define TH_OF_PROCESSOR(Name, T, K, C)                                      \
  TH_FAMILY(TH##Name##Tensor, TH##Name##Storage, T, K, C, TH_PLAIN, (void)) \
  TH_ELEMENTS(TH##Name##Tensor, T)

TH_OF_PROCESSOR(Float, float, "d", double)
TH_TYPES(TH_OF_PROCESSOR)
TH_VIEWS(THHalfTensor, THHalfStorage, THHalf, TH_PLAIN)
TH_SIZES(THHalfTensor, TH_PLAIN)
TH_MAKERS(THHalfTensor, TH_PLAIN, (void))
TH_OTHERS(THHalfTensor, TH_PLAIN)

#endif  // TH_INC
