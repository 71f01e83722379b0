#include "strop/cpu/kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/half.h"

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

namespace {

int64_t RoundUp(int64_t v, int64_t to) { return (v + to - 1) / to * to; }
int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

BlockShape ChooseBlocks(int64_t m, int64_t n, int64_t k, int mr, int nr, int bytes, int64_t batch) {
  // A block of A (mb x kb) and of B (kb x nb) share the L2 cache (1 MB a core on current servers) with room to spare.
  BlockShape block;
  const int64_t kb_max = 1024 / bytes;  // 256 for f32
  block.kb = std::max<int64_t>(1, CeilDiv(k, CeilDiv(std::max<int64_t>(k, 1), kb_max)));
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
  const int64_t panels = RoundUp(block.mb, mr) * block.kb + RoundUp(block.nb, nr) * block.kb;
  const int64_t sums = block.mb * block.nb;  // used if C cannot hold partial sums
  return (panels + sums + mr * nr) * bytes + 4 * 64;
}

template <class T>
void StoreTile(const StoreTarget& c, int64_t row, int64_t col, int64_t rows, int64_t cols, const T* tile,
               int64_t tile_stride, bool accumulate) {
  constexpr ElementType kOwn = std::is_same_v<T, float>     ? ElementType::F32
                               : std::is_same_v<T, double>  ? ElementType::F64
                               : std::is_same_v<T, int32_t> ? ElementType::S32
                                                            : ElementType::S64;
  const bool same = c.type == kOwn || (kOwn == ElementType::S32 && c.type == ElementType::U32) ||
                    (kOwn == ElementType::S64 && c.type == ElementType::U64);
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = tile + r * tile_stride;
    const int64_t base = (c.rows ? c.rows[row + r - c.first_row] : (row + r) * c.row_stride) + col * c.col_stride;
    if (std::is_same_v<T, float> && c.type == ElementType::F16 && c.col_stride == 1) {
      uint16_t* to = reinterpret_cast<uint16_t*>(c.data) + base;
      for (int64_t j = 0; j < cols; ++j) to[j] = FloatToHalf(static_cast<float>(from[j]));
      continue;
    }
    if (!same) {
      for (int64_t j = 0; j < cols; ++j) StoreAs<T>(c.type, c.data, base + j * c.col_stride, from[j]);
      continue;
    }
    T* to = reinterpret_cast<T*>(c.data) + base;
    if (c.col_stride == 1) {
      if (accumulate)
        for (int64_t j = 0; j < cols; ++j) to[j] += from[j];
      else
        std::memcpy(to, from, cols * sizeof(T));
    } else {
      for (int64_t j = 0; j < cols; ++j) {
        T& at = to[j * c.col_stride];
        at = accumulate ? at + from[j] : from[j];
      }
    }
  }
}

namespace {

template <class T>
bool HoldsSums(ElementType c) {
  if (std::is_same_v<T, float>) return c == ElementType::F32;
  if (std::is_same_v<T, double>) return c == ElementType::F64;
  if (std::is_same_v<T, int32_t>) return c == ElementType::S32 || c == ElementType::U32;
  return c == ElementType::S64 || c == ElementType::U64;
}

uint8_t* Align(void* p) { return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64); }

}  // namespace

