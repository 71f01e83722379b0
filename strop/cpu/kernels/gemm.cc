#include "strop/cpu/kernels/gemm.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_zeros.h"

namespace strop::cpu {

ElementType GemmAccumulator(ElementType a, ElementType b, ElementType c) {
  auto wide = [](ElementType t) { return t == ElementType::F64 || t == ElementType::C128; };
  if (IsComplex(a) || IsComplex(b) || IsComplex(c))
    return wide(a) || wide(b) || wide(c) ? ElementType::C128 : ElementType::C64;
  if (IsFloat(a) || IsFloat(b) || IsFloat(c))
    return wide(a) || wide(b) || wide(c) ? ElementType::F64 : ElementType::F32;
  if (!IsArrayType(a) || !IsArrayType(b)) return ElementType::Invalid;
  return Bits(a) == 64 || Bits(b) == 64 || Bits(c) == 64 ? ElementType::S64 : ElementType::S32;
}

// ---- blocks
// -----------------------------------------------------------------------------------------------------------

BlockShape ChooseBlocks(int64_t m, int64_t n, int64_t k, int mr, int nr, int bytes, int64_t batch) {
  // A block of A (mb x kb) and of B (kb x nb) share the L2 cache (1 MB a core on current servers) with room to spare.
  BlockShape block;
  const int64_t kb_max = 1024 / bytes;  // 256 for f32
  block.kb = std::max<int64_t>(1, CeilDiv(k, CeilDiv(std::max<int64_t>(k, 1), kb_max)));
  if (k > block.kb) block.kb = RoundUp(block.kb, 4);  // whole units
  int64_t mb = 144, nb = 512;
  // Enough tasks for many threads, none below about a million multiply-adds: splitting costs packing.
  auto tasks = [&] { return batch * CeilDiv(m, mb) * CeilDiv(n, nb); };
  while (tasks() < 16 && nb > 2 * nr && nb * std::min(m, mb) * k > (int64_t{1} << 21))
    nb = std::max<int64_t>(nb / 2, nr);
  while (tasks() < 16 && mb > 2 * mr && std::min(n, nb) * mb * k > (int64_t{1} << 21))
    mb = std::max<int64_t>(mb / 2, mr);
  // Even blocks, whole tiles.
  block.mb = RoundUp(CeilDiv(m, CeilDiv(m, mb)), mr);
  block.nb = RoundUp(CeilDiv(n, CeilDiv(n, nb)), nr);
  return block;
}

int64_t BlockScratchBytes(const BlockShape& block, int mr, int nr, int bytes) {
  const int64_t panels = mr * block.kb + RoundUp(block.nb, nr) * block.kb;
  const int64_t sums = block.mb * block.nb;  // used if C cannot hold partial sums
  const int64_t notes = CeilDiv(block.nb, nr) * static_cast<int64_t>(sizeof(PanelNote));
  return (panels + sums + mr * nr) * bytes + notes + 5 * kCarverSlack;
}

namespace {
// Rows of a tile, of four bytes an element or eight, are too short for a call.
void CopyRow(const void* from, int64_t bytes, void* to) {
  const auto copy = [&](int64_t at, auto size) {
    std::memcpy(static_cast<uint8_t*>(to) + at, static_cast<const uint8_t*>(from) + at, size.value);
  };
  if (bytes >= 16) {
    for (int64_t i = 0; i + 16 <= bytes; i += 16) copy(i, std::integral_constant<int, 16>{});
    copy(bytes - 16, std::integral_constant<int, 16>{});
  } else if (bytes >= 8) {
    copy(0, std::integral_constant<int, 8>{}), copy(bytes - 8, std::integral_constant<int, 8>{});
  } else if (bytes >= 4) {
    copy(0, std::integral_constant<int, 4>{}), copy(bytes - 4, std::integral_constant<int, 4>{});
  }
}

// The low bits of a row of integers, to every stride-th element. False: not of these types.
template <class T>
bool NarrowRow(const T* from, int64_t n, ElementType type, uint8_t* data, int64_t at, int64_t stride) {
  if (!std::is_integral_v<T> || !IsInteger(type) || (Bits(type) != 8 && Bits(type) != 16)) return false;
  auto narrow = [&](auto* to) {
    using To = std::remove_reference_t<decltype(*to)>;
    if (stride == 1)
      for (int64_t j = 0; j < n; ++j) to[at + j] = static_cast<To>(from[j]);
    else
      for (int64_t j = 0; j < n; ++j) to[at + j * stride] = static_cast<To>(from[j]);
  };
  if (Bits(type) == 8)
    narrow(data);
  else
    narrow(reinterpret_cast<uint16_t*>(data));
  return true;
}

// What stores rows of f32 as halves; null: not of this type.
auto HalvesStore(ElementType type) -> void (*)(int64_t, const float*, uint16_t*) {
  if (type == ElementType::BF16) return BestGemmIsa().store_bf16;
  if (type == ElementType::F16) return BestGemmIsa().store_f16;
  return nullptr;
}

// Of C whose rows lie side by side, turned in registers, a square at a time. False: not of these types.
constexpr int64_t kTurned = 256;  // elements that are worth it
template <class T>
bool StoreTurned(const StoreTarget& c, int64_t row, int64_t col, int64_t rows, int64_t cols, const T* tile,
                 int64_t tile_stride) {
  constexpr int64_t kSide = 64;
  const bool same = HoldsSums<T>(c.type);
  const auto halves = std::is_same_v<T, float> ? HalvesStore(c.type) : nullptr;
  const PackPanel<T> pack = PackerOf(MicroOf<T>(BestGemmIsa()), ElementTypeOf<T>());
  if (!pack || (!same && !halves)) return false;
  alignas(64) T turned[kSide * kSide + kPanelSlack];
  for (int64_t r = 0; r < rows; r += kSide) {
    const int64_t height = std::min(kSide, rows - r);
    const int64_t at = (c.rows ? c.rows[row + r - c.first_row] : (row + r) * c.row_stride) + col * c.col_stride;
    for (int64_t j = 0; j < cols; j += kSide) {
      const int64_t width = std::min(kSide, cols - j);
      pack(tile + r * tile_stride + j, tile_stride, 1, height, width, height, turned);
      for (int64_t k = 0; k < width; ++k) {
        const T* const from = turned + k * height;
        const int64_t to = at + (j + k) * c.col_stride;
        if constexpr (std::is_same_v<T, float>) {
          if (halves) {
            halves(height, from, reinterpret_cast<uint16_t*>(c.data) + to);
            continue;
          }
        }
        std::memcpy(reinterpret_cast<T*>(c.data) + to, from, static_cast<size_t>(height) * sizeof(T));
      }
    }
  }
  return true;
}

bool FitS32(int64_t n, const float* numbers) {
  bool fit = true;
  for (int64_t j = 0; j < n; ++j) fit &= numbers[j] >= -0x1p31f && numbers[j] < 0x1p31f;
  return fit;
}
}  // namespace

template <class T>
void StoreTile(const StoreTarget& c, int64_t row, int64_t col, int64_t rows, int64_t cols, const T* tile,
               int64_t tile_stride, bool accumulate) {
  const bool same = HoldsSums<T>(c.type);
  if (!accumulate && c.col_stride != 1 && RowsFollow(c, row, rows)) {  // along memory
    if (rows * cols >= kTurned && StoreTurned<T>(c, row, col, rows, cols, tile, tile_stride)) return;
    T* to = AddressIn<T>(c, row, 0) + col * c.col_stride;
    for (int64_t j = 0; j < cols && same; ++j, to += c.col_stride)
      for (int64_t r = 0; r < rows; ++r) to[r] = tile[r * tile_stride + j];
    if (same) return;
  }
  const auto store = c.col_stride == 1 ? HalvesStore(c.type) : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = tile + r * tile_stride;
    const int64_t base = (c.rows ? c.rows[row + r - c.first_row] : (row + r) * c.row_stride) + col * c.col_stride;
    if constexpr (std::is_same_v<T, float>) {
      if (store) {
        store(cols, from, reinterpret_cast<uint16_t*>(c.data) + base);
        continue;
      }
      if (c.col_stride == 1 && c.type == ElementType::S32 && FitS32(cols, from)) {
        int32_t* to = reinterpret_cast<int32_t*>(c.data) + base;
        for (int64_t j = 0; j < cols; ++j) to[j] = static_cast<int32_t>(from[j]);
        continue;
      }
    }
    if (!same) {
      if (NarrowRow(from, cols, c.type, c.data, base, c.col_stride)) continue;
      for (int64_t j = 0; j < cols; ++j) StoreAs<T>(c.type, c.data, base + j * c.col_stride, from[j]);
      continue;
    }
    T* to = reinterpret_cast<T*>(c.data) + base;
    if (c.col_stride == 1) {
      if (accumulate)
        for (int64_t j = 0; j < cols; ++j) to[j] += from[j];
      else
        CopyRow(from, cols * static_cast<int64_t>(sizeof(T)), to);
    } else {
      for (int64_t j = 0; j < cols; ++j) {
        T& at = to[j * c.col_stride];
        at = accumulate ? at + from[j] : from[j];
      }
    }
  }
}

