// What the ways of multiplying share, and how each is asked for. Internal to GEMM.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/memory_rows.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {

// Tiles of vectors that are shorter than the widest read twice as much for each product, and are done sooner;
// processors that have no others have smaller caches, too.
template <class T>
bool HasNarrowVectors(const MicroTable<T>& micro) {
  return micro.lanes * static_cast<int64_t>(sizeof(T)) < 64;
}

// `rows` of A by columns of B that are contiguous along k: are they dot products of both as they lie? Up to so many
// rows however short they are; where the sums at the end are little of the work, up to more of them; and of f32 or f64,
// which nothing converts, up to kMostDotRows if A leaves room in the second-level cache.
inline constexpr int64_t kDotRows = 4, kConvertedDotRows = 8, kLongDotRows = 12, kMostDotRows = 32;
inline constexpr int64_t kLeastDotElements = 256, kMostDotElements = 1 << 15;
inline constexpr int64_t kLeastDotBytes = 32;  // of bytes, which take long to turn
inline bool AreDots(const GemmProblem& p, int64_t rows) {
  if (rows <= kDotRows) return true;
  const auto bytes = [](ElementType type) { return type == ElementType::S8 || type == ElementType::U8; };
  if (bytes(p.a.type) && bytes(p.b.type)) return rows <= kConvertedDotRows && p.k >= kLeastDotBytes;
  if (!IsFloat(p.a.type) || !IsFloat(p.b.type) || p.k < kLeastDotElements) return false;
  const bool typed = p.a.type == p.b.type && (p.a.type == ElementType::F32 || p.a.type == ElementType::F64);
  if (!typed) return rows <= kConvertedDotRows;
  return rows <= kLongDotRows || (rows <= kMostDotRows && rows * p.k <= kMostDotElements);
}

// As above; processors with wide vectors have room for more of A in the second-level cache.
inline bool AreDots(const GemmProblem& p, int64_t rows, const GemmIsa& isa) {
  constexpr int64_t kDotRowsBytes = 1 << 19;
  if (AreDots(p, rows)) return true;
  const bool typed = p.a.type == p.b.type && (p.a.type == ElementType::F32 || p.a.type == ElementType::F64);
  return typed && !HasNarrowVectors(isa.f32) && rows <= kMostDotRows && p.k >= kLeastDotElements &&
         rows * p.k * Bytes(p.a.type) <= kDotRowsBytes;
}

// Of rows so short, many are taken at a time: adding up their sums is as much work as the products.
inline bool HasShortDots(const GemmProblem& p, int64_t lanes) {
  constexpr int64_t kShortVectors = 8, kFewRows = 2;
  return p.m <= kFewRows && p.k <= kShortVectors * lanes && p.n > 4;
}

// The same of complex numbers: of each row of A there are two, and turning B is no loop over vectors.
inline constexpr int64_t kComplexDotRows = 6, kLeastComplexDotElements = 16;
inline bool AreComplexDots(const GemmProblem& p, int64_t rows) {
  return rows <= kComplexDotRows && p.k >= kLeastComplexDotElements;
}

// Rows of A by B where it lies, along its rows (StripKernel): up to so many, memory is all there is to wait for; where
// vectors are narrow, more of them take less so than their tiles take to pack B.
inline constexpr int64_t kFewStripRows = 4, kMoreStripRows = 16, kMostStripRows = 32;

// Of B, by one panel of rows of A: what is smaller the outer caches hold, from where strips are as good as streams.
inline constexpr int64_t kLeastStreamedBytes = 1 << 22;

// Packing may write a vector beyond the end of a panel.
inline constexpr int64_t kPanelSlack = 64;

// Hands out pieces of scratch memory.
class Carver {
 public:
  explicit Carver(void* at) : at_(reinterpret_cast<uintptr_t>(at)) {}
  template <class T>
  T* Take(int64_t n) {
    at_ = (at_ + 63) / 64 * 64;
    T* taken = reinterpret_cast<T*>(at_);
    at_ += n * sizeof(T) + kPanelSlack;
    return taken;
  }

 private:
  uintptr_t at_;
};
inline constexpr int64_t kCarverSlack = 64 + kPanelSlack;  // a piece, at most

