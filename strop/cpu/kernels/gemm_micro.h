// The inner loops of GEMM, one table per instruction set. gemm_micro.inc is compiled once for each with its own flags;
// those files include nothing that could emit an inline function for the wrong processor.
//
// Panels consist of units of the size of T, the type of the sums. A unit is one element, or a group of `group`
// consecutive elements along k: s32 sums of small integers read pairs of s16, which every x86 multiplies and adds in
// one instruction, exactly (pmaddwd wraps only where the sum itself does). Newer ones do that for four bytes, and for
// pairs of bf16. The newest ones multiply squares of units: their kernels take `step` units along k at a time, and
// panels of A hold those of a row side by side: a[units / step][rows][step]. The element whose place is not that of its
// unit is told by UnitAt().
#pragma once
#include <cstdint>

namespace strop::cpu {

// c[r][j] = (accumulate ? c[r][j] : 0) + sum over k of a[k][r] * b[k][j], k in units: a is a packed panel, b_stride the
// distance of the rows of b. The sum runs over k in order, one fused multiply-add per term where the processor has it.
template <class T>
using MicroKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                             bool accumulate);

// Panels that a kernel of GemmIsa::thirds packs while it multiplies others. Of B those whose columns fill them and
// whose rows lie where `steps` say, those of a step `row_stride` elements from each other: a unit is the rows p and
// p + 16 of a step by the columns of a panel, [panel][step][p]. Of A those that rows fill whose elements follow each
// other, `row_stride` elements from row to row: a unit is a step of a row, [panel][row][step].
struct PackAhead {
  const float* const* steps = nullptr;  // the first row of each step, at the first panel; null: of A
  const float* rows = nullptr;          // of A, the first one
  int64_t num_steps = 0, row_stride = 0;
  float* to = nullptr;
  int64_t distance = 0;          // of panels, in units
  int64_t first = 0, count = 0;  // of what this tile packs
};

// to[r][j] = before[r][j] + sum over k of a[k][r] * b[k][j], of a table whose kernels take steps, for `rows` rows and
// as many columns as the kernel computes. Squares of rows that are not full are read as if they were, so up to 15 lines
// of 64 bytes behind a panel of A. Meanwhile the kernel asks for what is read next.
template <class T>
struct StepTile {
  int64_t rows = 0, units = 0;
  const T* a = nullptr;
  int64_t a_stride = 0, a_step = 0;    // from row to row, and from step to step, in units; 0: as panels have them
  const int64_t* a_offsets = nullptr;  // of each step, instead (GemmIsa::thirds)
  const T* b = nullptr;
  int64_t b_stride = 0;       // of its rows, in units
  const T* before = nullptr;  // null: zeros
  int64_t before_stride = 0;
  void* to = nullptr;
  int64_t stride = 0;   // of its rows, in elements
  bool halves = false;  // `to` are bf16, and not T
  const void* next = nullptr;
  int64_t next_lines = 0;      // of 64 bytes
  bool asks_for_rows = false;  // of `to`, before they are written
  PackAhead packs;
  bool ends = true;  // with the last of k: what is scaled meanwhile (GemmIsa::thirds) is scaled back
};
// False: not all sums are numbers, where `ends` says that they are scaled back.
template <class T>
using StepKernel = bool (*)(const StepTile<T>& tile);

// As MicroKernel, with each row of sums beginning at `seeds`, one number a column.
template <class T>
using SeededKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, const T* seeds, T* c,
                              int64_t c_stride);

// What panels are packed from. Integers of less than 8 bits lie in memory as s8 or u8.
enum class PackSource : uint8_t { F32, F64, BF16, F16, S8, U8, S16, S32, S64, None };
inline constexpr int kPackSources = 9;

// Packs `count` vectors, elements [0, kc) of each, as dst[kc / group][width] units (where kernels take steps, those of
// A as they read them); the vectors from `count` to `width` and the rest of the last group, or step, are zeros. May
// write up to a vector register beyond the end of the panel.
template <class T>
using PackPanel = void (*)(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc,
                           int64_t width, T* dst);