template <class T>
void RunBlock(const MicroTable<T>& micro, const BlockShape& block, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
              int64_t k, const PackFn<T>& pack_a, const PackFn<T>& pack_b, const StoreTarget& c, void* scratch) {
  const int64_t mr = micro.mr, nr = micro.nr, group = micro.group;
  Carver carver(scratch);
  T* a_panel = carver.Take<T>(mr * block.kb);
  T* b_panels = carver.Take<T>(RoundUp(block.nb, nr) * block.kb);
  T* tile = carver.Take<T>(mr * nr);
  T* sums = carver.Take<T>(block.mb * block.nb);
  PanelNote* notes = carver.Take<PanelNote>(CeilDiv(block.nb, nr));  // of B's panels
  const bool finds_zeros = FindsZeros(micro), keep_sums = k > block.kb && !HoldsSums<T>(c.type);
  if (k == 0) {
    std::memset(tile, 0, mr * nr * sizeof(T));
    for (int64_t i = 0; i < rows; i += mr)
      for (int64_t j = 0; j < cols; j += nr)
        StoreTile<T>(c, m0 + i, n0 + j, std::min(mr, rows - i), std::min(nr, cols - j), tile, nr, false);
    return;
  }
  const EvenPanels panels(rows, mr);
  // As narrow as what is left: the halves of tiles do not depend on their height.
  const auto width_at = [&](int64_t j) { return TileKernelsOf<T>(micro, 1, std::min(nr, cols - j)).width; };
  for (int64_t k0 = 0; k0 < k; k0 += block.kb) {
    const int64_t kc = std::min(block.kb, k - k0), units = CeilDiv(kc, group);
    const int64_t piece = block.pack_rows > 0 ? block.pack_rows : kc;
    for (int64_t p = 0; p < kc; p += piece)
      for (int64_t j = 0; j < cols; j += nr) {
        const int64_t width = width_at(j);
        pack_b(n0 + j, std::min(width, cols - j), k0 + p, std::min(piece, kc - p), width,
               b_panels + j * units + p / group * width);
      }
    for (int64_t j = 0; j < cols && finds_zeros; j += nr)
      notes[j / nr] = {ExtentOfPanel(b_panels + j * units, units, width_at(j))};
    for (int64_t n = 0; n < panels.count; ++n) {
      const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
      pack_a(m0 + i, height, k0, kc, height, a_panel);
      PanelNote note;
      if (finds_zeros) note.extent = ExtentOfPanel(a_panel, units, height);
      const int64_t direct = DirectStride<T>(c, m0 + i, height);
      for (int64_t j = 0; j < cols; j += nr) {
        const T* b = b_panels + j * units;
        const int64_t some = std::min(nr, cols - j);
        const TileKernels<T> tile_kernels = TileKernelsOf<T>(micro, height, some);
        Extent needed{0, static_cast<int32_t>(units)};
        if (finds_zeros)
          needed = NeededOf<T>(micro, {a_panel, units, height, &note}, {b, units, tile_kernels.width, notes + j / nr});
        const auto multiply = [&](T* to, int64_t stride, bool accumulate) {
          if (needed.size() <= 0 && accumulate) return;
          const int64_t from = needed.size() > 0 ? needed.first : 0;  // zeros have to be written
          tile_kernels.kernel(std::max<int64_t>(needed.size(), 1), a_panel + from * height,
                              b + from * tile_kernels.width, tile_kernels.width, to, stride, accumulate);
        };
        if (keep_sums) {
          multiply(sums + i * block.nb + j, block.nb, k0 > 0);
        } else if (direct >= 0 && some == tile_kernels.width) {
          multiply(AddressIn<T>(c, m0 + i, n0 + j), direct, k0 > 0);
        } else {
          multiply(tile, nr, false);
          StoreTile<T>(c, m0 + i, n0 + j, height, some, tile, nr, k0 > 0);
        }
      }
    }
  }
  if (keep_sums) StoreTile<T>(c, m0, n0, rows, cols, sums, block.nb, false);
}