template <class T>
void RunBlock(const MicroTable<T>& micro, const BlockShape& block, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
              int64_t k, const PackFn<T>& pack_a, const PackFn<T>& pack_b, const StoreTarget& c, void* scratch) {
  const int64_t mr = micro.mr, nr = micro.nr;
  uint8_t* at = Align(scratch);
  T* a_panels = reinterpret_cast<T*>(at);
  at = Align(at + RoundUp(block.mb, mr) * block.kb * sizeof(T));
  T* b_panels = reinterpret_cast<T*>(at);
  at = Align(at + RoundUp(block.nb, nr) * block.kb * sizeof(T));
  T* tile = reinterpret_cast<T*>(at);
  at = Align(at + mr * nr * sizeof(T));
  T* sums = reinterpret_cast<T*>(at);
  const bool split = k > block.kb;
  const bool in_place = HoldsSums<T>(c.type);  // C itself keeps partial sums
  StoreTarget partial{c.type, reinterpret_cast<uint8_t*>(sums), block.nb, 1};
  partial.type = std::is_same_v<T, float>     ? ElementType::F32
                 : std::is_same_v<T, double>  ? ElementType::F64
                 : std::is_same_v<T, int32_t> ? ElementType::S32
                                              : ElementType::S64;
  if (k == 0) {
    std::memset(tile, 0, mr * nr * sizeof(T));
    for (int64_t i = 0; i < rows; i += mr)
      for (int64_t j = 0; j < cols; j += nr)
        StoreTile<T>(c, m0 + i, n0 + j, std::min(mr, rows - i), std::min(nr, cols - j), tile, nr, false);
    return;
  }
  for (int64_t k0 = 0; k0 < k; k0 += block.kb) {
    const int64_t kc = std::min(block.kb, k - k0);
    for (int64_t j = 0; j < cols; j += nr) pack_b(n0 + j, std::min(nr, cols - j), k0, kc, nr, b_panels + j * kc);
    for (int64_t i = 0; i < rows; i += mr) {
      const int64_t height = std::min(mr, rows - i);
      T* a_panel = a_panels;
      pack_a(m0 + i, height, k0, kc, height, a_panel);
      for (int64_t j = 0; j < cols; j += nr) {
        micro.kernel[height - 1](kc, a_panel, b_panels + j * kc, nr, tile);
        const int64_t width = std::min(nr, cols - j);
        if (!split || in_place)
          StoreTile<T>(c, m0 + i, n0 + j, height, width, tile, nr, k0 > 0);
        else
          StoreTile<T>(partial, i, j, height, width, tile, nr, k0 > 0);
      }
    }
  }
  if (split && !in_place)
    for (int64_t i = 0; i < rows; ++i) StoreTile<T>(c, m0 + i, n0, 1, cols, sums + i * block.nb, block.nb, false);
}

// ---- strided matrices
// ---------------------------------------------------------------------------------------------------

namespace {

// A bfloat16 as it lies in memory: the upper half of a float.
struct Bf16 {
  uint16_t code;
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }
  explicit operator double() const { return static_cast<float>(*this); }
};

// A binary16 as it lies in memory.
struct F16 {
  uint16_t code;
  explicit operator float() const { return HalfToFloat(code); }
  explicit operator double() const { return HalfToFloat(code); }
};

// Packs vectors with `vector_stride` between them and `k_stride` along them.
template <class T, class S>
void PackTyped(const S* base, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc, int64_t width,
               T* dst) {
  if (vector_stride == 1) {
    for (int64_t p = 0; p < kc; ++p) {
      const S* from = base + p * k_stride;
      T* to = dst + p * width;
      if constexpr (std::is_same_v<T, S>) {
        std::memcpy(to, from, count * sizeof(T));
      } else {
        for (int64_t v = 0; v < count; ++v) to[v] = static_cast<T>(from[v]);
      }
      for (int64_t v = count; v < width; ++v) to[v] = 0;
    }
    return;
  }
  // A transposition, in pieces that the first-level cache holds: a cache line of each vector at a time.
  constexpr int64_t kPiece = 16;
  for (int64_t p0 = 0; p0 < kc; p0 += kPiece) {
    const int64_t end = std::min(kc, p0 + kPiece);
    for (int64_t v = 0; v < count; ++v) {
      const S* from = base + v * vector_stride;
      T* to = dst + v;
      for (int64_t p = p0; p < end; ++p) to[p * width] = static_cast<T>(from[p * k_stride]);
    }
    for (int64_t v = count; v < width; ++v)
      for (int64_t p = p0; p < end; ++p) dst[p * width + v] = 0;
  }
}

template <class T>
void PackStrided(ElementType type, const uint8_t* data, int64_t offset, int64_t vector_stride, int64_t k_stride,
                 int64_t count, int64_t kc, int64_t width, T* dst) {
  auto typed = [&]<class S>(S*) {
    PackTyped<T, S>(reinterpret_cast<const S*>(data) + offset, vector_stride, k_stride, count, kc, width, dst);
  };
  switch (type) {
    case ElementType::F32: return typed(static_cast<float*>(nullptr));
    case ElementType::F64: return typed(static_cast<double*>(nullptr));
    case ElementType::S8: return typed(static_cast<int8_t*>(nullptr));
    case ElementType::U8: return typed(static_cast<uint8_t*>(nullptr));
    case ElementType::S32: return typed(static_cast<int32_t*>(nullptr));
    case ElementType::U32: return typed(static_cast<uint32_t*>(nullptr));
    case ElementType::S64: return typed(static_cast<int64_t*>(nullptr));
    case ElementType::U64: return typed(static_cast<uint64_t*>(nullptr));
    case ElementType::BF16:
      if constexpr (std::is_floating_point_v<T>) return typed(static_cast<Bf16*>(nullptr));
      break;
    case ElementType::F16:
      if constexpr (std::is_floating_point_v<T>) return typed(static_cast<F16*>(nullptr));
      break;
    default: break;
  }
  for (int64_t p = 0; p < kc; ++p)
    for (int64_t v = 0; v < width; ++v)
      dst[p * width + v] = v < count ? LoadAs<T>(type, data, offset + v * vector_stride + p * k_stride) : T(0);
}

