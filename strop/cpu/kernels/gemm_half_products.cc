// Products of bf16, or of bytes or f32 where squares of them are multiplied at once, that are too small, or too many,
// for panels that all tasks share (gemm_panel_products.cc): every task packs B for itself and multiplies its rows of A
// by it, of bf16 in pairs where the numbers allow that (gemm_rows.cc).
#include <algorithm>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_rows.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskProducts = 1 << 20;  // of a product that is cut: several times what packing B takes
constexpr int64_t kTasks = 8;               // for which products are cut

class HalfGemm final : public Gemm {
 public:
  HalfGemm(const GemmProblem& p, std::shared_ptr<const RowGemm> rows, std::shared_ptr<const RowGemm> rest,
           int64_t height)
      : p_(p), rows_(std::move(rows)), rest_(std::move(rest)), height_(height), down_(CeilDiv(p.m, height)) {
    num_tasks_ = p.batch * down_;
    packed_bytes_ = RoundUp(std::max(rows_->packed_bytes(), rest_ ? rest_->packed_bytes() : 0), 64);
    scratch_bytes_ = packed_bytes_ + std::max(rows_->scratch_bytes(), rest_ ? rest_->scratch_bytes() : 0);
    tiles_ = StrCat("each by itself, ", rows_->tiles());
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    uint8_t* const own = static_cast<uint8_t*>(scratch) + packed_bytes_;
    for (; begin < end; ++begin) {
      const int64_t product = begin / down_, row = begin % down_ * height_;
      const auto at = [&](const void* data, const StridedMatrix& m, int64_t first) {
        return static_cast<const uint8_t*>(data) + (p_.Offset(m, product) + first * m.row_stride) * Bytes(m.type);
      };
      const RowGemm& gemm = row + height_ <= p_.m ? *rows_ : *rest_;
      const uint8_t* const b = at(call.b, p_.b, 0);
      gemm.Pack(b, scratch);
      gemm.Run(at(call.a, p_.a, row), b, scratch, const_cast<uint8_t*>(at(call.c, p_.c, row)), own);
    }
  }

 private:
  const GemmProblem p_;
  const std::shared_ptr<const RowGemm> rows_, rest_;  // of `height_` rows, and of what they leave
  const int64_t height_, down_;
  int64_t packed_bytes_ = 0;
};

// f32 that is worth taking apart: of dimensions that fill most of their squares and steps.
bool FillsThirds(const GemmProblem& p, const GemmIsa& isa) {
  constexpr int64_t kLeast = 64;
  if (isa.thirds.mr == 0 || p.a.type != ElementType::F32 || p.b.type != ElementType::F32) return false;
  const int64_t all = RoundUp(p.m, isa.thirds.mr) * RoundUp(p.n, isa.thirds.nr) * RoundUp(p.k, isa.thirds.Quantum());
  return std::min({p.m, p.n, p.k}) >= kLeast && 10 * p.m * p.n * p.k >= 7 * all;
}

// Each product by rows, in panels of `mr`.
std::shared_ptr<const Gemm> MakeByRows(const GemmProblem& p, const GemmIsa& isa, int64_t mr) {
  const int64_t most = std::min(CeilDiv(kTasks, p.batch), CeilDiv(p.m, 2 * mr));
  const int64_t cuts = std::clamp<int64_t>(p.m * p.n * p.k / kTaskProducts, 1, most);
  const int64_t height = std::min(p.m, RoundUp(CeilDiv(p.m, cuts), mr)), rest = p.m % height;
  auto rows = RowGemm::Create(p, height, isa);
  if (!rows.ok()) return nullptr;
  if (rest == 0) return std::make_shared<HalfGemm>(p, *std::move(rows), nullptr, height);
  auto last = RowGemm::Create(p, rest, isa);
  if (!last.ok()) return nullptr;
  return std::make_shared<HalfGemm>(p, *std::move(rows), *std::move(last), height);
}

}  // namespace

std::shared_ptr<const Gemm> MakeThirdsOfBatch(const GemmProblem& p, const GemmIsa& isa) {
  constexpr int64_t kManyProducts = 16;  // fewer share panels
  constexpr int64_t kFarBytes = int64_t{1} << 24, kLongSums = 128;
  // Where sums are short, a large C is waited for.
  if (p.batch * p.m * p.n * Bytes(p.c.type) > kFarBytes && p.k < kLongSums) return nullptr;
  return p.batch >= kManyProducts && FillsThirds(p, isa) ? MakeByRows(p, isa, isa.thirds.mr) : nullptr;
}

std::shared_ptr<const Gemm> MakeHalfGemm(const GemmProblem& p, const GemmIsa& isa) {
  if (p.k == 0) return nullptr;
  const bool bf16 = p.a.type == ElementType::BF16 && p.b.type == ElementType::BF16;
  const MicroTable<int32_t>* bytes = MicroOfBytes(isa, PackSourceOf(p.a.type), PackSourceOf(p.b.type));
  const int64_t mr = bf16 ? isa.bf16.mr : bytes && bytes->step > 1 ? bytes->mr : 0;
  return mr > 0 ? MakeByRows(p, isa, mr) : nullptr;
}

}  // namespace strop::cpu
