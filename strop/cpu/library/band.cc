// Bands: which kernels may join one, and where each of its values lies (load/band.cc runs it).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/cost.h"
#include "strop/analysis/diagonal_window.h"
#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/kernels/rounding.h"
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostColumns = int64_t{1} << 20;  // bytes of the right operand of a product, which each thread packs
constexpr int64_t kMostSums = int64_t{1} << 20;     // bytes of sums that each block of rows adds to
constexpr int64_t kAlign = 64;

// What of a product a mask lets through. Its rows are indices of the left operand's free dimensions, the first of which
// the mask is compared with; its columns those of the right one's only one.
WantedColumns WantedOf(const Instruction& dot) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  const Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
  const int64_t batch = static_cast<int64_t>(attrs.lhs_batch.size()), rank = dot.shape().rank();
  const int64_t contracted = static_cast<int64_t>(attrs.lhs_contracting.size());
  if (rhs.rank() - batch - contracted != 1 || lhs.rank() - batch - contracted < 1) return {};
  const DiagonalWindow window = WindowThatIsRead(dot, batch, rank - 1);
  if (window.everything()) return {};
  WantedColumns wanted{1, window.low, window.high};
  for (int64_t d = batch + 1; d + 1 < rank; ++d) wanted.step *= dot.shape().dim(d);
  return wanted;
}

// Does nobody in the band read it?
bool IsOnlyAResult(const Instruction& member) {
  return std::ranges::all_of(member.uses(),
                             [](const Use& use) { return use.user->op() == Op::Tuple && use.user->IsRoot(); });
}
// Does nobody in the program read this result of a band, or of what gives it?
bool IsResultOfProgram(const Instruction& fusion, int result) {
  if (fusion.parent() != fusion.parent()->module()->entry()) return false;
  const auto ends = [](const Instruction* i) { return i->IsRoot() && i->op() == Op::Tuple; };
  for (const Instruction* user : fusion.users()) {
    if (user->op() != Op::GetTupleElement) {
      if (!ends(user)) return false;
    } else if (user->tuple_index() == result && !std::ranges::all_of(user->users(), ends)) {
      return false;
    }
  }
  return true;
}

// May a product that sums along the rows of a band add up a block of them at a time?
Decision AddsUp(const GemmProblem& p, ElementType sums, const Isa& isa) {
  if (p.m * p.n * Bytes(sums) > kMostSums) return Decision::No("its sums are large");
  // They want more terms than a block has rows.
  if (isa.squares) return Decision::No("it is multiplied in squares");
  return Decision::Yes();
}

}  // namespace

Decision JoinsBand(const Instruction& kernel, const BandTask& task, const Isa& isa) {
  if (kernel.op() != Op::Dot) return LoopIsCutEvery(kernel, task.elements, isa.vector_bytes);
  if (Decision d = SupportsDot(kernel); !d) return d;
  if (!kernel.shape().IsStatic()) return Decision::No("its size is not known");
  const Result<GemmProblem> p = GemmProblemOf(kernel);
  if (!p.ok()) return Decision::No(p.status().message());
  const ElementType sums = GemmAccumulator(p->a.type, p->b.type, p->c.type);
  if (sums != ElementType::F32 && sums != ElementType::F64) return Decision::No("sums of ", Name(sums));
  if (p->k == 0 || p->n <= 1) return Decision::No("no product of matrices");
  if (task.adds_up) return AddsUp(*p, sums, isa);
  if (p->k * p->n * Bytes(sums) > kMostColumns) return Decision::No("its right operand is large");
  return Decision::Yes();
}

std::optional<Band> BandOf(const Instruction& fusion, const Isa& isa) {
  std::optional<Band> band = Band::Of(fusion);
  if (!band) return std::nullopt;
  const bool join = std::ranges::all_of(
      band->members, [&](const Instruction* m) { return static_cast<bool>(JoinsBand(*m, band->TaskOf(m), isa)); });
  return join ? band : std::nullopt;
}