struct Blocks {
  BlockShape shape;
  int64_t across = 0, down = 0;
};

// Few rows: B is read once and straight from its place, so that packing it would double the traffic.
//   columns of B contiguous: inner kernel on unpacked rows of B;   rows of B^T contiguous: dot products.
enum class Strategy : uint8_t { Blocked, FewRowsDirect, FewRowsDots };

template <class T>
class RealGemm final : public Gemm {
 public:
  explicit RealGemm(const GemmProblem& p) : p_(p), micro_(MicroOf<T>()) {
    constexpr ElementType kT = TypeOf<T>();
    if (p.m <= 4 && p.b.type == kT && p.a.type == kT && p.b.row_stride == 1 && p.a.col_stride == 1 && p.k > 0)
      strategy_ = Strategy::FewRowsDots;
    else if (p.m <= micro_.mr && p.b.type == kT && p.b.col_stride == 1 && p.k > 0)
      strategy_ = Strategy::FewRowsDirect;
    if (strategy_ == Strategy::Blocked) {
      block_ = ChooseBlocks(p.m, p.n, p.k, micro_.mr, micro_.nr, sizeof(T), p.batch);
      down_ = CeilDiv(p.m, block_.mb);
      across_ = CeilDiv(p.n, block_.nb);
      scratch_bytes_ = BlockScratchBytes(block_, micro_.mr, micro_.nr, sizeof(T));
    } else {
      // Tasks of about half a megabyte of B.
      down_ = 1;
      block_.nb =
          RoundUp(std::clamp<int64_t>((int64_t{1} << 19) / std::max<int64_t>(1, p.k * sizeof(T)), 1, p.n), micro_.nr);
      across_ = CeilDiv(p.n, block_.nb);
      scratch_bytes_ = (p.k * micro_.mr + p.k * micro_.nr + micro_.mr * micro_.nr) * sizeof(T) + 4 * 64;
    }
    num_tasks_ = p.batch * down_ * across_;
  }

