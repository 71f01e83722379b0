// SmallSystems: triangular systems that are small, for which packing and calling a solver would cost more than the
// arithmetic. Many are solved side by side, one in each lane of a vector, the triangle turned once for all columns; one
// alone has its columns in the lanes. Substitution row by row, with the same bits either way.
#pragma once
#include <cstdint>

#include "strop/base/arrays_in_lanes.h"

namespace strop::cpu {

// op(triangle) x = b, b replaced by x. Systems lie behind each other; lengths are in elements.
template <class T>
struct SmallSystems {
  static constexpr int kLanes = ArraysInLanes<T>::kLanes;
  static constexpr int64_t kMaxSize = 32;  // of many; the first cache holds their triangles
  static constexpr int64_t kMaxSizeOfOne = 16;
  static constexpr int64_t kMaxColumns = 16;  // of one system
  using Vec = typename ArraysInLanes<T>::Vec;

  int64_t size = 0, columns = 0;
  bool lower = true, unit_diagonal = false;
  int64_t row_stride = 0, column_stride = 0;      // of op(triangle)
  int64_t b_row_stride = 0, b_column_stride = 0;  // b's rows are the unknowns

  // Systems [first, first + count), count <= kLanes.
  inline void Solve(const T* triangles, T* b, int64_t first, int64_t count) const {
    using Lanes = ArraysInLanes<T>;
    Vec triangle[kMaxSize * kMaxSize], x[kMaxSize * kMaxColumns];
    T* to = b + first * size * columns;
    Lanes::Gather(size * size, count, triangles + first * size * size, triangle);
    Lanes::Gather(size * columns, count, to, x);
    for (int64_t column = 0; column < columns; ++column) {
      Vec* unknowns = x + column * b_column_stride;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t r = lower ? i : size - 1 - i;
        const Vec* row = triangle + r * row_stride;
        Vec value = unknowns[r * b_row_stride];
        for (int64_t k = 0; k < i; ++k) {
          const int64_t c = lower ? k : size - 1 - k;
          value -= row[c * column_stride] * unknowns[c * b_row_stride];
        }
        unknowns[r * b_row_stride] = unit_diagonal ? value : value / row[r * column_stride];
      }
    }
    Lanes::Scatter(size * columns, count, x, to);
  }

  // The first system.
  inline void SolveOne(const T* triangle, T* b) const {
    Vec x[kMaxSizeOfOne][kMaxColumns / kLanes] = {};
    const int64_t vectors = (columns + kLanes - 1) / kLanes;
    for (int64_t r = 0; r < size; ++r)
      for (int64_t c = 0; c < columns; ++c) x[r][c / kLanes][c % kLanes] = b[r * b_row_stride + c * b_column_stride];
    for (int64_t i = 0; i < size; ++i) {
      const int64_t r = lower ? i : size - 1 - i;
      for (int64_t v = 0; v < vectors; ++v) {
        Vec value = x[r][v];
        for (int64_t k = 0; k < i; ++k) {
          const int64_t c = lower ? k : size - 1 - k;
          value -= triangle[r * row_stride + c * column_stride] * x[c][v];
        }
        x[r][v] = unit_diagonal ? value : value / triangle[r * row_stride + r * column_stride];
      }
    }
    for (int64_t r = 0; r < size; ++r)
      for (int64_t c = 0; c < columns; ++c) b[r * b_row_stride + c * b_column_stride] = x[r][c / kLanes][c % kLanes];
  }
};

}  // namespace strop::cpu
