// The structs that recipes write down, each with its list of fields. What a kernel of the library takes has its struct
// there; here is what else a step needs.
//
// A field that is read is checked where the library trusts it: enumerations and sizes.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "strop/base/small_vector.h"
#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/fft.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_rows.h"
#include "strop/cpu/kernels/rng.h"
#include "strop/cpu/kernels/scan.h"
#include "strop/cpu/kernels/sort.h"
#include "strop/cpu/kernels/triangular_solve.h"
#include "strop/cpu/load/recipe.h"

namespace strop::cpu {

inline constexpr ElementType kLastElementType = static_cast<ElementType>(kNumElementTypes - 1);

// No array has more elements than this in all; sizes that say so are damaged, and could not be multiplied.
inline constexpr int64_t kMostElements = int64_t{1} << 48;
inline bool IsArraySize(std::initializer_list<int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) {
    if (d < 0 || d > kMostElements) return false;
    product = SaturatingMultiply(product, std::max<int64_t>(d, 1));
  }
  return product <= kMostElements;
}
template <class Archive>
void Require(Archive& a, bool holds) {
  if constexpr (requires { a.Fail(); })
    if (!holds) a.Fail();
}

// Of an array's elements.
template <class Archive>
void Type(Archive& a, ElementType& type) {
  a.Enum(type, kLastElementType);
  Require(a, IsArrayType(type));
}

// ---- generated code

template <class Archive>
void Fields(Archive& a, CodeRef& ref) {
  a(ref.object, ref.function);
}

struct KernelProblem {
  CodeRef code;
  int64_t num_tasks = 1, scratch_bytes = 0;
};
template <class Archive>
void Fields(Archive& a, KernelProblem& p) {
  a(p.code, p.num_tasks, p.scratch_bytes);
}

struct RegionProblem {
  CodeRef code;
  std::vector<std::string> calls;  // recipes of library kernels
  int64_t num_tasks = 1, local_bytes = 0;
};
template <class Archive>
void Fields(Archive& a, RegionProblem& p) {
  a(p.code, p.calls, p.num_tasks, p.local_bytes);
}

// ---- products

template <class Archive>
void Fields(Archive& a, StridedMatrix& m) {
  Type(a, m.type);
  a(m.row_stride, m.col_stride, m.batch_stride, m.outer_stride);
}
template <class Archive>
void Fields(Archive& a, GemmProblem& p) {
  a(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.inner_batch);
  Require(a, IsArraySize({p.batch, p.m, p.n}) && IsArraySize({p.batch, p.m, p.k}) && IsArraySize({p.batch, p.k, p.n}));
  Require(a, p.inner_batch >= 0 && p.inner_batch <= kMostElements);
}
// Of a product in a region, one operand of which stays the same: as the right-hand side.
struct KeptGemmProblem {
  GemmProblem product;
  int32_t kept = 1;  // the number of that operand; 0: `product` is the transpose
};
template <class Archive>
void Fields(Archive& a, KeptGemmProblem& p) {
  a(p.product, p.kept);
  Require(a, p.kept == 0 || p.kept == 1);
}
template <class Archive>
void Fields(Archive& a, ConvSpatialDim& d) {
  a(d.input, d.kernel, d.output, d.stride, d.pad_low, d.base_dilation, d.window_dilation, d.reversal, d.input_stride,
    d.kernel_stride, d.output_stride);
  for (int64_t step : {d.stride, d.base_dilation, d.window_dilation})
    Require(
        a, step >= 1 && IsArraySize({step, d.input}) && IsArraySize({step, d.kernel}) && IsArraySize({step, d.output}));
  Require(a, d.pad_low >= -kMostElements && d.pad_low <= kMostElements);
}
template <class Archive>
void Fields(Archive& a, ConvProblem& p) {
  Type(a, p.input_type);
  Type(a, p.kernel_type);
  Type(a, p.output_type);
  a(p.batch, p.in_features, p.out_features, p.feature_groups, p.batch_groups, p.input_batch_stride,
    p.input_feature_stride, p.kernel_in_stride, p.kernel_out_stride, p.output_batch_stride, p.output_feature_stride,
    p.spatial);
  Require(a, p.spatial.size() <= 8 && p.feature_groups >= 1 && p.batch_groups >= 1);
  Require(a, IsArraySize({p.batch, p.batch_groups}) && IsArraySize({p.in_features, p.feature_groups}) &&
                 IsArraySize({p.out_features}));
  if (p.feature_groups >= 1 && p.batch_groups >= 1)
    Require(a, p.out_features % p.feature_groups == 0 && p.out_features % p.batch_groups == 0);
}