  void Run(const void* a, const void* b, void* c, int64_t begin, int64_t end, void* scratch) const override {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t batch = task / (down_ * across_);
      const int64_t down = task / across_ % down_, across = task % across_;
      const uint8_t* pa = static_cast<const uint8_t*>(a) + batch * p_.a.batch_stride * Bytes(p_.a.type);
      const uint8_t* pb = static_cast<const uint8_t*>(b) + batch * p_.b.batch_stride * Bytes(p_.b.type);
      StoreTarget target{p_.c.type, static_cast<uint8_t*>(c) + batch * p_.c.batch_stride * Bytes(p_.c.type),
                         p_.c.row_stride, p_.c.col_stride};
      const int64_t n0 = across * block_.nb, cols = std::min(block_.nb, p_.n - n0);
      switch (strategy_) {
        case Strategy::Blocked: Blocked(pa, pb, target, down * block_.mb, n0, cols, scratch); break;
        case Strategy::FewRowsDirect: FewRowsDirect(pa, pb, target, n0, cols, scratch); break;
        case Strategy::FewRowsDots: FewRowsDots(pa, pb, target, n0, cols); break;
      }
    }
  }

 private:
  void Blocked(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t m0, int64_t n0, int64_t cols,
               void* scratch) const {
    PackFn<T> pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackStrided<T>(p_.a.type, a, first * p_.a.row_stride + k0 * p_.a.col_stride, p_.a.row_stride, p_.a.col_stride,
                     count, kc, width, dst);
    };
    PackFn<T> pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackStrided<T>(p_.b.type, b, first * p_.b.col_stride + k0 * p_.b.row_stride, p_.b.col_stride, p_.b.row_stride,
                     count, kc, width, dst);
    };
    RunBlock<T>(micro_, block_, m0, std::min(block_.mb, p_.m - m0), n0, cols, p_.k, pack_a, pack_b, c, scratch);
  }

  void FewRowsDirect(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t n0, int64_t cols,
                     void* scratch) const {
    T* a_panel = reinterpret_cast<T*>(Align(scratch));
    T* tile = reinterpret_cast<T*>(Align(a_panel + p_.k * p_.m));
    T* b_panel = reinterpret_cast<T*>(Align(tile + micro_.mr * micro_.nr));
    PackStrided<T>(p_.a.type, a, 0, p_.a.row_stride, p_.a.col_stride, p_.m, p_.k, p_.m, a_panel);
    const T* tb = reinterpret_cast<const T*>(b);
    for (int64_t j = 0; j < cols; j += micro_.nr) {
      const int64_t width = std::min<int64_t>(micro_.nr, cols - j);
      if (width == micro_.nr) {
        micro_.kernel[p_.m - 1](p_.k, a_panel, tb + n0 + j, p_.b.row_stride, tile);
      } else {
        PackStrided<T>(p_.b.type, b, n0 + j, 1, p_.b.row_stride, width, p_.k, micro_.nr, b_panel);
        micro_.kernel[p_.m - 1](p_.k, a_panel, b_panel, micro_.nr, tile);
      }
      StoreTile<T>(c, 0, n0 + j, p_.m, width, tile, micro_.nr, false);
    }
  }

  void FewRowsDots(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t n0, int64_t cols) const {
    const T* ta = reinterpret_cast<const T*>(a);
    const T* tb = reinterpret_cast<const T*>(b);
    T out[4];
    for (int64_t j = 0; j < cols; j += 4) {
      const int count = static_cast<int>(std::min<int64_t>(4, cols - j));
      for (int64_t i = 0; i < p_.m; ++i) {
        micro_.dot(p_.k, ta + i * p_.a.row_stride, tb + (n0 + j) * p_.b.col_stride, p_.b.col_stride, count, out);
        StoreTile<T>(c, i, n0 + j, 1, count, out, 4, false);
      }
    }
  }

  GemmProblem p_;
  const MicroTable<T>& micro_;
  Strategy strategy_ = Strategy::Blocked;
  BlockShape block_;
  int64_t down_ = 1, across_ = 1;
};

// Complex products as four real ones on the parts: (ar + i ai)(br + i bi).
template <class T>
class ComplexGemm final : public Gemm {
 public:
  explicit ComplexGemm(const GemmProblem& p) : p_(p), micro_(MicroOf<T>()) {
    block_ = ChooseBlocks(p.m, p.n, p.k, micro_.mr, micro_.nr, sizeof(T), p.batch);
    block_.kb = std::max<int64_t>(p.k, 1);
    block_.mb = micro_.mr;
    block_.nb = std::min<int64_t>(block_.nb, 4 * micro_.nr);
    down_ = CeilDiv(p.m, block_.mb * 4);
    across_ = CeilDiv(p.n, block_.nb);
    num_tasks_ = p.batch * down_ * across_;
    scratch_bytes_ =
        (2 * block_.mb * block_.kb + 2 * RoundUp(block_.nb, micro_.nr) * block_.kb + 4 * micro_.mr * micro_.nr) *
            static_cast<int64_t>(sizeof(T)) +
        8 * 64;
  }

