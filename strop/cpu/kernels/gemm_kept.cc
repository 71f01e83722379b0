#include "strop/cpu/kernels/gemm_kept.h"

#include <algorithm>

#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kFewestProducts = 1 << 12;
constexpr int64_t kNearProducts = 1 << 15;  // to which B lies in the first-level cache, and sums may end in half a tile
constexpr int64_t kMostRows = 128;          // from which on packing is little of the work
constexpr int64_t kMostBytes = 1 << 22;     // kept
constexpr int64_t kMostBytesOfTwo = 3 << 17;  // by up to two rows
constexpr int64_t kGroupBytes = 1 << 14;      // of tiles that stay in the first-level cache for the next rows
// Along k, the products that are summed in registers, as in TilesGemm. Those of one row and of two, which are dot
// products where they lie, have to be as exact as these.
constexpr int64_t kBlock = 128, kFewBlock = 64, kBlockOfTwo = 32;
constexpr int64_t kFewRows = 36, kTwoRows = 2;
// Of up to two rows, packing takes as long as five products, and a third of one is saved; of a large matrix, less.
constexpr int64_t kFewestCalls = 8, kFewestCallsOfTwo = 16, kFewestCallsOfLarge = 64;
constexpr int64_t kLargeBytes = 1 << 16;

template <class T>
int64_t BlockOf(const GemmProblem& p, const MicroTable<T>& micro) {
  if (p.m <= kTwoRows) return kBlockOfTwo;
  return (p.m <= kFewRows ? kFewBlock : kBlock) * (HasNarrowVectors(micro) ? 2 : 1);
}

template <class T>
class RealKeptGemm final : public KeptGemm {
 public:
  static bool Suits(const GemmProblem& p, const MicroTable<T>& micro) {
    if (p.a.type != ElementTypeOf<T>() || p.b.type != ElementTypeOf<T>()) return false;
    const bool dots = p.m > kTwoRows && AreDots(p, p.m) && p.b.row_stride == 1 && p.b.col_stride != 1;
    const int64_t products = p.m * p.n * p.k;
    if (p.b.col_stride == 1 && products <= kNearProducts && p.n % micro.nr != 0) return false;
    // From the third-level cache, one row comes no sooner.
    if (p.m <= kTwoRows && p.k * p.n * static_cast<int64_t>(sizeof(T)) > kMostBytesOfTwo) return false;
    return micro.tiles[0][0] && !dots && p.batch > 0 && p.k > 0 && p.m > 0 && p.m <= kMostRows && p.n >= micro.nr &&
           products >= kFewestProducts &&
           p.batch * p.k * RoundUp(p.n, micro.nr) * static_cast<int64_t>(sizeof(T)) <= kMostBytes;
  }

  RealKeptGemm(const GemmProblem& p, const MicroTable<T>& micro) : p_(p), micro_(micro) {
    const int64_t bytes = sizeof(T), rest = p.n % micro.nr;
    kb_ = CeilDiv(p.k, CeilDiv(p.k, BlockOf(p, micro)));
    cols_ = p.n - rest + (rest == 0 ? 0 : rest <= micro.nr / 2 ? micro.nr / 2 : micro.nr);
    const bool large = p.k * p.n * bytes > kLargeBytes;
    fewest_calls_ = p.m > kTwoRows ? kFewestCalls : large ? kFewestCallsOfLarge : kFewestCallsOfTwo;
    direct_ = HoldsSums<T>(p.c.type) && p.c.col_stride == 1;
    kept_bytes_ = p.batch * p.k * cols_ * bytes + kCarverSlack;
    scratch_bytes_ = micro.mr * micro.nr * bytes + kCarverSlack;
    if (!direct_) scratch_bytes_ += p.m * cols_ * bytes + kCarverSlack;
    tiles_ = StrCat(p.m, "x", p.n, " by kept rhs", kb_ < p.k ? StrCat(", k by ", kb_) : "", ", ",
                    CeilDiv(p.m, CeilDiv(p.m, micro.mr)), "x", micro.nr, " in registers");
  }

