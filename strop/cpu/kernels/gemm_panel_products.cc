// Strided matrices multiplied by way of shared panels (gemm_panels.h), with the instruction that suits their types:
// four bytes at once, pairs of bf16 where no subnormal number can come of it.
#include <algorithm>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_panels.h"

namespace strop::cpu {
namespace {

// Packing pairs of bf16 takes long, next to their products. Rows of f32 and f64 are read in place by wide vectors;
// there nothing has to be packed for all, which on two cores takes as long as on one.
template <class T>
bool ReadsRowsOfA(const GemmProblem& p, const MicroTable<T>& micro) {
  // Squares are read whole, lines of 64 bytes each.
  const int64_t bytes = Bytes(p.a.type);
  if (micro.quantum > 0) return false;  // they are taken apart
  if (micro.step > 1)
    return p.a.col_stride == 1 && p.m % micro.step == 0 && p.k % micro.Quantum() == 0 &&
           p.a.row_stride * bytes % kLineBytes == 0 && p.a.batch_stride * bytes % kLineBytes == 0 &&
           p.a.outer_stride * bytes % kLineBytes == 0 && !MeetInSets(p.a.row_stride * bytes);
  const bool pairs = micro.group == 2 && p.a.type == ElementType::BF16;
  const bool typed = micro.group == 1 && p.a.type == ElementTypeOf<T>() && !HasNarrowVectors(micro);
  if ((!pairs && !typed) || !micro.indirect[0] || p.a.col_stride != 1) return false;
  for (int64_t n : {p.k, p.a.row_stride, p.a.batch_stride, p.a.outer_stride})
    if (n % micro.group != 0) return false;
  return !MeetInSets(p.a.row_stride * bytes);
}

PanelProblem PanelProblemOf(const GemmProblem& p, int bias) {
  PanelProblem problem;
  problem.batch = p.batch, problem.m = p.m, problem.n = p.n, problem.k = p.k;
  problem.c = p.c.type;
  problem.a_across = p.a.row_stride == 1;
  problem.b_across = p.b.col_stride == 1;
  problem.bias = bias;
  problem.fetches = true;
  return problem;
}

template <class T>
PanelProblem PanelProblemOf(const GemmProblem& p, const MicroTable<T>& micro) {
  PanelProblem problem = PanelProblemOf(p, micro.bias);
  problem.a_in_place = ReadsRowsOfA(p, micro);
  problem.b_in_rows = micro.group == 1 && p.b.type == ElementTypeOf<T>() && p.b.col_stride == 1;
  problem.a_typed = micro.group == 1 && p.a.type == ElementTypeOf<T>();
  return problem;
}

template <class T>
class Operands : public PanelOperands<T> {
 public:
  Operands(const GemmProblem& problem, const MicroTable<T>& micro, const GemmCall& call)
      : p_(problem), micro_(micro), call_(call) {}
  void PackA(int64_t batch, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
             T* dst) const override {
    const StridedMatrix& a = p_.a;
    PackStrided<T>(micro_, a.type, static_cast<const uint8_t*>(call_.a),
                   p_.Offset(a, batch) + first * a.row_stride + k0 * a.col_stride, a.row_stride, a.col_stride, count,
                   kc, width, dst, true);
  }
  void PackB(int64_t batch, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
             T* dst) const override {
    const StridedMatrix& b = p_.b;
    PackStrided<T>(micro_, b.type, static_cast<const uint8_t*>(call_.b),
                   p_.Offset(b, batch) + first * b.col_stride + k0 * b.row_stride, b.col_stride, b.row_stride, count,
                   kc, width, dst);
  }
  MemoryRows Memory(bool of_a, int64_t batch, int64_t first, int64_t count, int64_t k0, int64_t kc) const override {
    const StridedMatrix& m = of_a ? p_.a : p_.b;
    const int64_t vector_stride = of_a ? m.row_stride : m.col_stride, k_stride = of_a ? m.col_stride : m.row_stride;
    return RowsOfStrided(m.type, static_cast<const uint8_t*>(of_a ? call_.a : call_.b),
                         p_.Offset(m, batch) + first * vector_stride + k0 * k_stride, vector_stride, k_stride, count,
                         kc);
  }
  std::pair<const T*, int64_t> RowsOfA(int64_t batch) const override {
    const uint8_t* a = static_cast<const uint8_t*>(call_.a) + p_.Offset(p_.a, batch) * Bytes(p_.a.type);
    return {reinterpret_cast<const T*>(a), p_.a.row_stride / micro_.group};
  }
  std::pair<const T*, int64_t> RowsOfB(int64_t batch) const override {
    const uint8_t* b = static_cast<const uint8_t*>(call_.b) + p_.Offset(p_.b, batch) * Bytes(p_.b.type);
    return {reinterpret_cast<const T*>(b), p_.b.row_stride};
  }
  StoreTarget Target(int64_t batch, int64_t, int64_t, void*) const override {
    const StridedMatrix& c = p_.c;
    return {c.type, static_cast<uint8_t*>(call_.c) + p_.Offset(c, batch) * Bytes(c.type), c.row_stride, c.col_stride};
  }

