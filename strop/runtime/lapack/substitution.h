// Substitution: triangular systems of real numbers with several right-hand sides, one table per instruction set.
//
// Several right-hand sides lie side by side in a panel, x[unknown][lane]. Unknowns are found `rows` at a time: what
// those before them contribute is subtracted in registers, rows x width sums at once, and the triangle on the diagonal
// follows there. substitution.inc is compiled once for each set with its own flags; it includes nothing that could emit
// an inline function for the wrong processor.
#pragma once
#include <cstdint>
#include <type_traits>

namespace strop::lapack {

// A lower triangle of which element (i, j) is at at[i * row_stride + j * column_stride]. Upper ones are lower ones from
// their end, with strides that run backwards.
template <class T>
struct SubstitutionTriangle {
  int64_t size = 0;
  const T* at = nullptr;
  int64_t row_stride = 0, column_stride = 0;
  bool unit_diagonal = false;  // the diagonal is not read
  // In blocks of `rows` rows: of each, columns [0, the diagonal block's last], the block's elements of a column behind
  // each other. Rows beyond the last are those of the unit matrix.
  bool packed = false;
};

// One as it lies: element (i, j) is at at[i * stride + j] if its rows lie dense, else at at[i + j * stride].
template <class T>
struct DenseTriangle {
  int64_t size = 0;
  const T* at = nullptr;
  int64_t stride = 0;
  bool by_rows = true, lower = true, unit_diagonal = false;
};

template <class T>
struct SubstitutionKernels {
  int rows = 0;   // of a block
  int width = 0;  // of the widest panel
  // Blocks [begin, end) of a triangle, to where they belong in `packed`: what lies by columns is read too often.
  void (*pack)(const SubstitutionTriangle<T>& a, int64_t begin, int64_t end, T* packed) = nullptr;
  // Solves for `columns` <= width right-hand sides, of which unknown i of the one c is at b + i * row_stride + c *
  // column_stride, in place. `panel` is for a.size unknowns, rounded up to blocks, times width.
  void (*solve)(const SubstitutionTriangle<T>& a, int64_t columns, T* b, int64_t row_stride, int64_t column_stride,
                T* panel) = nullptr;
  // Solves for a single right-hand side, dense and in place.
  void (*solve_one)(const DenseTriangle<T>& a, T* x) = nullptr;

  int64_t blocks(int64_t size) const { return (size + rows - 1) / rows; }
  int64_t packed_elements(int64_t size) const { return blocks(size) * (blocks(size) + 1) / 2 * rows * rows; }
};

struct SubstitutionIsa {
  SubstitutionKernels<float> f32;
  SubstitutionKernels<double> f64;
};

const SubstitutionIsa& SubstitutionBaseline();
const SubstitutionIsa& SubstitutionAvx2();    // x86 only
const SubstitutionIsa& SubstitutionAvx512();  // x86 only
// The best that this processor runs.
const SubstitutionIsa& BestSubstitutionIsa();

template <class T>
const SubstitutionKernels<T>& BestSubstitution() {
  if constexpr (std::is_same_v<T, float>)
    return BestSubstitutionIsa().f32;
  else
    return BestSubstitutionIsa().f64;
}

}  // namespace strop::lapack