// ---- strided matrices
// ---------------------------------------------------------------------------------------------------

PackSource PackSourceOf(ElementType type) {
  switch (type) {
    case ElementType::F32: return PackSource::F32;
    case ElementType::F64: return PackSource::F64;
    case ElementType::BF16: return PackSource::BF16;
    case ElementType::F16: return PackSource::F16;
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8: return PackSource::S8;
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8: return PackSource::U8;
    case ElementType::S16: return PackSource::S16;
    case ElementType::S32:
    case ElementType::U32: return PackSource::S32;
    case ElementType::S64:
    case ElementType::U64: return PackSource::S64;
    default: return PackSource::None;
  }
}

namespace {

// Many columns of A, which lie in rows, by few of B: the rows are long, and read as they lie by the transpose.
bool AreFewColumnsOfRows(const GemmProblem& p) {
  constexpr int64_t kFewColumns = 12, kManyRows = 96, kLeastSums = 64;
  return p.a.type == p.b.type && (p.a.type == ElementType::F32 || p.a.type == ElementType::F64) && p.n <= kFewColumns &&
         p.m > kManyRows && p.k >= kLeastSums && p.a.row_stride == 1 && p.a.col_stride != 1;
}

// Rows of A by as many columns of B as tiles have, both where they lie: as dot products, each element of B would be
// read for one row of A at a time. Rows that meet in the same lines of the cache would have to be packed.
bool AreTallByATile(const GemmIsa& isa, const GemmProblem& p) {
  constexpr int64_t kTileColumns = 16, kTallRows = 256, kTallBytes = 1 << 18;
  // Wide tiles, if most of their columns are there, and B with them stays in the cache (gemm_thin.cc).
  const bool wide = p.a.type == ElementType::F32 && !HasNarrowVectors(isa.f32) && p.n <= isa.f32.nr &&
                    8 * p.n > 5 * isa.f32.nr && p.m >= kTallRows && p.k * isa.f32.nr * 4 <= kTallBytes;
  return p.n > kLongDotRows && (p.n <= kTileColumns || wide) && p.b.col_stride == 1 && p.a.col_stride == 1 &&
         (wide || !MeetInSets(p.a.row_stride * Bytes(p.a.type)));
}

// As AreDots; processors with wide vectors have room for more of A in the second-level cache.
bool AreDotsOf(const GemmIsa& isa, const GemmProblem& p, int64_t rows) {
  constexpr int64_t kDotRowsBytes = 1 << 19;
  if (AreDots(p, rows)) return true;
  const bool typed = p.a.type == p.b.type && (p.a.type == ElementType::F32 || p.a.type == ElementType::F64);
  return typed && !HasNarrowVectors(isa.f32) && rows <= kMostDotRows && p.k >= kLeastDotElements &&
         rows * p.k * Bytes(p.a.type) <= kDotRowsBytes;
}

// Is it better to compute the transpose, which has few rows? Complex results that lie along columns are so written
// along memory.
bool SuitsSwapped(const GemmIsa& isa, const GemmProblem& p, ElementType accumulator) {
  if (IsComplex(accumulator)) {
    if (p.b.row_stride == 1 && p.b.type == accumulator && AreComplexDots(p, p.m) && p.m <= p.n) return false;
    const bool dots = (p.a.col_stride == 1 || p.a.row_stride == 1) && p.a.type == accumulator && AreComplexDots(p, p.n);
    return (p.n == 1 && p.m > 1) || (dots && p.n < p.m) || (p.c.col_stride != 1 && p.c.row_stride == 1);
  }
  if (p.m > p.n && p.n <= kDotRows) return !AreFewShortColumns(p);
  if (AreFewColumnsOfRows(p)) return true;
  if (AreTallByATile(isa, p)) return false;
  const bool dots_already = p.b.row_stride == 1 && AreDotsOf(isa, p, p.m);
  return p.m >= p.n && p.k >= kLeastDotElements && p.a.col_stride == 1 && !dots_already && AreDotsOf(isa, p, p.n);
}

// How B is read, and with it the rest.
//   Blocked: A and B are packed in blocks.
//   Direct: B is read where it lies, a few rows at a time: there are few rows of A, or few terms of a sum, so that
//     packing it would be much of the work, or B is small enough for the cache and dense (then rows of A are read where
//     they lie, too). Elements of another type are converted in strips on the way.
//   Strips: as Direct, with B read along its rows, a few of them at a time: there are so few rows of A that memory is
//   all
//     there is to wait for, or tiles would read B no better (MostStripRows).
//   Dots: few rows of A, and B is contiguous along k.
enum class Strategy : uint8_t { Blocked, Direct, Strips, Dots };

template <class T>
class RealGemm final : public Gemm {
 public:
  RealGemm(const GemmProblem& p, const GemmIsa& isa) : p_(p), micro_(MicroOf<T>(isa, p.a.type, p.b.type)) {
    const int64_t mr = micro_.mr, nr = micro_.nr;
    const bool has_rows = p.b.col_stride == 1 && p.k > 0;
    typed_ = p.b.type == ElementTypeOf<T>() && micro_.group == 1;
    const bool few = AreDotsOf(isa, p, p.m);
    const bool dots = few && p.b.row_stride == 1 && p.k > 0 && (p.b.col_stride != 1 || p.n == 1) && DotOf();
    if (dots)
      strategy_ = Strategy::Dots;
    else if (has_rows && StripOf())
      strategy_ = Strategy::Strips;
    else if (has_rows && (p.m <= (typed_ ? kFewPanels : 1) * mr || HasShortSums()))
      strategy_ = Strategy::Direct;
    else if (has_rows && typed_ && p.k * p.n <= kSmall && p.b.row_stride < 2 * p.n)
      strategy_ = Strategy::Direct;
    const int64_t column_bytes = std::max<int64_t>(1, p.k * Bytes(p.b.type));
    // Rows that meet in the same lines of the cache would be gone again before they are written.
    fetches_c_ = p.batch * p.m * p.n * Bytes(p.c.type) > kCachedBytes && !MeetInSets(p.c.row_stride * Bytes(p.c.type));
    switch (strategy_) {
      case Strategy::Blocked:
        block_ = ChooseBlocks(p.m, p.n, p.k, micro_.mr, micro_.nr, sizeof(T), p.batch);
        if (p.b.col_stride == 1) block_.pack_rows = 8;  // as memory lies
        scratch_bytes_ = BlockScratchBytes(block_, micro_.mr, micro_.nr, sizeof(T));
        break;
      case Strategy::Direct: {
        block_.mb = p.m;
        block_.nb = p.n;
        const bool few = p.m <= kFewPanels * mr, brief = !few && HasShortSums();
        packs_strips_ = brief && MeetInSets(p.b.row_stride * static_cast<int64_t>(sizeof(T)));
        if (brief) {
          block_.nb = RoundUp(CeilDiv(p.n, CeilDiv(p.n, kBriefColumns)), nr);
          const int64_t down = CeilDiv(kBriefTasks, CeilDiv(p.n, block_.nb));
          block_.mb = std::min(RoundUp(std::max(CeilDiv(p.m, down), kBriefRows), mr), RoundUp(p.m, mr));
        } else if (few) {  // tasks of half a megabyte of B, or of as many products
          const int64_t columns = std::min((int64_t{1} << 19) / column_bytes, CeilDiv(kDirectTask, p.m * p.k));
          block_.nb = std::max({CeilDiv(p.n, 16), columns, kRowBytes / Bytes(p.b.type)});
          const int64_t b_bytes = p.k * p.n * Bytes(p.b.type), bytes = sizeof(T);
          streams_b_ = typed_ && b_bytes > (p.m <= mr ? kLeastStreamedBytes : kCachedBytes / 2);
          if (streams_b_)  // whose sums stay in the first-level cache, for two threads if that is worth while
            block_.nb = std::min(std::clamp(kStripBytes / (p.m * bytes), kRowBytes / bytes, kPageBytes / bytes),
                                 std::max(CeilDiv(p.n, 2), CeilDiv(kDirectTask, p.m * p.k)));
        } else {  // of half a million products
          const int64_t least = (int64_t{1} << 19) / (p.n * p.k);
          block_.mb = std::clamp(CeilDiv(p.m, 16), least, std::max(least, kDirectPanels / p.k));
          // Of an even number of rows: panels may be short, but all tasks the same.
          block_.mb = CeilDiv(p.m, CeilDiv(p.m, block_.mb));
        }
        a_in_place_ = !few && !brief && micro_.indirect[0] && p.a.type == ElementTypeOf<T>() && p.a.col_stride == 1 &&
                      !MeetInSets(p.a.row_stride * static_cast<int64_t>(sizeof(T)));
        if (few) block_.mb = std::min(RoundUp(block_.mb, mr), RoundUp(p.m, mr));
        if (!brief) block_.nb = std::min(RoundUp(block_.nb, 4 * nr), RoundUp(p.n, nr));
        block_.kb = std::min<int64_t>(few ? 512 : p.k, p.k);
        // Eight rows at a distance of pages are what the cache holds. The more rows of A, the more it costs to add to
        // C instead of to registers.
        const bool cached = p.k * p.n * Bytes(p.b.type) <= kCachedBytes / 2;
        block_.pack_rows = !few ? block_.kb : streams_b_ && p.m <= mr ? kStreamedRowsOfB : typed_ || cached ? 64 : 8;
        fetches_b_ = few && p.k * p.n * Bytes(p.b.type) > kCachedBytes / 2;
        const int64_t rows = std::min(block_.mb, p.m);
        scratch_bytes_ =
            (rows * block_.kb + block_.pack_rows * nr + rows * block_.nb) * static_cast<int64_t>(sizeof(T)) +
            3 * kCarverSlack;
        break;
      }
      case Strategy::Strips: {
        block_.mb = p.m;
        block_.kb = std::min<int64_t>(p.k, p.m <= kMemoryRows ? 512 : 128);
        const int64_t columns = std::max((int64_t{1} << 19) / column_bytes, CeilDiv(kDirectTask, p.m * p.k));
        const int64_t sums_bytes = p.m > kFewStripRows ? kStripBytes / 2 : kStripBytes;
        const int64_t cached = std::max<int64_t>(sums_bytes / (p.m * static_cast<int64_t>(sizeof(T))), micro_.nr);
        block_.nb = std::min({RoundUp(std::max({CeilDiv(p.n, 16), columns, kPageBytes / Bytes(p.b.type)}), micro_.nr),
                              cached, RoundUp(p.n, micro_.lanes)});
        scratch_bytes_ =
            p.m * (block_.kb + 2 * (block_.nb + kLine)) * static_cast<int64_t>(sizeof(T)) + 3 * kCarverSlack;
        break;
      }
      case Strategy::Dots:
        block_.mb = p.m;
        block_.nb = std::min(RoundUp(std::max<int64_t>(1, (int64_t{1} << 19) / column_bytes), 4), p.n);
        fetches_b_ = column_bytes <= kFetchedColumnBytes && p.b.col_stride >= 2 * p.k;
        scratch_bytes_ =
            p.m * ((p.k + kDotColumns) * static_cast<int64_t>(sizeof(T)) + kCarverSlack) + 2 * kCarverSlack;
        break;
    }
    down_ = CeilDiv(p.m, block_.mb);
    across_ = CeilDiv(p.n, block_.nb);
    num_tasks_ = p.batch * down_ * across_;
    constexpr const char* kHow[] = {"packed", "B where it lies", "B where it lies, row by row", "dot products"};
    tiles_ = StrCat(kHow[static_cast<int>(strategy_)], ", blocks of ", block_.mb, "x", block_.nb);
    if (block_.kb > 0 && block_.kb < p.k) StrAppend(tiles_, ", k by ", block_.kb);
    if (strategy_ == Strategy::Blocked || strategy_ == Strategy::Direct)
      StrAppend(tiles_, ", ", micro_.mr, "x", micro_.nr, " in registers");
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (int64_t task = begin; task < end; ++task) {
      // Small products take not much longer than divisions.
      const bool whole = down_ * across_ == 1;
      const int64_t batch = whole ? task : task / (down_ * across_);
      const int64_t down = whole ? 0 : task / across_ % down_, across = whole ? 0 : task % across_;
      const uint8_t* pa = static_cast<const uint8_t*>(call.a) + p_.Offset(p_.a, batch) * Bytes(p_.a.type);
      const uint8_t* pb = static_cast<const uint8_t*>(call.b) + p_.Offset(p_.b, batch) * Bytes(p_.b.type);
      StoreTarget target{p_.c.type, static_cast<uint8_t*>(call.c) + p_.Offset(p_.c, batch) * Bytes(p_.c.type),
                         p_.c.row_stride, p_.c.col_stride};
      const int64_t n0 = across * block_.nb, cols = std::min(block_.nb, p_.n - n0);
      const int64_t m0 = down * block_.mb, rows = std::min(block_.mb, p_.m - m0);
      switch (strategy_) {
        case Strategy::Blocked: Blocked(pa, pb, target, m0, rows, n0, cols, scratch); break;
        case Strategy::Direct: Direct(pa, pb, target, m0, rows, n0, cols, scratch); break;
        case Strategy::Strips: Strips(pa, pb, target, n0, cols, scratch); break;
        case Strategy::Dots: Dots(pa, pb, target, n0, cols, scratch); break;
      }
    }
  }

