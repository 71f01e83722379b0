// AMX: products of whole matrices, of bf16 in pairs and of bytes in fours, sixteen rows by sixteen columns by sixteen
// units along k an instruction (Intel's Architecture Instruction Set Extensions Programming Reference, chapter 3). Four
// such squares of sums are kept at a time; panels of A hold the rows of a step side by side, as an instruction reads
// them. The rest is gemm_avx512_bf16.cc's.
#if defined(__AMX_TILE__) && defined(__AVX512BF16__)
#include <type_traits>
#include <utility>

#include "strop/base/lane_shuffle.h"
#include "strop/cpu/kernels/gemm_micro.h"

#include <immintrin.h>

#define STROP_VECTOR_BYTES 64

namespace strop::cpu {
namespace avx512_amx {

#include "strop/cpu/kernels/gemm_pack.inc"

constexpr int kSide = 16;         // of a square, in rows, columns and units
constexpr int kLine = kSide * 4;  // bytes of a row of it
constexpr int kSquare = kSide * kLine;

// What is multiplied.
enum class Units { Bf16, SignedSigned, UnsignedSigned, SignedUnsigned, UnsignedUnsigned };

template <Units kUnits>
using SumOf = std::conditional_t<kUnits == Units::Bf16, float, int32_t>;

// Sums 0 to 3: those of the first rows and of the next ones, by the first columns and by the next ones. 4 and 5 are
// rows, 6 and 7 columns. The numbers are part of the instructions.
template <Units kUnits, int kSum, int kRows, int kColumns>
__attribute__((always_inline)) static inline void Multiply() {
#define STROP_MULTIPLY(sum, rows, columns)                                             \
  if constexpr (kSum == sum && kRows == rows && kColumns == columns) {                 \
    if constexpr (kUnits == Units::Bf16) _tile_dpbf16ps(sum, rows, columns);           \
    if constexpr (kUnits == Units::SignedSigned) _tile_dpbssd(sum, rows, columns);     \
    if constexpr (kUnits == Units::UnsignedSigned) _tile_dpbusd(sum, rows, columns);   \
    if constexpr (kUnits == Units::SignedUnsigned) _tile_dpbsud(sum, rows, columns);   \
    if constexpr (kUnits == Units::UnsignedUnsigned) _tile_dpbuud(sum, rows, columns); \
  }
  STROP_MULTIPLY(0, 4, 6)
  STROP_MULTIPLY(1, 4, 7)
  STROP_MULTIPLY(2, 5, 6)
  STROP_MULTIPLY(3, 5, 7)
#undef STROP_MULTIPLY
}

template <int kDown, int kAcross>
static inline void LoadSums(const char* c, int64_t stride) {
  asm volatile("" : : : "memory");  // GCC 12 does not know that these instructions read what was written before
  _tile_loadd(0, c, stride);
  if constexpr (kAcross > 1) _tile_loadd(1, c + kLine, stride);
  if constexpr (kDown > 1) _tile_loadd(2, c + kSide * stride, stride);
  if constexpr (kDown > 1 && kAcross > 1) _tile_loadd(3, c + kSide * stride + kLine, stride);
}

template <int kDown, int kAcross>
static inline void ClearSums() {
  _tile_zero(0);
  if constexpr (kAcross > 1) _tile_zero(1);
  if constexpr (kDown > 1) _tile_zero(2);
  if constexpr (kDown > 1 && kAcross > 1) _tile_zero(3);
}

template <int kDown, int kAcross>
static inline void StoreSums(char* c, int64_t stride) {
  _tile_stored(0, c, stride);
  if constexpr (kAcross > 1) _tile_stored(1, c + kLine, stride);
  if constexpr (kDown > 1) _tile_stored(2, c + kSide * stride, stride);
  if constexpr (kDown > 1 && kAcross > 1) _tile_stored(3, c + kSide * stride + kLine, stride);
}

// Squares that are not full read what lies behind them, and their last rows of sums mean nothing.
template <Units kUnits, int kDown, int kAcross>
__attribute__((always_inline)) static inline void MultiplyStep(const char* a, int64_t a_line, const char* b,
                                                               int64_t b_line) {
  _tile_loadd(6, b, b_line);
  _tile_loadd(4, a, a_line);
  Multiply<kUnits, 0, 4, 6>();
  if constexpr (kAcross > 1) {
    _tile_loadd(7, b + kLine, b_line);
    Multiply<kUnits, 1, 4, 7>();
  }
  if constexpr (kDown > 1) {
    _tile_loadd(5, a + kSide * a_line, a_line);
    Multiply<kUnits, 2, 5, 6>();
    if constexpr (kAcross > 1) Multiply<kUnits, 3, 5, 7>();
  }
}

// Whole lines of rows.
template <int kLines>
static inline void CopyRows(int64_t rows, const char* from, int64_t from_stride, char* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
#pragma GCC unroll 2
    for (int i = 0; i < kLines; ++i) _mm512_storeu_si512(to + i * kLine, _mm512_loadu_si512(from + i * kLine));
  }
}

// Sums, of which none is subnormal, rounded to bf16. (The instruction would flush them.)
template <int kLines>
static inline void StoreHalves(int64_t rows, const char* from, uint16_t* to, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, from += kLines * kLine, to += stride) {
    const __m512 first = _mm512_load_ps(from);
    if constexpr (kLines > 1)
      _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_load_ps(from + kLine), first)));
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(first)));
  }
}