 private:
  const GemmProblem& p_;
  const MicroTable<T>& micro_;
  const GemmCall& call_;
};

template <class T>
class PanelGemm final : public Gemm {
 public:
  PanelGemm(const GemmProblem& p, const MicroTable<T>& micro)
      : p_(p), micro_(micro), panels_(PanelProblemOf(p, micro), micro) {
    num_tasks_ = panels_.num_tasks();
    scratch_bytes_ = panels_.scratch_bytes();
    rounds_ = panels_.rounds();
    prepare_tasks_ = panels_.prepare_tasks();
    shared_bytes_ = panels_.shared_bytes();
    tiles_ = panels_.ToString();
  }
  void Prepare(const GemmCall& call, int64_t begin, int64_t end) const override {
    panels_.Prepare(Operands<T>(p_, micro_, call), call.round, begin, end, call.shared);
  }
  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    panels_.Run(Operands<T>(p_, micro_, call), call.round, begin, end, call.shared, scratch);
  }

 private:
  GemmProblem p_;
  const MicroTable<T>& micro_;
  Panels<T> panels_;
};

constexpr int64_t kThirdVectors = 64, kFarThirdVectors = 160, kThirdElements = 64;
constexpr int64_t kThirdProducts = 1 << 24;  // that are worth twice the packing
constexpr int64_t kNearBytes = 1 << 22;      // of the larger operand

// What kernels take apart while they multiply.
bool LiesInRows(const StridedMatrix& m) { return m.type == ElementType::F32 && m.col_stride == 1; }

// Packing numbers in three parts takes three times as long as f32: each has to be multiplied often enough, more often
// where it is waited for; unless it is packed while others are multiplied. What fills up squares is multiplied, too.
bool SuitsThirds(const GemmProblem& p, const GemmIsa& isa) {
  const int64_t products = p.m * p.n * p.k, side = isa.thirds.lanes;
  if (isa.thirds.mr == 0 || p.batch * products < kThirdProducts ||
      10 * products < 8 * RoundUp(p.m, side) * RoundUp(p.n, side) * RoundUp(p.k, isa.thirds.Quantum()))
    return false;
  const auto [few, many] = std::minmax(p.m, p.n);
  const bool far = many * p.k * Bytes(p.a.type) > kNearBytes, ahead = LiesInRows(p.m > p.n ? p.a : p.b);
  const auto has = [&](const StridedMatrix& m) { return PackerOf(isa.thirds, m.type) != nullptr; };
  return has(p.a) && has(p.b) && few >= (far && !ahead ? kFarThirdVectors : kThirdVectors) && p.k >= kThirdElements;
}

// f32 by instructions that multiply bf16 (GemmIsa::thirds).
class ThirdsGemm final : public Gemm {
 public:
  ThirdsGemm(const GemmProblem& p, const GemmIsa& isa) : p_(p), isa_(isa), panels_(ProblemOf(p, isa), isa.thirds) {
    num_tasks_ = panels_.num_tasks();
    scratch_bytes_ = panels_.scratch_bytes();
    rounds_ = panels_.rounds();
    prepare_tasks_ = panels_.prepare_tasks();
    shared_bytes_ = panels_.shared_bytes();
    tiles_ = StrCat("in three parts of bf16, ", panels_.ToString());
  }
  void Prepare(const GemmCall& call, int64_t begin, int64_t end) const override {
    panels_.Prepare(Parts(p_, isa_, call), call.round, begin, end, call.shared);
  }
  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    panels_.Run(Parts(p_, isa_, call), call.round, begin, end, call.shared, scratch);
  }