  // Are both operands packed?
  bool blocked() const { return strategy_ == Strategy::Blocked; }
  // Is B read where it lies, tile by tile, because there are few rows or sums of few terms?
  bool few_rows_or_terms() const {
    return strategy_ == Strategy::Direct && (p_.m <= kFewPanels * micro_.mr ? !streams_b_ : HasShortSums());
  }

 private:
  // Each element of B is read for a tile's few steps only: packing it would cost more than its rows being apart.
  bool HasShortSums() const {
    const int64_t bytes = sizeof(T);
    return typed_ && p_.k <= kFewTerms && p_.n >= kBriefColumns && p_.m * p_.k * bytes <= kBriefBytes &&
           p_.m * p_.n * p_.k >= kLeastBrief;
  }
  static constexpr int64_t kFewPanels = 3;   // of rows of A
  static constexpr int64_t kFewTerms = 128;  // of a sum
  // Of a task of short sums: columns, rows at least, and how many tasks there should be.
  static constexpr int64_t kBriefColumns = 256, kBriefRows = 96, kBriefTasks = 16;
  static constexpr int64_t kBriefBytes = 1 << 19;  // of A, which each column of tasks packs
  static constexpr int64_t kLeastBrief = 1 << 22;  // products
  static constexpr int64_t kMostRows = 16;         // of a panel
  static constexpr int64_t kRowBytes = 1024;       // of B's rows, at least, that a task reads
  // Of a strip's rows where memory is waited for: shorter ones miss the translation cache each.
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kStripBytes = 1 << 15;  // of C, that stay in the first-level cache
  static constexpr int64_t kLine = 64 / sizeof(T);
  static constexpr int64_t kStreamedRowsOfB = 16;  // at a time, by more rows of A
  static constexpr int64_t kDirectTask = 1 << 19;  // products of a task of few rows: several times what a thread costs
  static constexpr int64_t kSmall = 1 << 14;       // elements of a small B
  static constexpr int64_t kDirectPanels = 1 << 15;  // of the rows of A that go with it

