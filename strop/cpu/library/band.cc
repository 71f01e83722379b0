// Bands: the products of a band and its generated kernels, one block of rows after the other.
#include <algorithm>
#include <unordered_map>
#include <variant>

#include "strop/analysis/cost.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/kernels/gemm_rows.h"
#include "strop/cpu/kernels/rounding.h"
#include "strop/cpu/library/library.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostColumns = int64_t{1} << 20;  // bytes of the right operand of a product, which each thread packs
constexpr int64_t kAlign = 64;

// A task is a block of rows. Values inside the band lie in scratch memory, one block of each; whoever reads or writes
// them is told an address at which the whole value would begin if its block lay where it lies.
class BandTasks final : public TaskKernel {
 public:
  // Where a value is: an argument of the step, or a place in scratch memory.
  struct Place {
    int32_t arg = -1;
    int64_t offset = 0, row_bytes = 0;
  };
  struct Product {
    std::shared_ptr<const RowGemm> gemm;
    GemmProblem problem;
    int64_t packed = 0;  // offset in scratch memory
  };
  struct Part {
    std::variant<KernelFn, Product> body;
    std::vector<Place> args;  // operands, then the result
  };

  int64_t block = 0;  // rows
  std::vector<Part> parts;
  // Offsets in scratch memory: of what the parts may use, of their arguments, and of which matrix each has packed.
  int64_t part_scratch = 0, arguments = 0, packed_matrices = 0;

  void Run(const TaskCall& call, int64_t begin, int64_t end, void* scratch) const override {
    char* memory = static_cast<char*>(scratch);
    void** const args = reinterpret_cast<void**>(memory + arguments);
    int64_t* const packed_of = reinterpret_cast<int64_t*>(memory + packed_matrices);  // where in its array it begins
    std::fill_n(packed_of, parts.size(), -1);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task * block;
      for (size_t n = 0; n < parts.size(); ++n) {
        void** next = args;
        for (const Place& place : parts[n].args)
          *next++ = place.arg >= 0 ? call.args[place.arg] : memory + place.offset - row * place.row_bytes;
        if (const auto* fn = std::get_if<KernelFn>(&parts[n].body))
          (*fn)(args, task, task + 1, memory + part_scratch);
        else
          Multiply(std::get<Product>(parts[n].body), row, args, memory, packed_of[n]);
      }
    }
  }

 private:
  void Multiply(const Product& product, int64_t row, void* const* args, char* memory, int64_t& packed_of) const {
    const GemmProblem& p = product.problem;
    const int64_t batch = row / p.m, in_product = row % p.m;
    const auto at = [&](const StridedMatrix& x, void* array, int64_t first) {
      return static_cast<char*>(array) + (p.Offset(x, batch) + first * x.row_stride) * Bytes(x.type);
    };
    const void* b = at(p.b, args[1], 0);
    char* packed = memory + product.packed;
    if (product.gemm->packed_bytes() > 0 && packed_of != p.Offset(p.b, batch)) {
      product.gemm->Pack(b, packed);
      packed_of = p.Offset(p.b, batch);
    }
    product.gemm->Run(at(p.a, args[0], in_product), b, packed, at(p.c, args[2], in_product), memory + part_scratch);
  }
};

}  // namespace

Decision JoinsBand(const Instruction& kernel, int64_t elements) {
  if (kernel.op() != Op::Dot) return LoopIsCutEvery(kernel, elements);
  if (Decision d = SupportsDot(kernel); !d) return d;
  if (!kernel.shape().IsStatic()) return Decision::No("its size is not known");
  const Result<GemmProblem> p = GemmProblemOf(kernel);
  if (!p.ok()) return Decision::No(p.status().message());
  const ElementType sums = GemmAccumulator(p->a.type, p->b.type, p->c.type);
  if (sums != ElementType::F32 && sums != ElementType::F64) return Decision::No("sums of ", Name(sums));
  if (p->k == 0 || p->n <= 1) return Decision::No("no product of matrices");
  if (p->k * p->n * Bytes(sums) > kMostColumns) return Decision::No("its right operand is large");
  return Decision::Yes();
}

std::vector<KernelSpec> GeneratedOf(const Band& band) {
  std::vector<KernelSpec> specs;
  for (const Instruction* m : band.members)
    if (m->op() != Op::Dot)
      specs.push_back({.instruction = m, .in_place = {-1}, .task_elements = band.block * band.widths.at(m)});
  return specs;
}

Result<CompiledKernel> MakeBand(const KernelSpec& spec, const Band& band, std::span<const CompiledKernel> generated) {
  auto tasks = std::make_shared<BandTasks>();
  tasks->block = band.block;
  int64_t bytes = 0, part_bytes = 0;
  const auto take = [&bytes](int64_t size) {
    const int64_t at = bytes;
    bytes += RoundUp(size, kAlign);
    return at;
  };
  std::unordered_map<const Instruction*, BandTasks::Place> places;
  const int32_t operands = static_cast<int32_t>(spec.instruction->operand_count());
  for (const Instruction* p : spec.instruction->called(0)->parameters())
    places[p].arg = static_cast<int32_t>(p->parameter_number());
  for (const Instruction* m : band.members) {
    const int64_t row_bytes = band.widths.at(m) * Bytes(m->shape().type());
    if (const int result = band.ResultOf(m); result >= 0)
      places[m].arg = operands + result;
    else
      places[m] = {.offset = take(band.block * row_bytes), .row_bytes = row_bytes};
  }
  CompiledKernel kernel;
  kernel.family = "band";
  kernel.tiles = StrCat(band.rows / band.block, " blocks of ", band.block, " rows");
  size_t next = 0;
  for (const Instruction* m : band.members) {
    BandTasks::Part part;
    for (int64_t k = 0; k < m->operand_count(); ++k) part.args.push_back(places.at(Band::Source(m->operand(k))));
    part.args.push_back(places.at(m));
    if (m->op() == Op::Dot) {
      BandTasks::Product product;
      STROP_ASSIGN(product.problem, GemmProblemOf(*m));
      STROP_ASSIGN(product.gemm, RowGemm::Create(product.problem, band.block));
      product.packed = take(product.gemm->packed_bytes());
      part_bytes = std::max(part_bytes, product.gemm->scratch_bytes());
      StrAppend(kernel.tiles, "; ", product.gemm->tiles());
      part.body = std::move(product);
    } else {
      const auto* step = std::get_if<KernelStep>(&generated[next++].body);
      if (!step || !step->fn || step->num_tasks != band.rows / band.block)
        return Internal("%", m->name(), " has no code for blocks of ", band.block, " rows");
      part_bytes = std::max(part_bytes, step->scratch_bytes);
      part.body = step->fn;
    }
    tasks->parts.push_back(std::move(part));
  }
  size_t most_args = 0;
  for (const BandTasks::Part& part : tasks->parts) most_args = std::max(most_args, part.args.size());
  tasks->part_scratch = take(part_bytes);
  tasks->arguments = take(static_cast<int64_t>(most_args * sizeof(void*)));
  tasks->packed_matrices = take(static_cast<int64_t>(tasks->parts.size() * sizeof(int64_t)));
  kernel.flops = Flops(*spec.instruction);
  kernel.bytes = BytesAccessed(*spec.instruction);
  KernelStep step;
  step.num_tasks = band.rows / band.block;
  step.scratch_bytes = bytes;
  step.library = std::move(tasks);
  kernel.body = std::move(step);
  return kernel;
}

}  // namespace strop::cpu