// A band (library/band.h): values inside it lie in scratch memory, one block of rows of each.
struct BandProblem {
  // Where a value is: an argument of the step, or a place in scratch memory.
  struct Place {
    int32_t arg = -1;
    int64_t offset = 0, row_bytes = 0;
  };
  struct Part {
    bool is_product = false, sums_rows = false;
    GemmProblem product;      // if it is
    WantedColumns wanted;     // of it
    KernelProblem kernel;     // if it is not
    std::vector<Place> args;  // operands, then the result
  };
  int64_t block = 0, blocks = 0;  // rows of one; number of them
  int64_t blocks_of_task = 1;     // more where parts sum along the rows
  int64_t value_bytes = 0;        // of scratch memory: what the places take
  std::vector<Part> parts;
};
template <class Archive>
void Fields(Archive& a, WantedColumns& w) {
  a(w.step, w.first, w.last);
  Require(a, w.step >= 0 && w.step <= kMostElements);
  for (int64_t end : {w.first, w.last}) Require(a, end >= -kMostElements && end <= kMostElements);
}
template <class Archive>
void Fields(Archive& a, BandProblem::Place& p) {
  a(p.arg, p.offset, p.row_bytes);
}
template <class Archive>
void Fields(Archive& a, BandProblem::Part& p) {
  a(p.is_product, p.sums_rows, p.product, p.wanted, p.kernel, p.args);
}
template <class Archive>
void Fields(Archive& a, BandProblem& p) {
  a(p.block, p.blocks, p.blocks_of_task, p.value_bytes, p.parts);
  Require(a, p.block > 0 && IsArraySize({p.block, p.blocks}) && IsArraySize({p.value_bytes}));
  Require(a, p.blocks_of_task > 0 && p.blocks % p.blocks_of_task == 0);
  for (const BandProblem::Part& part : p.parts)
    Require(a, !part.sums_rows || p.block * p.blocks_of_task == part.product.k);
}

// ---- linear algebra

struct CholeskyProblem {
  ElementType type = ElementType::F32;
  bool lower = true;
  int64_t batch = 1, n = 0;
};
template <class Archive>
void Fields(Archive& a, CholeskyProblem& p) {
  Type(a, p.type);
  a(p.lower, p.batch, p.n);
  Require(a, IsArraySize({p.batch, p.n, p.n}));
}

struct TriangularSolveProblem {
  ElementType type = ElementType::F32;
  TriangularOptions options;
  int64_t batch = 1, m = 0, n = 0;
};
template <class Archive>
void Fields(Archive& a, TriangularSolveProblem& p) {
  Type(a, p.type);
  a(p.options.left_side, p.options.lower, p.options.unit_diagonal);
  a.Enum(p.options.transpose, TriangularTranspose::kAdjoint);
  a(p.batch, p.m, p.n);
  Require(a, IsArraySize({p.batch, p.m, p.n}));
}

// A call of LAPACK's that one thread computes without a library of the host (runtime/lapack).
struct LapackProblem {
  struct Array {
    ElementType type = ElementType::F32;
    Int64Vector dims;
  };
  std::string target, attributes;
  std::vector<Array> operands, results;
};
template <class Archive>
void Fields(Archive& a, LapackProblem::Array& array) {
  Type(a, array.type);
  a(array.dims);
  int64_t elements = 1;
  for (int64_t d : array.dims) {
    Require(a, d >= 0 && d <= kMostElements);
    elements = SaturatingMultiply(elements, std::max<int64_t>(d, 1));
  }
  Require(a, elements <= kMostElements);
}
template <class Archive>
void Fields(Archive& a, LapackProblem& p) {
  a(p.target, p.attributes, p.operands, p.results);
}

// ---- lines of elements

struct RandomBitsProblem {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  ElementType type = ElementType::U32;
  Int64Vector dims;
  int64_t words = 0;  // of the state
};
template <class Archive>
void Fields(Archive& a, RandomBitsProblem& p) {
  a.Enum(p.algorithm, RngAlgorithm::kPhilox);
  Type(a, p.type);
  a(p.dims, p.words);
}

template <class Archive>
void Fields(Archive& a, ScanProblem& p) {
  Type(a, p.type);
  a.Enum(p.combine, CombineKind::kOr);
  a(p.reverse, p.outer, p.n, p.inner);
  Require(a, IsArraySize({p.outer, p.n, p.inner}));
}

template <class Archive>
void Fields(Archive& a, SortShape& s) {
  a(s.outer, s.n, s.inner);
  Require(a, IsArraySize({s.outer, s.n, s.inner}));
}
struct SortProblem {
  SortShape shape;
  SortKey key;
  std::vector<int64_t> widths;  // bytes of an element of each operand
};
template <class Archive>
void Fields(Archive& a, SortProblem& p) {
  a(p.shape, p.key.operand);
  Type(a, p.key.type);
  a.Enum(p.key.order, KeyOrder::kNumpy);
  a(p.key.descending, p.widths);
}
struct SortByCodeProblem {
  SortShape shape;
  CodeRef less;
  std::vector<int64_t> widths;
};
template <class Archive>
void Fields(Archive& a, SortByCodeProblem& p) {
  a(p.shape, p.less, p.widths);
}

struct TopKProblem {
  ElementType type = ElementType::F32;
  int64_t rows = 1, n = 0, k = 0;
  bool largest = true;
};
template <class Archive>
void Fields(Archive& a, TopKProblem& p) {
  Type(a, p.type);
  a(p.rows, p.n, p.k, p.largest);
  Require(a, IsArraySize({p.rows, p.n}));
}

struct FftProblem {
  FftKind kind = FftKind::kFft;
  bool wide = false;  // f64 and c128
  int64_t batch = 1;
  std::vector<int64_t> lengths;
};
template <class Archive>
void Fields(Archive& a, FftProblem& p) {
  a.Enum(p.kind, FftKind::kIrfft);
  a(p.wide, p.batch, p.lengths);
}

// Reads the problem that a recipe of this kind holds.
template <class Problem>
Result<Problem> ReadProblem(ByteReader& fields, const RecipeKind& kind) {
  Problem problem;
  fields(problem);
  STROP_TRY(fields.Finish(kind.name));
  return problem;
}

}  // namespace strop::cpu