std::vector<KernelSpec> GeneratedOf(const KernelSpec& whole, const Band& band) {
  const Instruction& fusion = *whole.instruction;
  const bool loops = band.is_of_loops();
  const KernelCost cost{.bytes = BytesAccessed(fusion)};
  std::vector<KernelSpec> specs;
  std::unordered_set<const Instruction*> read;  // from memory, by members before
  for (const Instruction* m : band.members) {
    if (m->op() == Op::Dot) continue;
    KernelSpec spec{.instruction = m, .in_place = {-1}, .task_elements = band.block * band.widths.at(m)};
    if (const int result = band.ResultOf(m); result >= 0 && whole.in_place[static_cast<size_t>(result)] >= 0) {
      const Instruction* place = fusion.called(0)->parameter(whole.in_place[static_cast<size_t>(result)]);
      for (int64_t k = 0; k < m->operand_count(); ++k)
        if (Band::Source(m->operand(k)) == place) spec.in_place[0] = static_cast<int>(k);
    }
    if (loops) {
      spec.streams = IsOnlyAResult(*m) && KernelFrame::PaysToStream(cost, IsResultOfProgram(fusion, band.ResultOf(m)));
      for (int64_t k = 0; k < m->operand_count(); ++k) {
        const Instruction* source = Band::Source(m->operand(k));
        spec.fetches |= source->IsParameter() && read.insert(source).second;
      }
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

Result<CompiledKernel> MakeBand(const KernelSpec& spec, const Band& band, std::span<const CompiledKernel> generated,
                                const LoadContext& context) {
  BandProblem problem{.block = band.block, .blocks = band.rows / band.block};
  problem.blocks_of_task = std::max<int64_t>(band.summed / band.block, 1);
  std::unordered_map<const Instruction*, BandProblem::Place> places;
  const int32_t operands = static_cast<int32_t>(spec.instruction->operand_count());
  for (const Instruction* p : spec.instruction->called(0)->parameters())
    places[p].arg = static_cast<int32_t>(p->parameter_number());
  const auto row_bytes = [&](const Instruction& m) { return band.widths.at(&m) * Bytes(m.shape().type()); };
  const BandMemory memory =
      PlaceValues(band, [&](const Instruction& m) { return RoundUp(band.block * row_bytes(m), kAlign); });
  problem.value_bytes = memory.bytes;
  for (const Instruction* m : band.members) {
    if (const int result = band.ResultOf(m); result >= 0)
      places[m].arg = operands + result;
    else
      places[m] = {.offset = memory.offsets.at(m), .row_bytes = row_bytes(*m)};
  }
  size_t next = 0;
  for (const Instruction* m : band.members) {
    BandProblem::Part part;
    for (int64_t k = 0; k < m->operand_count(); ++k) part.args.push_back(places.at(Band::Source(m->operand(k))));
    part.args.push_back(places.at(m));
    part.is_product = m->op() == Op::Dot;
    if (part.is_product) {
      STROP_ASSIGN(part.product, GemmProblemOf(*m));
      part.sums_rows = band.IsSum(m);
      if (band.ResultOf(m) < 0) part.wanted = WantedOf(*m);
    } else {
      Result<KernelProblem> code = ProblemOfRecipe<KernelProblem>(generated[next++].recipe, kKernelRecipe);
      if (!code.ok() || code->num_tasks != problem.blocks)
        return Internal("%", m->name(), " has no code for blocks of ", band.block, " rows");
      part.kernel = *std::move(code);
    }
    problem.parts.push_back(std::move(part));
  }
  STROP_ASSIGN(CompiledKernel kernel, FromRecipe(RecipeOf(kBandRecipe, problem), context));
  kernel.family = "band";
  kernel.flops = Flops(*spec.instruction);
  kernel.bytes = BytesAccessed(*spec.instruction);
  return kernel;
}

}  // namespace strop::cpu