  void Run(const void* a, const void* b, void* c, int64_t begin, int64_t end, void* scratch) const override {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t batch = task / (down_ * across_);
      const int64_t m0 = task / across_ % down_ * block_.mb * 4, n0 = task % across_ * block_.nb;
      Block(static_cast<const uint8_t*>(a) + batch * p_.a.batch_stride * Bytes(p_.a.type),
            static_cast<const uint8_t*>(b) + batch * p_.b.batch_stride * Bytes(p_.b.type),
            reinterpret_cast<T*>(c) + 2 * batch * p_.c.batch_stride, m0, n0, scratch);
    }
  }

 private:
  // One part of a complex (or real) matrix, packed.
  void Pack(const StridedMatrix& m, const uint8_t* data, bool rows, bool imag, int64_t first, int64_t count,
            int64_t width, T* dst) const {
    const int64_t vs = rows ? m.row_stride : m.col_stride, ks = rows ? m.col_stride : m.row_stride;
    if (!IsComplex(m.type)) {
      if (imag)
        std::memset(dst, 0, p_.k * width * sizeof(T));
      else
        PackStrided<T>(m.type, data, first * vs, vs, ks, count, p_.k, width, dst);
      return;
    }
    PackStrided<T>(ComplexPart(m.type), data, 2 * first * vs + imag, 2 * vs, 2 * ks, count, p_.k, width, dst);
  }

  void Block(const uint8_t* a, const uint8_t* b, T* c, int64_t m0, int64_t n0, void* scratch) const {
    const int64_t mr = micro_.mr, nr = micro_.nr, k = p_.k;
    const int64_t cols = std::min(block_.nb, p_.n - n0), rows = std::min(block_.mb * 4, p_.m - m0);
    T* ar = reinterpret_cast<T*>(Align(scratch));
    T* ai = ar + mr * k;
    T* br = reinterpret_cast<T*>(Align(ai + mr * k));
    T* bi = br + RoundUp(cols, nr) * k;
    T* tile = reinterpret_cast<T*>(Align(bi + RoundUp(cols, nr) * k));
    for (int64_t j = 0; j < cols; j += nr) {
      Pack(p_.b, b, false, false, n0 + j, std::min(nr, cols - j), nr, br + j * k);
      Pack(p_.b, b, false, true, n0 + j, std::min(nr, cols - j), nr, bi + j * k);
    }
    for (int64_t i = 0; i < rows; i += mr) {
      const int64_t height = std::min(mr, rows - i);
      Pack(p_.a, a, true, false, m0 + i, height, height, ar);
      Pack(p_.a, a, true, true, m0 + i, height, height, ai);
      for (int64_t j = 0; j < cols; j += nr) {
        T *rr = tile, *ii = tile + mr * nr, *ri = ii + mr * nr, *ir = ri + mr * nr;
        auto kernel = micro_.kernel[height - 1];
        kernel(k, ar, br + j * k, nr, rr);
        kernel(k, ai, bi + j * k, nr, ii);
        kernel(k, ar, bi + j * k, nr, ri);
        kernel(k, ai, br + j * k, nr, ir);
        for (int64_t r = 0; r < height; ++r)
          for (int64_t v = 0; v < std::min(nr, cols - j); ++v) {
            T* at = c + 2 * ((m0 + i + r) * p_.c.row_stride + (n0 + j + v) * p_.c.col_stride);
            at[0] = rr[r * nr + v] - ii[r * nr + v];
            at[1] = ri[r * nr + v] + ir[r * nr + v];
          }
      }
    }
  }

  GemmProblem p_;
  const MicroTable<T>& micro_;
  BlockShape block_;
  int64_t down_ = 1, across_ = 1;
};

// C^T = B^T A^T: the operands come the other way round.
class SwappedGemm final : public Gemm {
 public:
  explicit SwappedGemm(std::shared_ptr<const Gemm> inner) : inner_(std::move(inner)) {
    num_tasks_ = inner_->num_tasks();
    scratch_bytes_ = inner_->scratch_bytes();
  }
  void Run(const void* a, const void* b, void* c, int64_t begin, int64_t end, void* scratch) const override {
    inner_->Run(b, a, c, begin, end, scratch);
  }

 private:
  std::shared_ptr<const Gemm> inner_;
};

}  // namespace

Result<std::shared_ptr<const Gemm>> Gemm::Create(const GemmProblem& problem) {
  GemmProblem p = problem;
  const bool swap = p.m > p.n && p.n <= 4;
  if (swap) {  // few columns: compute the transpose, which has few rows
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    for (StridedMatrix* m : {&p.a, &p.b, &p.c}) std::swap(m->row_stride, m->col_stride);
  }
  std::shared_ptr<const Gemm> gemm;
  switch (GemmAccumulator(p.a.type, p.b.type, p.c.type)) {
    case ElementType::F32: gemm = std::make_shared<RealGemm<float>>(p); break;
    case ElementType::F64: gemm = std::make_shared<RealGemm<double>>(p); break;
    case ElementType::S32: gemm = std::make_shared<RealGemm<int32_t>>(p); break;
    case ElementType::S64: gemm = std::make_shared<RealGemm<int64_t>>(p); break;
    case ElementType::C64: gemm = std::make_shared<ComplexGemm<float>>(p); break;
    case ElementType::C128: gemm = std::make_shared<ComplexGemm<double>>(p); break;
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

}  // namespace strop::cpu