  static constexpr int64_t kCachedBytes = 1 << 21;  // of C, that may still lie in the second-level cache

  static constexpr int64_t kDotColumns = 64;  // whose sums are stored at a time
  // Short columns that lie apart are no stream that a processor knows: they are asked for so many before their turn.
  static constexpr int64_t kFetchedColumnBytes = 1024, kColumnsAhead = 12;

  DotKernel<T> DotOf() const {
    const PackSource source = PackSourceOf(p_.b.type);
    return source == PackSource::None ? nullptr : micro_.dot[static_cast<int>(source)];
  }

  void PackA(const uint8_t* a, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) const {
    PackStrided<T>(micro_, p_.a.type, a, first * p_.a.row_stride + k0 * p_.a.col_stride, p_.a.row_stride,
                   p_.a.col_stride, count, kc, width, dst);
  }
  void PackB(const uint8_t* b, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) const {
    PackStrided<T>(micro_, p_.b.type, b, first * p_.b.col_stride + k0 * p_.b.row_stride, p_.b.col_stride,
                   p_.b.row_stride, count, kc, width, dst);
  }

  void Blocked(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t m0, int64_t rows, int64_t n0,
               int64_t cols, void* scratch) const {
    PackFn<T> pack_a = [this, a](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackA(a, first, count, k0, kc, width, dst);
    };
    PackFn<T> pack_b = [this, b](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackB(b, first, count, k0, kc, width, dst);
    };
    RunBlock<T>(micro_, block_, m0, rows, n0, cols, p_.k, pack_a, pack_b, c, scratch);
  }