// Rows at a distance of a multiple of so many bytes meet in the same lines of the first-level cache, one way of which
// has as many.
inline constexpr int64_t kSetBytes = 4096;
inline bool MeetInSets(int64_t distance) { return distance % kSetBytes == 0; }

// Rows in panels of at most `most`, as even as they can be: of 37, the last of four would be one row, and its sums
// would wait for each other.
struct EvenPanels {
  EvenPanels(int64_t rows, int64_t most) : rows(rows), count(CeilDiv(rows, most)) {}
  int64_t First(int64_t panel) const { return rows * panel / count; }
  int64_t rows, count;
};

// About `tasks` tasks of each of so many products, not more than `most`: as many for each processor that this process
// may use, so that all end at about the same time (docs/adr/0038).
int64_t EvenTasks(int64_t tasks, int64_t products, int64_t most);

// The inner kernels for as many rows, and the fewest columns that hold so many.
template <class T>
struct TileKernels {
  MicroKernel<T> kernel;
  IndirectKernel<T> indirect;
  int64_t width;
};
template <class T>
TileKernels<T> TileKernelsOf(const MicroTable<T>& micro, int64_t height, int64_t columns) {
  const int64_t i = height - 1, half = micro.nr / 4;
  const bool halves = micro.halves[i][0] != nullptr;
  if (halves && columns <= half) return {micro.halves[i][0], micro.halves_indirect[i][0], half};
  if (columns <= micro.nr / 2) return {micro.narrow[i], micro.narrow_indirect[i], micro.nr / 2};
  if (halves && columns <= 3 * half) return {micro.halves[i][1], micro.halves_indirect[i][1], 3 * half};
  return {micro.kernel[i], micro.indirect[i], micro.nr};
}

// C = A * B, all of them T and small: `m` rows of A, which are read where they lie, by B, whose columns are neighbours.
template <class T>
void MultiplySmall(const MicroTable<T>& micro, int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_k,
                   const T* b, int64_t b_stride, T* c, int64_t c_stride) {
  if (m <= kWideRows) {
    const EvenPanels vectors(CeilDiv(n, micro.lanes), kWideVectors);
    for (int64_t v = 0; v < vectors.count; ++v) {
      const int64_t j = vectors.First(v) * micro.lanes, count = vectors.First(v + 1) - vectors.First(v);
      micro.wide[m - 1][count - 1](k, a, a_row, a_k, b + j, b_stride, std::min(count * micro.lanes, n - j), c + j,
                                   c_stride);
    }
    return;
  }
  const EvenPanels panels(m, n > micro.lanes ? micro.small_rows : kSmallRows);
  for (int64_t panel = 0; panel < panels.count; ++panel) {
    const int64_t i = panels.First(panel), rows = panels.First(panel + 1) - i;
    for (int64_t j = 0; j < n; j += 2 * micro.lanes) {
      const int64_t cols = std::min<int64_t>(n - j, 2 * micro.lanes);
      micro.small[rows - 1][cols > micro.lanes](k, a + i * a_row, a_row, a_k, b + j, b_stride, cols,
                                                c + i * c_stride + j, c_stride);
    }
  }
}

// The problem with signed integers for unsigned ones where the bits of C are the same: sums wrap, and those of up to 16
// bits need no more of their operands. Packing and micro kernels know the signed ones.
GemmProblem WithSigned(const GemmProblem& problem);

// Can C keep partial sums?
template <class T>
bool HoldsSums(ElementType c) {
  constexpr ElementType kOwn = ElementTypeOf<T>();
  return c == kOwn || (kOwn == ElementType::S32 && c == ElementType::U32) ||
         (kOwn == ElementType::S64 && c == ElementType::U64);
}

// The distance of `count` rows of C from `row` on whose columns are contiguous sums, or -1: where inner kernels may
// write.
template <class T>
int64_t DirectStride(const StoreTarget& c, int64_t row, int64_t count) {
  if (!HoldsSums<T>(c.type) || c.col_stride != 1) return -1;
  if (!c.rows) return c.row_stride;
  const int64_t* at = c.rows + (row - c.first_row);
  if (count < 2) return 0;
  const int64_t stride = at[1] - at[0];
  for (int64_t r = 2; r < count; ++r)
    if (at[r] - at[r - 1] != stride) return -1;
  return stride;
}

