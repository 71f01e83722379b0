// SmallSystems: triangular systems that are small, for which packing and calling a solver would cost more than the
// arithmetic. Many are solved side by side, one in each lane of a vector, the triangle turned once for all columns; one
// alone has its columns in the lanes. Substitution row by row, with the same bits either way.
#pragma once
#include <algorithm>
#include <cstdint>

namespace strop::cpu {

// op(triangle) x = b, b replaced by x. Systems lie behind each other; lengths are in elements.
template <class T>
struct SmallSystems {
  static constexpr int kLanes = 32 / sizeof(T);
  static constexpr int64_t kMaxSize = 16;
  static constexpr int64_t kMaxColumns = 16;  // of one system
  typedef T Vec __attribute__((vector_size(32)));

  int64_t size = 0, columns = 0;
  bool lower = true, unit_diagonal = false;
  int64_t row_stride = 0, column_stride = 0;      // of op(triangle)
  int64_t b_row_stride = 0, b_column_stride = 0;  // b's rows are the unknowns

  // Systems [first, first + count), count <= kLanes. The lanes behind them solve the last one again.
  inline void Solve(const T* triangles, T* b, int64_t first, int64_t count) const {
    Vec triangle[kMaxSize * kMaxSize], x[kMaxSize];
    const T* from = triangles + first * size * size;
    T* to = b + first * size * columns;
    int64_t matrix[kLanes], vector[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const int64_t system = std::min<int64_t>(l, count - 1);
      matrix[l] = system * size * size;
      vector[l] = system * size * columns;
    }
    for (int64_t r = 0; r < size; ++r)
      for (int64_t c = lower ? 0 : r; c < (lower ? r + 1 : size); ++c)
        for (int l = 0; l < kLanes; ++l)
          triangle[r * kMaxSize + c][l] = from[matrix[l] + r * row_stride + c * column_stride];
    for (int64_t column = 0; column < columns; ++column) {
      T* at = to + column * b_column_stride;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t r = lower ? i : size - 1 - i;
        Vec value;
        for (int l = 0; l < kLanes; ++l) value[l] = at[vector[l] + r * b_row_stride];
        for (int64_t k = 0; k < i; ++k) {
          const int64_t c = lower ? k : size - 1 - k;
          value -= triangle[r * kMaxSize + c] * x[c];
        }
        x[r] = unit_diagonal ? value : value / triangle[r * kMaxSize + r];
      }
      for (int64_t r = 0; r < size; ++r)
        for (int l = 0; l < count; ++l) at[vector[l] + r * b_row_stride] = x[r][l];
    }
  }

  // The first system.
  inline void SolveOne(const T* triangle, T* b) const {
    Vec x[kMaxSize][kMaxColumns / kLanes] = {};
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