  void Direct(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t m0, int64_t rows, int64_t n0,
              int64_t cols, void* scratch) const {
    const int64_t nr = micro_.nr, group = micro_.group;
    const EvenPanels panels(rows, micro_.mr);
    Carver carver(scratch);
    T* a_panels = carver.Take<T>(rows * block_.kb);
    T* strip = carver.Take<T>(block_.pack_rows * nr);
    T* sums = carver.Take<T>(rows * RoundUp(cols, nr));
    const int64_t direct = DirectStride<T>(c, m0, rows);
    // Where rows of B are read a few at a time, the sums of a block along k are added to what was before.
    const bool adds = streams_b_ && HoldsSums<T>(c.type), in_c = direct >= 0 && !adds;
    // Of a last tile that is wider than its columns the sums are kept, too.
    const int64_t last = (cols - 1) / nr * nr;
    const bool whole = cols - last == TileKernelsOf<T>(micro_, 1, cols - last).width;
    const int64_t sums_from = !in_c ? 0 : whole ? cols : last, sums_stride = RoundUp(cols - sums_from, nr);
    for (int64_t k0 = 0; k0 < p_.k; k0 += block_.kb) {
      const int64_t kc = std::min(block_.kb, p_.k - k0), a_units = CeilDiv(kc, group);
      for (int64_t n = 0; n < panels.count && !a_in_place_; ++n) {
        const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
        PackA(a, m0 + i, height, k0, kc, height, a_panels + i * a_units);
      }
      for (int64_t p = 0; p < kc; p += block_.pack_rows) {
        const int64_t piece = std::min(block_.pack_rows, kc - p), units = CeilDiv(piece, group);
        for (int64_t j = 0; j < cols; j += nr) {
          const int64_t width = TileKernelsOf<T>(micro_, 1, std::min(nr, cols - j)).width;
          const T* panel = strip;
          int64_t panel_stride = width;
          if (typed_ && cols - j >= width && !packs_strips_) {
            panel = reinterpret_cast<const T*>(b) + (k0 + p) * p_.b.row_stride + n0 + j;
            panel_stride = p_.b.row_stride;
            // The next strip comes from memory meanwhile: the rows are too far apart for the processor to see it
            // coming.
            if (fetches_b_ && k0 + p + piece < p_.k)
              FetchRows<false>(panel + piece * panel_stride, panel_stride, std::min(piece, p_.k - k0 - p - piece),
                               width);
          } else {
            PackB(b, n0 + j, std::min(width, cols - j), k0 + p, piece, width, strip);
          }
          const bool in_sums = j >= sums_from;
          T* const to = in_sums ? sums + j - sums_from : AddressIn<T>(c, m0, n0 + j);
          const int64_t stride = in_sums ? sums_stride : direct;
          for (int64_t n = 0; n < panels.count; ++n) {
            const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
            const TileKernels<T> kernels = TileKernelsOf<T>(micro_, height, width);
            if (a_in_place_) {
              const T* lines[kMostRows];
              for (int64_t r = 0; r < height; ++r)
                lines[r] = reinterpret_cast<const T*>(a) + (m0 + i + r) * p_.a.row_stride + k0 + p;
              kernels.indirect(1, piece, lines, panel, panel_stride, to + i * stride, stride, (adds ? p : k0 + p) > 0);
              continue;
            }
            if (fetches_c_ && !in_sums && k0 + p == 0) FetchRows<true>(to + i * stride, stride, height, width);
            kernels.kernel(units, a_panels + i * a_units + p / group * height, panel, panel_stride, to + i * stride,
                           stride, (adds ? p : k0 + p) > 0);
          }
        }
      }
      if (adds) StoreTile<T>(c, m0, n0, rows, cols, sums, sums_stride, k0 > 0);
    }
    if (!adds && sums_from < cols)
      StoreTile<T>(c, m0, n0 + sums_from, rows, cols - sums_from, sums, sums_stride, false);
  }

  // Where nothing is converted, tiles wait for no more than strips do, unless the rows of B meet in the same lines.
  int64_t MostStripRows() const {
    if (!HasNarrowVectors(micro_)) return kFewStripRows;
    if (!typed_) return kMostStripRows;
    return MeetInSets(p_.b.row_stride * static_cast<int64_t>(sizeof(T))) ? kMoreStripRows : kFewStripRows;
  }
  StripKernel<T> StripOf() const {
    const PackSource source = PackSourceOf(p_.b.type);
    if (source == PackSource::None || p_.m > MostStripRows() || micro_.group != 1) return nullptr;
    return micro_.strip[static_cast<int>(source)];
  }