// out[i * out_stride + r] = sum over k of x[i][k] * rows[r][k], for `panels` panels x[i] of width one and `count` <= 4
// rows with distance row_stride. The sum runs over lanes first, so it is another order than MicroKernel's, but always
// the same.
template <class T>
using DotKernel = void (*)(int64_t k, const T* const* x, int panels, const void* rows, int64_t row_stride, int count,
                           T* out, int64_t out_stride);

// out[r] = sum over k of x[k] * rows[r][k] for `count` rows, no more than a vector has lanes. For short rows: as many
// streams would be too many for memory.
template <class T>
using DotLanesKernel = void (*)(int64_t k, const T* x, const void* rows, int64_t row_stride, int64_t count, T* out);

// c[r][j] = sum over k of a[k][r] * b[k][j], for few rows r and many columns: a is a packed panel, b lies where it
// lies, b_stride elements from row to row, and is read along its rows, kStripGroup of them at a time: neighbours, or
// one of each kStripGroup-th of the rows.
template <class T>
using StripKernel = void (*)(int rows, int64_t k, const T* a, const void* b, int64_t b_stride, int64_t cols, T* c,
                             int64_t c_stride);
// Up to so many rows of A, memory is waited for; the products of a group are added to each other first.
inline constexpr int kStripGroup = 4, kMemoryRows = 2;

// c[r][j] = sum over k of a[r * a_row + k * a_k] * b[k * b_stride + j], for `cols` columns: what is too small to pack.
template <class T>
using SmallKernel = void (*)(int64_t k, const T* a, int64_t a_row, int64_t a_k, const T* b, int64_t b_stride,
                             int64_t cols, T* c, int64_t c_stride);

// c[r][j] = (accumulate ? c[r][j] : 0) + sum over k of a[r * a_row + k * a_k] * b[k][j], for `tiles` tiles of columns,
// each of which lies packed behind the one before it.
template <class T>
using TilesKernel = void (*)(int64_t tiles, int64_t k, const T* a, int64_t a_row, int64_t a_k, const T* b, T* c,
                             int64_t c_stride, bool accumulate);

// As MicroKernel, with A read where it lies: row r of part t is the `k` elements that follow rows[t * height + r],
// or, if rows[t * height] is null, zeros as all others of the part. k in units, as in MicroKernel.
template <class T>
using IndirectKernel = void (*)(int64_t parts, int64_t k, const T* const* rows, const T* b, int64_t b_stride, T* c,
                                int64_t c_stride, bool accumulate);

// As IndirectKernel, of few rows and columns: row r of part t follows rows[t * height + r] + offset. Or of two products
// at once, the second of which finds its rows k further, its columns b_distance further, and writes behind the first.
template <class T>
using GroupKernel = void (*)(int64_t parts, int64_t k, const T* const* rows, int64_t offset, const T* b,
                             int64_t b_distance, T* c, int64_t c_stride, bool accumulate);
inline constexpr int kGroupRows = 8, kGroupWidths = 3;

// c[r][j] = (accumulate ? c[r][j] : 0) + sum over the runs, and over their `length` steps, of a[r] * b[j], for `cols`
// columns: a and b are where a run says, a_step and b_step further at each step. For products of columns by rows, both
// of them where they lie.
struct ProductRun {
  int64_t a, b, length;  // offsets in elements
};
template <class T>
using RunsKernel = void (*)(const ProductRun* runs, int64_t count, const T* a, int64_t a_step, const T* b,
                            int64_t b_step, int64_t cols, T* c, int64_t c_stride, bool accumulate);

// sums[c] += sum over the runs, and over their steps, of a[c] * b[c], for `channels` of them; as RunsKernel otherwise.
template <class T>
using RunProductsKernel = void (*)(const ProductRun* runs, int64_t count, const T* a, int64_t a_step, const T* b,
                                   int64_t b_step, int64_t channels, T* sums);