// What a tile asks for, some of it at each step, so that it comes in time without keeping what a step reads waiting.
class Ahead {
 public:
  template <class T>
  Ahead(const StepTile<T>& t, int64_t steps, int64_t row_bytes, int64_t asked_bytes)
      : next_(static_cast<const char*>(t.next)),
        next_end_(next_ + t.next_lines * kLine),
        next_step_(steps > 0 ? (t.next_lines + steps - 1) / steps * kLine : 0),
        row_(static_cast<char*>(t.to)),
        rows_end_(row_ + (t.asks_for_rows ? t.rows * row_bytes : 0)),
        rows_step_(steps > 0 ? (t.rows + steps - 1) / steps * row_bytes : 0),
        row_bytes_(row_bytes),
        asked_bytes_(asked_bytes) {}
  __attribute__((always_inline)) void Step() {
    for (const char* end = next_ + next_step_; next_ < end && next_ < next_end_; next_ += kLine)
      __builtin_prefetch(next_, 0, 2);
    for (const char* end = row_ + rows_step_; row_ < end && row_ < rows_end_; row_ += row_bytes_)
      for (int64_t i = 0; i < asked_bytes_; i += kLine) __builtin_prefetch(row_ + i, 1, 3);
  }

 private:
  const char *next_, *const next_end_;
  const int64_t next_step_;
  char *row_, *const rows_end_;
  const int64_t rows_step_, row_bytes_, asked_bytes_;
};

template <Units kUnits, int kDown, int kAcross>
static bool MultiplyTile(const StepTile<SumOf<kUnits>>& t) {
  constexpr int64_t kWidth = kAcross * kLine;
  const char *a = reinterpret_cast<const char*>(t.a), *b = reinterpret_cast<const char*>(t.b);
  const int64_t a_line = t.a_stride > 0 ? t.a_stride * 4 : kLine, a_step = t.a_step > 0 ? t.a_step * 4 : t.rows * kLine;
  const int64_t b_line = t.b_stride * 4, steps = t.units / kSide;
  const int64_t row_bytes = t.stride * (t.halves ? 2 : 4);
  Ahead ahead(t, steps, row_bytes, t.halves ? kWidth / 2 : kWidth);
  alignas(64) char apart[kDown * kAcross * kSquare];  // of squares that are not full, and of what is converted
  const bool full = t.rows == kDown * kSide;
  const char* before = reinterpret_cast<const char*>(t.before);
  int64_t before_bytes = t.before_stride * 4;
  if (before && !full) {
    CopyRows<kAcross>(t.rows, before, before_bytes, apart, kWidth);
    before = apart, before_bytes = kWidth;
  }
  if (before)
    LoadSums<kDown, kAcross>(before, before_bytes);
  else
    ClearSums<kDown, kAcross>();
  for (int64_t s = 0; s < steps; ++s, a += a_step, b += kSide * b_line) {
    ahead.Step();
    MultiplyStep<kUnits, kDown, kAcross>(a, a_line, b, b_line);
  }
  if (full && !t.halves) {
    StoreSums<kDown, kAcross>(static_cast<char*>(t.to), row_bytes);
    return true;
  }
  StoreSums<kDown, kAcross>(apart, kWidth);
  if (t.halves)
    StoreHalves<kAcross>(t.rows, apart, static_cast<uint16_t*>(t.to), t.stride);
  else
    CopyRows<kAcross>(t.rows, apart, kWidth, static_cast<char*>(t.to), row_bytes);
  return true;
}

template <Units kUnits, int kAcross>
static bool Tile(const StepTile<SumOf<kUnits>>& tile) {
  return tile.rows > kSide ? MultiplyTile<kUnits, 2, kAcross>(tile) : MultiplyTile<kUnits, 1, kAcross>(tile);
}