  void Strips(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t n0, int64_t cols, void* scratch) const {
    Carver carver(scratch);
    T* a_panel = carver.Take<T>(p_.m * block_.kb);
    const int64_t size = p_.m * (block_.nb + kLine);
    // Long sums are in levels: those of a block along k are added to what was before.
    T *const sums = carver.Take<T>(size), *const block_sums = p_.k > block_.kb ? carver.Take<T>(size) : nullptr;
    // Many rows of C may meet in the same few lines of the cache; those of the sums do not.
    const int64_t direct = p_.m <= kFewStripRows && !block_sums ? DirectStride<T>(c, 0, p_.m) : -1;
    T* const first = direct >= 0 ? AddressIn<T>(c, 0, n0) : sums;
    const int64_t stride = direct >= 0 ? direct : block_.nb + kLine;
    for (int64_t k0 = 0; k0 < p_.k; k0 += block_.kb) {
      const int64_t kc = std::min(block_.kb, p_.k - k0);
      PackA(a, 0, p_.m, k0, kc, p_.m, a_panel);
      StripOf()(static_cast<int>(p_.m), kc, a_panel, b + (k0 * p_.b.row_stride + n0) * Bytes(p_.b.type),
                p_.b.row_stride, cols, k0 == 0 ? first : block_sums, stride);
      for (int64_t i = 0; i < p_.m && k0 > 0; ++i) AddTerms(sums + i * stride, block_sums + i * stride, cols);
    }
    if (direct < 0) StoreTile<T>(c, 0, n0, p_.m, cols, sums, stride, false);
  }

  // Rows of A, contiguous along k: where they lie, or packed.
  void RowsForDots(const uint8_t* a, Carver& carver, const T** x) const {
    const bool typed = p_.a.type == ElementTypeOf<T>() && micro_.group == 1;
    if (typed && p_.a.col_stride == 1) {
      for (int64_t i = 0; i < p_.m; ++i) x[i] = reinterpret_cast<const T*>(a) + i * p_.a.row_stride;
      return;
    }
    // Where they lie across, the packer is told the other way round: it turns squares of elements at a time.
    T* const packed = carver.Take<T>(p_.m * p_.k);
    if (typed && p_.a.row_stride == 1)
      PackStrided<T>(micro_, p_.a.type, a, 0, p_.a.col_stride, 1, p_.k, p_.m, p_.k, packed);
    const int64_t units = CeilDiv(p_.k, micro_.group);
    for (int64_t i = 0; i < p_.m; ++i) {
      x[i] = packed + i * units;
      if (!(typed && p_.a.row_stride == 1)) PackA(a, i, 1, 0, p_.k, 1, packed + i * units);
    }
  }

  // Of `count` columns of B from `column` on.
  void DotsOf(const T* const* x, const uint8_t* b, int64_t column, int64_t count, T* to, int64_t stride) const {
    const auto at = [&](int64_t j) { return b + (column + j) * p_.b.col_stride * Bytes(p_.b.type); };
    if (HasShortDots(p_, micro_.lanes)) {
      const DotLanesKernel<T> dots = micro_.dot_lanes[static_cast<int>(PackSourceOf(p_.b.type))];
      for (int64_t j = 0; j < count; j += micro_.lanes)
        for (int64_t i = 0; i < p_.m; ++i)
          dots(p_.k, x[i], at(j), p_.b.col_stride, std::min<int64_t>(micro_.lanes, count - j), to + i * stride + j);
      return;
    }
    const DotKernel<T> dot = DotOf();
    for (int64_t j = 0; j < count; j += 4) {
      if (fetches_b_ && column + j + kColumnsAhead + 4 <= p_.n)
        FetchRows<false>(at(j + kColumnsAhead), p_.b.col_stride * Bytes(p_.b.type), 4, p_.k * Bytes(p_.b.type));
      dot(p_.k, x, static_cast<int>(p_.m), at(j), p_.b.col_stride, static_cast<int>(std::min<int64_t>(4, count - j)),
          to + j, stride);
    }
  }

  void Dots(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t n0, int64_t cols, void* scratch) const {
    const T* x[kMostDotRows];
    Carver carver(scratch);
    RowsForDots(a, carver, x);
    const int64_t direct = DirectStride<T>(c, 0, p_.m);
    T* const sums = direct >= 0 ? nullptr : carver.Take<T>(p_.m * kDotColumns);
    for (int64_t j0 = 0; j0 < cols; j0 += kDotColumns) {
      const int64_t some = std::min(kDotColumns, cols - j0);
      T* const to = direct >= 0 ? AddressIn<T>(c, 0, n0 + j0) : sums;
      const int64_t stride = direct >= 0 ? direct : kDotColumns;
      DotsOf(x, b, n0 + j0, some, to, stride);
      if (direct < 0) StoreTile<T>(c, 0, n0 + j0, p_.m, some, sums, kDotColumns, false);
    }
  }

  GemmProblem p_;
  const MicroTable<T>& micro_;
  Strategy strategy_ = Strategy::Blocked;
  bool typed_ = false;                          // B needs no conversion
  bool a_in_place_ = false;                     // A is not packed
  bool fetches_b_ = false, fetches_c_ = false;  // ahead
  bool streams_b_ = false;                      // is read row by row
  bool packs_strips_ = false;                   // of B, for a task's tiles
  BlockShape block_;
  int64_t down_ = 1, across_ = 1;
};

// C^T = B^T A^T: the operands come the other way round.
class SwappedGemm final : public Gemm {
 public:
  explicit SwappedGemm(std::shared_ptr<const Gemm> inner) : inner_(std::move(inner)) {
    num_tasks_ = inner_->num_tasks();
    scratch_bytes_ = inner_->scratch_bytes();
    tiles_ = StrCat("transposed, ", inner_->tiles());
    rounds_ = inner_->rounds();
    prepare_tasks_ = inner_->prepare_tasks();
    shared_bytes_ = inner_->shared_bytes();
  }
  void Prepare(const GemmCall& call, int64_t begin, int64_t end) const override {
    inner_->Prepare(Swapped(call), begin, end);
  }
  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    inner_->Run(Swapped(call), begin, end, scratch);
  }

