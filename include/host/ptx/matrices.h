// Matrices in the registers of a warp: ldmatrix, stmatrix, movmatrix, and the shapes of mma.
#pragma once

#include "memory.h"
#include "warps.h"

namespace cuda_ptx {

struct Rows {
  u64 data[2];
};
struct MatrixLane {
  Rows row;
  u32* to;
  int count;
  bool transposed;
};
// Lane 4 * r + c gets elements 2c and 2c + 1 of row r, or of column r.
inline void give_rows(void* const* lanes, unsigned int) {
  const int count = static_cast<const MatrixLane*>(lanes[0])->count;
  for (int matrix = 0; matrix < count; ++matrix) {
    u16 all[8][8];
    for (int row = 0; row < 8; ++row)
      memcpy(all[row], static_cast<const MatrixLane*>(lanes[8 * matrix + row])->row.data, 16);
    for (int lane = 0; lane < 32; ++lane) {
      const auto& own = *static_cast<const MatrixLane*>(lanes[lane]);
      const int r = lane / 4, c = lane % 4 * 2;
      own.to[matrix] =
          own.transposed ? all[c][r] | u32(all[c + 1][r]) << 16 : all[r][c] | u32(all[r][c + 1]) << 16;
    }
  }
}
template <int count, bool transposed>
__forceinline__ void ldmatrix(u32* to, const char* at) {
  MatrixLane own{{{0, 0}}, to, count, transposed};
  if (static_cast<int>(laneid()) < 8 * count) {
    aligned(at, 16);
    typedef typename Bytes<16>::type type;
    const type row = *reinterpret_cast<const type*>(at);
    memcpy(own.row.data, &row, 16);
  }
  ::cuda_host::warp_together(0xffffffffu, &own, give_rows, "ldmatrix");
}
// The other way: lane 8 * matrix + row stores a row.
inline void take_rows(void* const* lanes, unsigned int) {
  const int count = static_cast<const MatrixLane*>(lanes[0])->count;
  for (int matrix = 0; matrix < count; ++matrix)
    for (int row = 0; row < 8; ++row) {
      auto& own = *static_cast<MatrixLane*>(lanes[8 * matrix + row]);
      u16 all[8];
      for (int column = 0; column < 8; ++column) {
        const int r = own.transposed ? column : row, c = own.transposed ? row : column;
        all[column] = static_cast<u16>(static_cast<const MatrixLane*>(lanes[r * 4 + c / 2])->to[matrix] >>
                                       (16 * (c % 2)));
      }
      memcpy(own.row.data, all, 16);
    }
}
template <int count, bool transposed>
__forceinline__ void stmatrix(char* at, u32* from) {
  MatrixLane own{{{0, 0}}, from, count, transposed};
  ::cuda_host::warp_together(0xffffffffu, &own, take_rows, "stmatrix");
  if (static_cast<int>(laneid()) < 8 * count) {
    aligned(at, 16);
    typedef typename Bytes<16>::type type;
    type row;
    memcpy(&row, own.row.data, 16);
    *reinterpret_cast<type*>(at) = row;
  }
}
__forceinline__ u32 movmatrix(u32 from) {
  u32 to = 0;
  const u32 lane = laneid(), row = lane / 4, column = lane % 4 * 2;
  for (u32 e = 0; e < 2; ++e) {
    u32 got = 0;
    for (u32 other = 0; other < 2; ++other) {
      const u32 one = ::cuda_host::shuffle(0xffffffffu, from, static_cast<int>((column + e) * 4 + row / 2));
      if (other == row % 2) got = one >> (16 * other) & 0xffff;
    }
    to |= got << (16 * e);
  }
  return to;
}
template <int m, int n, int k, ::cuda_host::MatrixType a, ::cuda_host::MatrixType b,
          ::cuda_host::MatrixType c, ::cuda_host::MatrixType d, bool saturate = false, bool by_and = false,
          bool volta = false, bool a_by_column = false, bool b_by_row = false>
struct Shape {
  static constexpr ::cuda_host::MmaShape value{m, n,        k,      a,     b,           c,
                                               d, saturate, by_and, volta, a_by_column, b_by_row};
};
// wmma.load and wmma.store: the elements of a lane, where nvcuda::wmma has them. use: 0: A, 1: B, 2: the accumulator.
template <int use, int m, int n, int k, ::cuda_host::MatrixType type, bool by_rows>
__forceinline__ size_t wmma_place(int index, u32 stride) {
  const auto at = ::cuda_host::fragment_place(use, m, n, k, type, ::cuda_host::lane(), index);
  return by_rows ? size_t(at.row) * stride + at.column : size_t(at.column) * stride + at.row;
}
template <int use, int m, int n, int k, ::cuda_host::MatrixType type, bool by_rows, typename T, int held>
__forceinline__ void wmma_load(void* to, const char* from, u32 stride) {
  for (int i = 0; i < held; ++i) {
    const T one = load<T>(from + sizeof(T) * wmma_place<use, m, n, k, type, by_rows>(i, stride));
    memcpy(static_cast<char*>(to) + i * sizeof(T), &one, sizeof(T));
  }
}
template <int m, int n, int k, ::cuda_host::MatrixType type, bool by_rows, typename T, int held>
__forceinline__ void wmma_store(char* to, const void* from, u32 stride) {
  for (int i = 0; i < held; ++i) {
    T one;
    memcpy(&one, static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
    store<T>(to + sizeof(T) * wmma_place<2, m, n, k, type, by_rows>(i, stride), one);
  }
}

}  // namespace cuda_ptx