// Pairs of two rows of 32 bf16, or fours of four rows of 32 bytes: what belongs to 32 columns.
static inline void StorePairs(const int16_t* rows, int64_t stride, int32_t* dst) {
  const __m512i x = _mm512_loadu_si512(rows), y = _mm512_loadu_si512(rows + stride);
  // Halves of lines of 16 bytes come apart, in turn.
  const __m512i low = _mm512_unpacklo_epi16(x, y), high = _mm512_unpackhi_epi16(x, y);
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  _mm512_storeu_si512(dst, _mm512_permutex2var_epi64(low, first, high));
  _mm512_storeu_si512(dst + kSide, _mm512_permutex2var_epi64(low, second, high));
}
static inline void StoreFours(const int8_t* rows, int64_t stride, int32_t* dst) {
  const auto row = [=](int r) __attribute__((always_inline)) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + r * stride));
  };
  const __m256i low = _mm256_unpacklo_epi8(row(0), row(1)), high = _mm256_unpackhi_epi8(row(0), row(1));
  const __m256i next_low = _mm256_unpacklo_epi8(row(2), row(3)), next_high = _mm256_unpackhi_epi8(row(2), row(3));
  const __m256i fours[4] = {_mm256_unpacklo_epi16(low, next_low), _mm256_unpackhi_epi16(low, next_low),
                            _mm256_unpacklo_epi16(high, next_high), _mm256_unpackhi_epi16(high, next_high)};
  for (int i = 0; i < 2; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 8 * i),
                        _mm256_permute2x128_si256(fours[2 * i], fours[2 * i + 1], 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + kSide + 8 * i),
                        _mm256_permute2x128_si256(fours[2 * i], fours[2 * i + 1], 0x31));
  }
}

// Columns of B, in whole steps.
template <class S, int kGroup>
static void PackColumns(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc,
                        int64_t width, int32_t* dst) {
  const int64_t units = (kc + kGroup - 1) / kGroup, whole = (units + kSide - 1) / kSide * kSide;
  int32_t* const end = dst + whole * width;
  if (vector_stride == 1 && count == 2 * kSide && width == count) {
    const S* rows = static_cast<const S*>(from);
    for (; kc >= kGroup; kc -= kGroup, rows += kGroup * k_stride, dst += width) {
      if constexpr (kGroup == 2)
        StorePairs(reinterpret_cast<const int16_t*>(rows), k_stride, dst);
      else
        StoreFours(reinterpret_cast<const int8_t*>(rows), k_stride, dst);
    }
    from = rows;
  }
  if (kc > 0) Pack<int32_t, S, kGroup>(from, vector_stride, k_stride, count, kc, width, dst);
  for (dst = end - (whole - units) * width; dst < end; ++dst) *dst = 0;
}

// Rows of A, those of a step side by side.
template <class S, int kGroup>
static void PackRowsOfSteps(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc,
                            int64_t width, int32_t* dst) {
  const S* const data = static_cast<const S*>(from);
  constexpr int64_t kStep = kSide * kGroup;
  constexpr int64_t kTogether = 4;  // steps of a row that are read at once
  if (k_stride == 1) {
    for (int64_t k0 = 0; k0 < kc; k0 += kTogether * kStep, dst += kTogether * width * kSide)
      for (int64_t v = 0; v < width; ++v) {
        int32_t* to = dst + v * kSide;
        const S* const row = data + v * vector_stride;
        const int64_t end = kc < k0 + kTogether * kStep ? kc : k0 + kTogether * kStep;
        for (int64_t k = k0; k < end; k += kStep, to += width * kSide) {
          __m512i line = _mm512_setzero_si512();
          if (v < count && end - k >= kStep)
            line = _mm512_loadu_si512(row + k);
          else if (v < count)
            line = _mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - (end - k) * static_cast<int64_t>(sizeof(S))), row + k);
          _mm512_store_si512(to, line);
        }
      }
    return;
  }
  for (int64_t k = 0; k < kc; k += kStep, dst += width * kSide) {
    const int64_t left = kc - k < kStep ? kc - k : kStep;
    for (int64_t v = 0; v < width; v += kSide) {
      const int64_t rows = width - v < kSide ? width - v : kSide, some = count - v < rows ? count - v : rows;
      // Columns first, as packing turns them; a vector more than a square may be written.
      alignas(64) int32_t square[kSide * kSide + kSide];
      if (some > 0)
        Pack<int32_t, S, kGroup>(data + v * vector_stride + k * k_stride, vector_stride, k_stride, some, left, kSide,
                                 square);
      VS32 lines[kSide];
      const int64_t units = some > 0 ? (left + kGroup - 1) / kGroup : 0;
      for (int64_t p = 0; p < kSide; ++p)
        lines[p] = p < units ? *reinterpret_cast<const VS32*>(square + p * kSide) : VS32{};
      TransposeLanes(lines);
      for (int64_t r = 0; r < rows; ++r) StoreVector<int32_t>(dst + (v + r) * kSide, lines[r]);
    }
  }
}