  // Products, in each the blocks along k, and in each of them the tiles side by side.
  void Keep(const void* b, void* kept) const override {
    T* to = Carver(kept).Take<T>(p_.batch * p_.k * cols_);
    for (int64_t product = 0; product < p_.batch; ++product) {
      for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
        const int64_t kc = std::min(kb_, p_.k - k0);
        for (int64_t j = 0; j < cols_; j += micro_.nr) {
          const int64_t width = std::min<int64_t>(micro_.nr, cols_ - j);
          PackStrided<T>(micro_, p_.b.type, static_cast<const uint8_t*>(b),
                         p_.Offset(p_.b, product) + k0 * p_.b.row_stride + j * p_.b.col_stride, p_.b.col_stride,
                         p_.b.row_stride, std::min(width, p_.n - j), kc, width, to);
          to += kc * width;
        }
      }
    }
  }

  void Run(const void* a, const void* kept, void* c, void* scratch) const override {
    const T* b = Carver(const_cast<void*>(kept)).Take<T>(0);
    for (int64_t product = 0; product < p_.batch; ++product, b += p_.k * cols_)
      Multiply(static_cast<const T*>(a) + p_.Offset(p_.a, product), b,
               {p_.c.type, static_cast<uint8_t*>(c) + p_.Offset(p_.c, product) * Bytes(p_.c.type), p_.c.row_stride,
                p_.c.col_stride},
               scratch);
  }

 private:
  void Multiply(const T* a, const T* b, const StoreTarget& c, void* scratch) const {
    const int64_t nr = micro_.nr;
    Carver carver(scratch);
    T* const tile = carver.Take<T>(micro_.mr * nr);
    T* const sums = direct_ ? AddressIn<T>(c, 0, 0) : carver.Take<T>(p_.m * cols_);
    const int64_t stride = direct_ ? c.row_stride : cols_;
    const int64_t whole = (direct_ ? p_.n : cols_) / nr * nr;
    const EvenPanels panels(p_.m, micro_.mr);
    for (int64_t k0 = 0; k0 < p_.k; k0 += kb_, a += kb_ * p_.a.col_stride) {
      const int64_t kc = std::min(kb_, p_.k - k0);
      const int64_t group = std::max<int64_t>(kGroupBytes / (kc * nr * static_cast<int64_t>(sizeof(T))), 1) * nr;
      for (int64_t j = 0; j < whole; j += group) {
        const int64_t cols = std::min(group, whole - j);
        for (int64_t n = 0; n < panels.count; ++n) {
          const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
          micro_.tiles[height - 1][1](cols / nr, kc, a + i * p_.a.row_stride, p_.a.row_stride, p_.a.col_stride, b,
                                      sums + i * stride + j, stride, k0 > 0);
        }
        b += kc * cols;
      }
      if (whole == cols_) continue;
      // Of the last tile all would spoil what lies behind it in C.
      const int64_t width = cols_ - whole;
      for (int64_t n = 0; n < panels.count; ++n) {
        const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
        T* const to = direct_ ? tile : sums + i * stride + whole;
        micro_.tiles[height - 1][width == nr](1, kc, a + i * p_.a.row_stride, p_.a.row_stride, p_.a.col_stride, b, to,
                                              direct_ ? nr : stride, k0 > 0 && !direct_);
        if (direct_) StoreTile<T>(c, i, whole, height, p_.n - whole, tile, nr, k0 > 0);
      }
      b += kc * width;
    }
    if (!direct_) StoreTile<T>(c, 0, 0, p_.m, p_.n, sums, cols_, false);
  }

  const GemmProblem p_;
  const MicroTable<T>& micro_;
  int64_t kb_ = 0, cols_ = 0;  // of a block; of B, with what the last tile is filled up with
  bool direct_ = false;        // inner kernels write to C
};

template <class T>
std::shared_ptr<const KeptGemm> Make(const GemmProblem& p, const GemmIsa& isa) {
  const MicroTable<T>& micro = MicroOf<T>(isa);
  if (!RealKeptGemm<T>::Suits(p, micro)) return nullptr;
  return std::make_shared<RealKeptGemm<T>>(p, micro);
}

}  // namespace

std::shared_ptr<const KeptGemm> KeptGemm::Create(const GemmProblem& p, const GemmIsa& isa) {
  switch (GemmAccumulator(p.a.type, p.b.type, p.c.type)) {
    case ElementType::F32: return Make<float>(p, isa);
    case ElementType::F64: return Make<double>(p, isa);
    default: return nullptr;
  }
}

}  // namespace strop::cpu