template <class T>
T* AddressIn(const StoreTarget& c, int64_t row, int64_t col) {
  return reinterpret_cast<T*>(c.data) + (c.rows ? c.rows[row - c.first_row] : row * c.row_stride) + col;
}

// Do rows lie side by side in memory?
inline bool RowsFollow(const StoreTarget& c, int64_t row, int64_t count) {
  if (!c.rows) return c.row_stride == 1;
  const int64_t* at = c.rows + (row - c.first_row);
  for (int64_t r = 1; r < count; ++r)
    if (at[r] != at[0] + r) return false;
  return true;
}

// sums += terms; integers wrap.
template <class T>
void AddTerms(T* sums, const T* terms, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      sums[i] = static_cast<T>(static_cast<U>(terms[i]) + static_cast<U>(sums[i]));
    } else {
      sums[i] += terms[i];
    }
  }
}

// Asks for rows of memory ahead of time: such as are read by the next strip, into the second-level cache; such as are
// written when their sums are made.
template <bool kWrite, class T>
void FetchRows(const T* from, int64_t stride, int64_t rows, int64_t cols) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; j += kLine) __builtin_prefetch(from + r * stride + j, kWrite, kWrite ? 3 : 2);
  // GCC takes what only prefetches for a function without effects, and drops the calls of it.
  asm volatile("");
}

// What PackStrided reads of so many vectors and elements along k, if it is contiguous one way; otherwise no rows.
inline MemoryRows RowsOfStrided(ElementType type, const uint8_t* data, int64_t offset, int64_t vector_stride,
                                int64_t k_stride, int64_t count, int64_t kc) {
  const int64_t bytes = Bytes(type);
  if (vector_stride == 1) return {data + offset * bytes, k_stride * bytes, kc, count * bytes};
  if (k_stride == 1) return {data + offset * bytes, vector_stride * bytes, count, kc * bytes};
  return {};
}

// Packs a part of a strided matrix; `offset` in elements.
template <class T>
void PackStrided(const MicroTable<T>& micro, ElementType type, const uint8_t* data, int64_t offset,
                 int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc, int64_t width, T* dst,
                 bool of_a = false) {
  if (const PackPanel<T> pack = PackerOf(micro, type, of_a))
    return pack(data + offset * Bytes(type), vector_stride, k_stride, count, kc, width, dst);
  for (int64_t p = 0; p < RoundUp(kc, micro.group); ++p)
    for (int64_t v = 0; v < width; ++v) {
      const bool inside = v < count && p < kc;
      StoreInPanel(micro, dst, width, p, v,
                   inside ? LoadAs<T>(type, data, offset + v * vector_stride + p * k_stride) : T(0));
    }
}

// Products of bf16 pairs flush subnormal numbers, of the operands, the products and the sums. There are none if the
// least exponents of both operands together are large enough: each element of A is a multiple of 2^(a - 134), where a
// is its exponent field, and so is B's; every product and sum is a multiple of 2^(a + b - 268), and so zero or at least
// 2^-126 if a + b >= 142.
inline bool NoSubnormals(int a, int b) { return a >= 1 && b >= 1 && a + b >= 142; }

// Looks for the least exponent field of a matrix of bf16, piece by piece: a piece is some of its longer, contiguous
// lines.
struct ExponentScan {
  using LeastExponent = int (*)(int64_t n, const uint16_t* codes);  // GemmIsa::least_exponent

  ExponentScan(const StridedMatrix& m, int64_t rows, int64_t cols) {
    const bool by_rows = m.col_stride == 1 || m.row_stride != 1;
    lines = by_rows ? rows : cols;
    length = by_rows ? cols : rows;
    line_stride = by_rows ? m.row_stride : m.col_stride;
    stride = by_rows ? m.col_stride : m.row_stride;
    lines_a_piece = std::max<int64_t>(kPiece / length, 1);
    pieces = CeilDiv(lines, lines_a_piece);
  }
  // Of the matrix that begins at `codes`.
  int LeastOfPiece(LeastExponent least_exponent, const uint16_t* codes, int64_t piece) const {
    const int64_t first = piece * lines_a_piece, end = std::min(first + lines_a_piece, lines);
    if (stride == 1 && line_stride == length)  // one line
      return least_exponent((end - first) * length, codes + first * length);
    int least = 255;
    for (int64_t line = first; line < end; ++line) {
      const uint16_t* at = codes + line * line_stride;
      if (stride == 1) {
        least = std::min(least, least_exponent(length, at));
      } else {
        for (int64_t i = 0; i < length; ++i) least = std::min(least, least_exponent(1, at + i * stride));
      }
    }
    return least;
  }
  int Least(LeastExponent least_exponent, const uint16_t* codes) const {
    int least = 255;
    for (int64_t piece = 0; piece < pieces; ++piece)
      least = std::min(least, LeastOfPiece(least_exponent, codes, piece));
    return least;
  }