 private:
  static GemmCall Swapped(GemmCall call) {
    std::swap(call.a, call.b);
    return call;
  }
  std::shared_ptr<const Gemm> inner_;
};

// No products, and no tasks.
class EmptyGemm final : public Gemm {
 public:
  EmptyGemm() { tiles_ = "empty"; }
  void Run(const GemmCall&, int64_t, int64_t, void*) const override {}
};

template <class T>
std::shared_ptr<const Gemm> MakeReal(const GemmProblem& p, const GemmIsa& isa, GemmSharing sharing) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Gemm> columns = MakeColumnsGemm<T>(p, isa)) return columns;
  }
  if (std::shared_ptr<const Gemm> small = MakeSmallGemm<T>(p, isa)) return small;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Gemm> thin = MakeThinGemm<T>(p, isa)) return thin;
  }
  auto alone = std::make_shared<RealGemm<T>>(p, isa);
  if (p.k == 0) return alone;
  if constexpr (std::is_floating_point_v<T>) {
    if (alone->blocked() || alone->few_rows_or_terms())
      if (std::shared_ptr<const Gemm> tiles = MakeTilesGemm<T>(p, isa)) return tiles;
  }
  if (!alone->blocked()) return alone;
  std::shared_ptr<const Gemm> half;
  if constexpr (sizeof(T) == 4) half = MakeHalfGemm(p, isa);
  if (sharing == GemmSharing::Allowed)
    if (std::shared_ptr<const Gemm> shared = MakePanelGemm<T>(p, isa)) return shared;
  if (half) return half;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Gemm> thin = MakeThinGemm<T>(p, isa, /*instead_of_blocks=*/true)) return thin;
  }
  return alone;
}

}  // namespace

void Gemm::RunAll(const void* a, const void* b, void* c, void* shared, void* scratch) const {
  for (GemmCall call{a, b, c, 0, shared}; call.round < rounds_; ++call.round) {
    Prepare(call, 0, prepare_tasks_);
    Run(call, 0, num_tasks_, scratch);
  }
}

GemmProblem Transposed(const GemmProblem& problem) {
  GemmProblem p = problem;
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  for (StridedMatrix* m : {&p.a, &p.b, &p.c}) std::swap(m->row_stride, m->col_stride);
  return p;
}

GemmProblem WithSigned(const GemmProblem& problem) {
  GemmProblem p = problem;
  const ElementType sums = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  if (sums != ElementType::S32 && sums != ElementType::S64) return p;
  for (StridedMatrix* m : {&p.a, &p.b}) {
    if (m->type == ElementType::U32 && sums == ElementType::S32) m->type = ElementType::S32;
    if (m->type == ElementType::U64) m->type = ElementType::S64;
    if (m->type == ElementType::U16 && Bits(p.c.type) <= 16) m->type = ElementType::S16;
  }
  return p;
}

Result<std::shared_ptr<const Gemm>> Gemm::Create(const GemmProblem& problem, const GemmIsa& isa, GemmSharing sharing) {
  GemmProblem p = WithSigned(problem);
  const ElementType accumulator = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  const bool swap = SuitsSwapped(isa, p, accumulator);
  if (swap) p = Transposed(p);
  std::shared_ptr<const Gemm> gemm;
  if (accumulator != ElementType::Invalid && (p.batch == 0 || p.m == 0 || p.n == 0))
    return std::shared_ptr<const Gemm>(std::make_shared<EmptyGemm>());
  switch (accumulator) {
    case ElementType::F32: gemm = MakeReal<float>(p, isa, sharing); break;
    case ElementType::F64: gemm = MakeReal<double>(p, isa, sharing); break;
    case ElementType::S32: gemm = MakeReal<int32_t>(p, isa, sharing); break;
    case ElementType::S64: gemm = MakeReal<int64_t>(p, isa, sharing); break;
    case ElementType::C64: gemm = MakeComplexGemm<float>(p, isa, sharing); break;
    case ElementType::C128: gemm = MakeComplexGemm<double>(p, isa, sharing); break;
    default: return Unimplemented("dot of ", Name(p.a.type), " and ", Name(p.b.type), " to ", Name(p.c.type));
  }
  if (swap) gemm = std::make_shared<SwappedGemm>(std::move(gemm));
  return gemm;
}

template void RunBlock<float>(const MicroTable<float>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t, int64_t,
                              const PackFn<float>&, const PackFn<float>&, const StoreTarget&, void*);
template void RunBlock<double>(const MicroTable<double>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t,
                               int64_t, const PackFn<double>&, const PackFn<double>&, const StoreTarget&, void*);
template void RunBlock<int32_t>(const MicroTable<int32_t>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t,
                                int64_t, const PackFn<int32_t>&, const PackFn<int32_t>&, const StoreTarget&, void*);
template void RunBlock<int64_t>(const MicroTable<int64_t>&, const BlockShape&, int64_t, int64_t, int64_t, int64_t,
                                int64_t, const PackFn<int64_t>&, const PackFn<int64_t>&, const StoreTarget&, void*);

template void StoreTile<float>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const float*, int64_t, bool);
template void StoreTile<double>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const double*, int64_t, bool);
template void StoreTile<int32_t>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const int32_t*, int64_t, bool);
template void StoreTile<int64_t>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const int64_t*, int64_t, bool);

}  // namespace strop::cpu