template <class T>
static void PackLines(const uint8_t* const* rows, int64_t count, int64_t bytes, T* dst) {
  for (int64_t at = 0; at < bytes; at += kLine) {
    const int64_t left = bytes - at;
    const uint64_t mask = left >= kLine ? ~uint64_t{0} : ~uint64_t{0} >> (kLine - left);
    for (int64_t v = 0; v < count; ++v, dst += kSide)
      _mm512_store_si512(dst, rows[v] ? _mm512_maskz_loadu_epi8(mask, rows[v] + at) : _mm512_setzero_si512());
  }
}

template <class T, class S, int kGroup>
static void PackColumnsAs(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc,
                          int64_t width, T* dst) {
  PackColumns<S, kGroup>(from, vector_stride, k_stride, count, kc, width, reinterpret_cast<int32_t*>(dst));
}
template <class T, class S, int kGroup>
static void PackRowsAs(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc,
                       int64_t width, T* dst) {
  PackRowsOfSteps<S, kGroup>(from, vector_stride, k_stride, count, kc, width, reinterpret_cast<int32_t*>(dst));
}

// All squares are full ones: to describe them again takes longer than to multiply what means nothing.
struct alignas(64) Description {
  uint8_t palette = 1, first_row = 0, reserved[14] = {};
  uint16_t line_bytes[16] = {};
  uint8_t lines[16] = {};
};
constexpr Description DescribeSquares() {
  Description squares;
  for (int i = 0; i < 8; ++i) squares.line_bytes[i] = kLine, squares.lines[i] = kSide;
  return squares;
}
// In memory as a whole: GCC 12 takes it that the instruction reads but a pointer.
static constinit Description squares = DescribeSquares();

static void Begin() {
  asm volatile("" : : : "memory");
  _tile_loadconfig(&squares);
}
static void End() { _tile_release(); }

template <Units kUnits>
static MicroTable<SumOf<kUnits>> Kernels() {
  MicroTable<SumOf<kUnits>> t;
  t.mr = t.nr = 2 * kSide;
  t.lanes = t.step = kSide;
  t.group = kUnits == Units::Bf16 ? 2 : 4;
  t.begin = &Begin;
  t.end = &End;
  t.pack_lines = &PackLines<SumOf<kUnits>>;
  t.steps[0] = &Tile<kUnits, 1>;
  t.steps[1] = &Tile<kUnits, 2>;
  return t;
}

template <Units kUnits>
static MicroTable<int32_t> OfBytes() {
  MicroTable<int32_t> t = Kernels<kUnits>();
  t.pack[static_cast<int>(PackSource::S8)] = &PackColumnsAs<int32_t, int8_t, 4>;
  t.pack[static_cast<int>(PackSource::U8)] = &PackColumnsAs<int32_t, uint8_t, 4>;
  t.pack_a[static_cast<int>(PackSource::S8)] = &PackRowsAs<int32_t, int8_t, 4>;
  t.pack_a[static_cast<int>(PackSource::U8)] = &PackRowsAs<int32_t, uint8_t, 4>;
  return t;
}

static MicroTable<float> OfPairs() {
  MicroTable<float> t = Kernels<Units::Bf16>();
  t.pack[static_cast<int>(PackSource::BF16)] = &PackColumnsAs<float, int16_t, 2>;
  t.pack_a[static_cast<int>(PackSource::BF16)] = &PackRowsAs<float, int16_t, 2>;
  return t;
}

#include "strop/cpu/kernels/gemm_thirds.inc"

}  // namespace avx512_amx

const GemmIsa& GemmAvx512Amx() {
  static const GemmIsa kIsa = [] {
    GemmIsa isa = GemmAvx512Bf16();
    isa.name = "avx512_amx";
    isa.bf16 = avx512_amx::OfPairs();
    isa.thirds = avx512_amx::OfThirds();
    isa.bytes[0][0] = avx512_amx::OfBytes<avx512_amx::Units::SignedSigned>();
    isa.bytes[0][1] = avx512_amx::OfBytes<avx512_amx::Units::SignedUnsigned>();
    isa.bytes[1][0] = avx512_amx::OfBytes<avx512_amx::Units::UnsignedSigned>();
    isa.bytes[1][1] = avx512_amx::OfBytes<avx512_amx::Units::UnsignedUnsigned>();
    return isa;
  }();
  return kIsa;
}

}  // namespace strop::cpu
#endif