// out[i * out_step + c] = sum over taps of x[tap][i * x_step + c] * w[tap][c], for `count` positions i and `channels`
// c.
template <class T>
using TapsKernel = void (*)(int64_t taps, const T* const* x, const T* const* w, int64_t count, int64_t x_step,
                            int64_t channels, T* out, int64_t out_step);

inline constexpr int kSmallRows = 8;  // of one vector each; of two, as MicroTable::small_rows says
// Of so few rows, sums in more columns at a time: each waits for its last addition, and rows of B are read once.
inline constexpr int kWideRows = 2, kWideVectors = 8;

// c[r][j] = (accumulate ? c[r][j] : 0) + sum over k of a[k][r] * b[offsets[k] + j]: a is a packed panel, b are planes
// whose neighbours belong to neighbouring positions of a convolution's output.
template <class T>
using PlanarKernel = void (*)(int64_t k, const T* a, const T* b, const int64_t* offsets, T* c, int64_t c_stride,
                              bool accumulate);
inline constexpr int kPlanarRows = 12, kPlanarVectors = 6;

// The rows that two planes are multiplied along: `length` elements from x[row] of the one and from y[row] of the other.
struct PlanarRows {
  int64_t count = 0, length = 0;
  const int64_t* x = nullptr;
  const int64_t* y = nullptr;
};
// sums[i][j][lane] += sum over rows of x[i] * y[j], element by element; elements are dealt to lanes in turn. Reads up
// to a vector beyond each row, of which nothing is used.
template <class T>
using PlanarSumsKernel = void (*)(const PlanarRows& rows, const T* const* x, const T* const* y, T* sums);
inline constexpr int kPlanarSums = 4;

template <class T>
struct MicroTable {
  int mr = 0, nr = 0;
  int group = 1;       // elements a unit
  int step = 1;        // units along k that a kernel takes at a time; more than one: `steps` are the kernels
  int quantum = 0;     // elements of a step, if there are not `group` a unit
  int lanes = 0;       // units of a vector register
  int small_rows = 0;  // whose sums, two vectors each, the registers hold
  // kernel[i] computes i + 1 rows (a is packed with that many); kernel[mr - 1] is the full one. narrow: nr / 2 columns.
  MicroKernel<T> kernel[16] = {};
  MicroKernel<T> narrow[16] = {};
  // Where kernels take steps: of nr / 2 columns, and of nr; and what packs rows of A, each of `bytes` bytes wherever it
  // lies, or zeros if that is null, as pack_a does.
  StepKernel<T> steps[2] = {};
  void (*pack_lines)(const uint8_t* const* rows, int64_t count, int64_t bytes, T* dst) = nullptr;
  // What makes the processor ready for kernels, on the thread that calls them, and what ends that; null: nothing does.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  // One half of a vector, and one and a half: what a few columns more than a whole number of vectors fill. Null: there
  // are none.
  MicroKernel<T> halves[16][2] = {};
  IndirectKernel<T> halves_indirect[16][2] = {};
  SeededKernel<T> seeded[16] = {};      // as kernel; null: there is no bias
  IndirectKernel<T> indirect[16] = {};  // null: not of this type, as the next
  IndirectKernel<T> narrow_indirect[16] = {};
  // By rows, less one, and by columns: half a vector (null but of the widest ones), one, two. b is that wide. Of the
  // first that there is, for two products, too.
  GroupKernel<T> group_indirect[kGroupRows][kGroupWidths] = {};
  GroupKernel<T> group_pairs[kGroupRows] = {};
  // By rows and by vectors, less one; by x and by y, less one. Null: too many for the registers, or not of this type.
  PlanarKernel<T> planar[kPlanarRows][kPlanarVectors] = {};
  PlanarSumsKernel<T> planar_sums[kPlanarSums][kPlanarSums] = {};
  SmallKernel<T> small[kSmallRows][2] = {};           // by rows, and by vectors in a row of sums; less one
  SmallKernel<T> wide[kWideRows][kWideVectors] = {};  // the same of few rows
  TilesKernel<T> tiles[16][2] = {};                   // by rows, less one; half as wide, whole; null: not of this type
  RunsKernel<T> runs[16][2] = {};          // by rows, and by vectors in a row of sums; less one; null: not of this type
  PackPanel<T> pack[kPackSources] = {};    // null: not from this type
  PackPanel<T> pack_a[kPackSources] = {};  // of A, where it is packed in another way
  // What was added to the elements of A when they were packed: C is too large by this times the sums of B's columns.
  int bias = 0;
  DotKernel<T> dot[kPackSources] = {};
  DotLanesKernel<T> dot_lanes[kPackSources] = {};
  StripKernel<T> strip[kPackSources] = {};      // null: not of this type
  RunProductsKernel<T> run_products = nullptr;  // of floats only, as the next
  TapsKernel<T> taps = nullptr;
  void (*multiply_add)(int64_t n, const T* x, const T* y, T* sums) = nullptr;  // sums[i] += x[i] * y[i]
  void (*scale_add)(int64_t n, const T* x, T factor, T* sums) = nullptr;       // sums[i] += x[i] * factor
  bool (*all_finite)(int64_t n, const T* x) = nullptr;                         // of floats only