  static constexpr int64_t kPiece = 1 << 16;  // elements
  int64_t lines, length, line_stride, stride, lines_a_piece, pieces;
};

// Where C's sums were scaled (GemmIsa::thirds): those among `sums`, rows and columns of C, that are no numbers become
// what f32 makes of them. `memory` holds RepairBytes().
void RepairSums(const MicroTable<float>& f32, int64_t rows, int64_t cols, int64_t k, const PackFn<float>& pack_a,
                const PackFn<float>& pack_b, float* sums, int64_t stride, void* memory);
int64_t RepairBytes(const MicroTable<float>& f32, int64_t k);

// A product whose tasks read and pack for themselves (gemm_alone.cc); any but empty ones.
struct AloneGemm {
  std::shared_ptr<const Gemm> gemm;
  bool packs;              // both operands
  bool few_rows_or_terms;  // B is read where it lies, tile by tile, for that reason
};
template <class T>
AloneGemm MakeAloneGemm(const GemmProblem& problem, const GemmIsa& isa);

// The product by way of panels that all tasks share (gemm_panels.h); null if that does not pay. No dimension is zero.
template <class T>
std::shared_ptr<const Gemm> MakePanelGemm(const GemmProblem& problem, const GemmIsa& isa);

// Of f32 in three parts: a large B that lies along k is packed as rows of the transpose, while others are multiplied.
bool PacksRowsOfTranspose(const GemmProblem& problem, const GemmIsa& isa);

// Columns of A by rows of B, both where they lie (gemm_columns.cc), of f32 or f64; null if that does not suit.
template <class T>
std::shared_ptr<const Gemm> MakeColumnsGemm(const GemmProblem& problem, const GemmIsa& isa);

// Few columns by short sums, of f32 or f64: rows of the result, a few of them at a time, are done sooner than dot
// products.
bool AreFewShortColumns(const GemmProblem& problem);

// A small product, or small ones (gemm_small.cc); null if that does not suit. m and n are not zero.
template <class T>
std::shared_ptr<const Gemm> MakeSmallGemm(const GemmProblem& problem, const GemmIsa& isa);

// Of f32 or f64, tile by tile from where they lie (gemm_tiles.cc); null if that does not suit. No dimension is zero.
template <class T>
std::shared_ptr<const Gemm> MakeTilesGemm(const GemmProblem& problem, const GemmIsa& isa);
// Tall matrices by narrow ones, read once (gemm_thin.cc), or what would be cut into blocks that pack for themselves.
// Null if that does not suit.
template <class T>
std::shared_ptr<const Gemm> MakeThinGemm(const GemmProblem& problem, const GemmIsa& isa,
                                         bool instead_of_blocks = false);

// The product of complex matrices, or of one and a real one (gemm_complex.cc), whose parts are of T.
template <class T>
std::shared_ptr<const Gemm> MakeComplexGemm(const GemmProblem& problem, const GemmIsa& isa, GemmSharing sharing);

// Products of bf16, and of bytes, by the processor's own instructions, without shared panels (gemm_half_products.cc);
// null if it has none, or the types are others. k is not zero.
std::shared_ptr<const Gemm> MakeHalfGemm(const GemmProblem& problem, const GemmIsa& isa);
// Many products of f32 in three parts of bf16 (GemmIsa::thirds); null as above.
std::shared_ptr<const Gemm> MakeThirdsOfBatch(const GemmProblem& problem, const GemmIsa& isa);

}  // namespace strop::cpu