 private:
  class Parts final : public Operands<float> {
   public:
    Parts(const GemmProblem& p, const GemmIsa& isa, const GemmCall& call)
        : Operands<float>(p, isa.thirds, call), whole_(p, isa.f32, call), f32_(isa.f32), k_(p.k) {}
    std::pair<const float*, int64_t> RowsOfA(int64_t batch) const override { return whole_.RowsOfA(batch); }
    void Repair(const StorePart& part, float* sums, int64_t stride, void* memory) const override {
      const auto pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
        whole_.PackA(part.product, part.row + first, count, k0, kc, width, dst);
      };
      const auto pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
        whole_.PackB(part.product, part.col + first, count, k0, kc, width, dst);
      };
      RepairSums(f32_, part.rows, part.cols, k_, pack_a, pack_b, sums, stride, memory);
    }

   private:
    const Operands<float> whole_;
    const MicroTable<float>& f32_;
    const int64_t k_;
  };

  static PanelProblem ProblemOf(const GemmProblem& p, const GemmIsa& isa) {
    PanelProblem problem = PanelProblemOf(p, isa.thirds);
    problem.a_in_rows = LiesInRows(p.a), problem.b_in_rows = LiesInRows(p.b);
    problem.repair_bytes = RepairBytes(isa.f32, p.k);
    return problem;
  }

  const GemmProblem p_;
  const GemmIsa& isa_;
  const Panels<float> panels_;
};

// What is packed for all is searched for small exponents (NoSubnormals) while it is packed; each task looks through its
// own rows or columns. Where the exponents are too small, it multiplies in f32 instead. What all read where it lies is
// searched before.
class Bf16Gemm final : public Gemm {
 public:
  Bf16Gemm(const GemmProblem& p, const GemmIsa& isa)
      : p_(p), isa_(isa), panels_(PanelProblemOf(p, isa.bf16), isa.bf16), scan_a_(p.a, p.m, p.k) {
    num_tasks_ = panels_.num_tasks();
    rounds_ = panels_.rounds();
    prepare_tasks_ = panels_.packs_shared() ? panels_.prepare_tasks() : p.batch * scan_a_.pieces;
    shared_bytes_ = ExponentBytes() + panels_.shared_bytes();
    tiles_ = StrCat("bf16, ", panels_.ToString());
    block_ = ChooseBlocks(p.m, p.n, p.k, isa.f32.mr, isa.f32.nr, sizeof(float), p.batch);
    block_.pack_rows = p.b.col_stride == 1 ? 8 : 0;
    scratch_bytes_ =
        std::max(panels_.scratch_bytes(), BlockScratchBytes(block_, isa.f32.mr, isa.f32.nr, sizeof(float)));
  }

  void Prepare(const GemmCall& call, int64_t begin, int64_t end) const override {
    int* const exponents = static_cast<int*>(call.shared);
    for (; begin < end; ++begin) {
      if (panels_.packs_shared()) {
        const Bf16Operands operands(p_, isa_, call);
        panels_.Prepare(operands, call.round, begin, begin + 1, Panel(call));
        exponents[begin] = operands.least();
      } else if (call.round == 0) {
        const uint16_t* codes = static_cast<const uint16_t*>(call.a) + p_.Offset(p_.a, begin / scan_a_.pieces);
        exponents[begin] = scan_a_.LeastOfPiece(isa_.least_exponent, codes, begin % scan_a_.pieces);
      }
    }
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const int* exponents = static_cast<const int*>(call.shared);
    const int of_all = *std::min_element(exponents, exponents + prepare_tasks_);
    for (; begin < end; ++begin) {
      const Panels<float>::Part part = panels_.PartOf(call.round, begin);
      if (part.rows == 0 || part.cols == 0) continue;
      if (NoSubnormals(of_all, LeastOfTask(call, part)))
        panels_.Run(Operands<float>(p_, isa_.bf16, call), call.round, begin, begin + 1, Panel(call), scratch);
      else
        RunInF32(call, part, scratch);
    }
  }