  // What a kernel takes of so many elements along k, and the fewest elements that it takes.
  int64_t Units(int64_t elements) const { return (elements + Quantum() - 1) / Quantum() * step; }
  int64_t Quantum() const { return quantum > 0 ? quantum : int64_t{group} * step; }
  // The unit in which element k begins, a multiple of what kernels take.
  int64_t UnitAt(int64_t k) const { return quantum > 0 ? k / quantum * step : k / group; }
};

// While this lives, its thread may call kernels of the table.
template <class T>
class KernelScope {
 public:
  explicit KernelScope(const MicroTable<T>& micro) : end_(micro.end) {
    if (micro.begin) micro.begin();
  }
  ~KernelScope() {
    if (end_) end_();
  }
  KernelScope(const KernelScope&) = delete;

 private:
  void (*end_)();
};

struct GemmIsa {
  const char* name;
  MicroTable<float> f32;
  MicroTable<double> f64;
  MicroTable<int32_t> s32;
  MicroTable<int64_t> s64;
  MicroTable<int32_t> s16;  // pairs
  // Only where the processor has them (mr > 0), and only in Panels and RowGemm:
  MicroTable<float> bf16;  // pairs, whose products and sums flush subnormal numbers to zero
  // f32 in three parts of bf16, which hold all of it (gemm_thirds.inc); only in Panels. Partial sums are scaled.
  MicroTable<float> thirds;
  MicroTable<int32_t> bytes[2][2];  // four of them; [is A unsigned][is B]
  // Rounded to nearest, ties to even.
  void (*store_bf16)(int64_t n, const float* from, uint16_t* to);
  void (*store_f16)(int64_t n, const float* from, uint16_t* to);
  // The least exponent field of n bf16 that are not zero; 255 if all are.
  int (*least_exponent)(int64_t n, const uint16_t* codes);
};

const GemmIsa& GemmBaseline();
const GemmIsa& GemmAvx2();        // x86 only
const GemmIsa& GemmAvx512();      // x86 only
const GemmIsa& GemmAvx512Vnni();  // x86 only
const GemmIsa& GemmAvx512Bf16();  // x86 only
const GemmIsa& GemmAvx512Amx();   // x86 only
// The best that this processor runs.
const GemmIsa& BestGemmIsa();
// The same without f32 in parts, whose zeros are not looked for (gemm_zeros.h).
const GemmIsa& BestGemmIsaOfVectors();
// All that this processor runs, the best last; returns how many. For tests.
inline constexpr int kMostGemmIsas = 6;
int GemmIsas(const GemmIsa* (&isas)[kMostGemmIsas]);

}  // namespace strop::cpu