 private:
  // Looks at what it packs.
  class Bf16Operands final : public Operands<float> {
   public:
    Bf16Operands(const GemmProblem& problem, const GemmIsa& isa, const GemmCall& call)
        : Operands<float>(problem, isa.bf16, call), isa_(isa) {}
    int least() const { return least_; }
    void PackA(int64_t batch, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
               float* dst) const override {
      Operands<float>::PackA(batch, first, count, k0, kc, width, dst);
      Look(kc, width, dst);
    }
    void PackB(int64_t batch, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
               float* dst) const override {
      Operands<float>::PackB(batch, first, count, k0, kc, width, dst);
      Look(kc, width, dst);
    }

   private:
    void Look(int64_t kc, int64_t width, const float* packed) const {
      const int64_t codes = isa_.bf16.Units(kc) * width * isa_.bf16.group;
      least_ = std::min(least_, isa_.least_exponent(codes, reinterpret_cast<const uint16_t*>(packed)));
    }
    const GemmIsa& isa_;
    mutable int least_ = 255;
  };

  int64_t ExponentBytes() const { return RoundUp(prepare_tasks_ * static_cast<int64_t>(sizeof(int)), 64); }
  void* Panel(const GemmCall& call) const { return static_cast<uint8_t*>(call.shared) + ExponentBytes(); }

  // Of the rows of A that a task owns, or the columns of B.
  int LeastOfTask(const GemmCall& call, const Panels<float>::Part& part) const {
    const bool of_b = panels_.shares_a();
    const StridedMatrix& m = of_b ? p_.b : p_.a;
    const int64_t first = of_b ? part.n0 * m.col_stride : part.m0 * m.row_stride;
    const ExponentScan scan(m, of_b ? p_.k : part.rows, of_b ? part.cols : p_.k);
    return scan.Least(isa_.least_exponent,
                      static_cast<const uint16_t*>(of_b ? call.b : call.a) + p_.Offset(m, part.product) + first);
  }

  void RunInF32(const GemmCall& call, const Panels<float>::Part& part, void* scratch) const {
    const Operands<float> operands(p_, isa_.f32, call);
    const auto pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
      operands.PackA(part.product, first, count, k0, kc, width, dst);
    };
    const auto pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
      operands.PackB(part.product, first, count, k0, kc, width, dst);
    };
    for (int64_t i = 0; i < part.rows; i += block_.mb)
      for (int64_t j = 0; j < part.cols; j += block_.nb)
        RunBlock<float>(isa_.f32, block_, part.m0 + i, std::min(block_.mb, part.rows - i), part.n0 + j,
                        std::min(block_.nb, part.cols - j), p_.k, pack_a, pack_b,
                        operands.Target(part.product, 0, 0, nullptr), scratch);
  }

  GemmProblem p_;
  const GemmIsa& isa_;
  Panels<float> panels_;
  ExponentScan scan_a_;  // where nothing is packed for all
  BlockShape block_;     // of f32
};

}  // namespace

bool PacksRowsOfTranspose(const GemmProblem& p, const GemmIsa& isa) {
  const bool along = p.b.type == ElementType::F32 && p.b.row_stride == 1 && p.b.col_stride != 1;
  return along && p.m < p.n && p.n * p.k * Bytes(p.b.type) > kNearBytes && Panels<float>::Suits(PanelProblemOf(p, 0)) &&
         SuitsThirds(Transposed(p), isa);
}

template <class T>
std::shared_ptr<const Gemm> MakePanelGemm(const GemmProblem& p, const GemmIsa& isa) {
  if (!Panels<T>::Suits(PanelProblemOf(p, 0))) return nullptr;
  if constexpr (std::is_same_v<T, float>) {
    if (isa.bf16.mr > 0 && p.a.type == ElementType::BF16 && p.b.type == ElementType::BF16)
      return std::make_shared<Bf16Gemm>(p, isa);
    if (SuitsThirds(p, isa)) return std::make_shared<ThirdsGemm>(p, isa);
  }
  if constexpr (std::is_same_v<T, int32_t>) {
    if (const MicroTable<T>* micro = MicroOfBytes(isa, PackSourceOf(p.a.type), PackSourceOf(p.b.type)))
      return std::make_shared<PanelGemm<T>>(p, *micro);
  }
  return std::make_shared<PanelGemm<T>>(p, MicroOf<T>(isa, p.a.type, p.b.type));
}

template std::shared_ptr<const Gemm> MakePanelGemm<float>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakePanelGemm<double>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakePanelGemm<int32_t>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakePanelGemm<int64_t>(const GemmProblem&, const GemmIsa&);

}  // namespace strop::cpu
