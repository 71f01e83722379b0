// Bands: the products of a band and its generated kernels, one block of rows after the other (library/band.cc decides
// what is one).
#include <algorithm>
#include <variant>

#include "strop/cpu/kernels/gemm_rows.h"
#include "strop/cpu/kernels/rounding.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

constexpr int64_t kAlign = 64;

ElementType SumsOf(const GemmProblem& p) { return GemmAccumulator(p.a.type, p.b.type, p.c.type); }

// A task is a block of rows, or several. Values inside the band lie in scratch memory, one block of each; whoever reads
// or writes them is told an address at which the whole value would begin if its block lay where it lies.
class BandTasks final : public TaskKernel {
 public:
  struct Product {
    std::shared_ptr<const RowGemm> gemm;  // of a block
    GemmProblem problem;
    int64_t packed = 0;  // offset in scratch memory
    // Along the rows: the blocks of a task add up their sums.
    bool sums_rows = false;
    int64_t sums = -1;  // offset in scratch memory; -1: they lie where the result does
  };
  struct Part {
    std::variant<KernelFn, Product> body;
    std::vector<BandProblem::Place> args;  // operands, then the result
  };

  int64_t block = 0, blocks_of_task = 1;  // rows of a block
  std::vector<Part> parts;
  // Offsets in scratch memory: of what the parts may use, of their arguments, and of which matrix each has packed.
  int64_t part_scratch = 0, arguments = 0, packed_matrices = 0;

  void Run(const TaskCall& call, int64_t begin, int64_t end, void* scratch) const override {
    char* memory = static_cast<char*>(scratch);
    void** const args = reinterpret_cast<void**>(memory + arguments);
    int64_t* const packed_of = reinterpret_cast<int64_t*>(memory + packed_matrices);  // where in its array it begins
    std::fill_n(packed_of, parts.size(), -1);
    for (int64_t n = begin * blocks_of_task; n < end * blocks_of_task; ++n) {
      const int64_t row = n * block;
      for (size_t k = 0; k < parts.size(); ++k) {
        void** next = args;
        for (const BandProblem::Place& place : parts[k].args)
          *next++ = place.arg >= 0 ? call.args[place.arg] : memory + place.offset - row * place.row_bytes;
        if (const auto* fn = std::get_if<KernelFn>(&parts[k].body))
          (*fn)(args, n, n + 1, memory + part_scratch);
        else if (const auto& product = std::get<Product>(parts[k].body); product.sums_rows)
          AddUp(product, row, args, memory);
        else
          Multiply(product, row, args, memory, packed_of[k]);
      }
    }
  }

 private:
  // A row or a column of the matrix of a product of the batch.
  static char* At(const GemmProblem& p, const StridedMatrix& x, void* array, int64_t batch, int64_t row,
                  int64_t column = 0) {
    return static_cast<char*>(array) +
           (p.Offset(x, batch) + row * x.row_stride + column * x.col_stride) * Bytes(x.type);
  }

  void AddUp(const Product& product, int64_t row, void* const* args, char* memory) const {
    const GemmProblem& p = product.problem;
    const int64_t batch = row / p.k, in_sum = row % p.k;
    const void* b = At(p, p.b, args[1], batch, in_sum);
    char *const packed = memory + product.packed, *const c = At(p, p.c, args[2], batch, 0);
    char* const sums = product.sums < 0 ? c : memory + product.sums;
    product.gemm->Pack(b, packed);
    product.gemm->Run(At(p, p.a, args[0], batch, 0, in_sum), b, packed, sums, memory + part_scratch, 0,
                      in_sum == 0 ? RowGemm::To::kSet : RowGemm::To::kAdd);
    if (product.sums < 0 || in_sum + block < p.k) return;
    const StoreTarget target{p.c.type, reinterpret_cast<uint8_t*>(c), p.c.row_stride, p.c.col_stride};
    if (SumsOf(p) == ElementType::F64)
      StoreTile(target, 0, 0, p.m, p.n, reinterpret_cast<const double*>(sums), p.n, false);
    else
      StoreTile(target, 0, 0, p.m, p.n, reinterpret_cast<const float*>(sums), p.n, false);
  }

  void Multiply(const Product& product, int64_t row, void* const* args, char* memory, int64_t& packed_of) const {
    const GemmProblem& p = product.problem;
    const int64_t batch = row / p.m, in_product = row % p.m;
    const void* b = At(p, p.b, args[1], batch, 0);
    char* packed = memory + product.packed;
    if (packed_of != p.Offset(p.b, batch)) {
      product.gemm->Pack(b, packed);
      packed_of = p.Offset(p.b, batch);
    }
    product.gemm->Run(At(p, p.a, args[0], batch, in_product), b, packed, At(p, p.c, args[2], batch, in_product),
                      memory + part_scratch, in_product);
  }
};

// Scratch memory: what is taken of it, and what any part needs while it runs.
struct Scratch {
  int64_t bytes = 0, part_bytes = 0;
  int64_t Take(int64_t size) {
    const int64_t at = bytes;
    bytes += RoundUp(size, kAlign);
    return at;
  }
};

Result<BandTasks::Product> MakeProduct(const BandProblem::Part& planned, int64_t block, const GemmIsa& isa,
                                       Scratch& scratch) {
  if (planned.args.size() != 3 || planned.product.m == 0) return InvalidArgument("a product of a band that is none");
  GemmProblem of_block = planned.product;
  BandTasks::Product product{.problem = planned.product, .sums_rows = planned.sums_rows};
  int64_t rows = block;
  if (planned.sums_rows) {
    rows = of_block.m;
    of_block.k = block;
    if (const ElementType sums = SumsOf(of_block); of_block.c.type != sums) {
      of_block.c = {sums, of_block.n, 1};
      product.sums = scratch.Take(rows * of_block.n * Bytes(sums));
    }
  }
  STROP_ASSIGN(product.gemm, RowGemm::Create(of_block, rows, isa, planned.wanted));
  product.packed = scratch.Take(product.gemm->packed_bytes());
  scratch.part_bytes = std::max(scratch.part_bytes, product.gemm->scratch_bytes());
  return product;
}

Result<MadeStep> MakeBandStep(ByteReader& fields, const LoadContext& context) {
  STROP_ASSIGN(const BandProblem p, ReadProblem<BandProblem>(fields, kBandRecipe));
  auto tasks = std::make_shared<BandTasks>();
  tasks->block = p.block;
  tasks->blocks_of_task = p.blocks_of_task;
  Scratch scratch{.bytes = p.value_bytes};
  MadeStep made;
  made.tiles = StrCat(p.blocks, " blocks of ", p.block, " rows");
  if (p.blocks_of_task > 1) StrAppend(made.tiles, ", ", p.blocks_of_task, " a task");
  size_t most_args = 0;
  // Half of the products of a band of which not all columns are wanted are zeros.
  const bool partial = std::ranges::any_of(p.parts, [](const auto& part) { return part.wanted.step != 0; });
  const GemmIsa& isa = partial ? BestGemmIsaOfVectors() : BestGemmIsa();
  for (const BandProblem::Part& planned : p.parts) {
    BandTasks::Part part;
    part.args = planned.args;
    most_args = std::max(most_args, part.args.size());
    if (planned.is_product) {
      STROP_ASSIGN(BandTasks::Product product, MakeProduct(planned, p.block, isa, scratch));
      StrAppend(made.tiles, "; ", planned.sums_rows ? "sums of " : "", product.gemm->tiles());
      part.body = std::move(product);
    } else {
      STROP_ASSIGN(void* const code, context.Find(planned.kernel.code));
      scratch.part_bytes = std::max(scratch.part_bytes, planned.kernel.scratch_bytes);
      part.body = reinterpret_cast<KernelFn>(code);
    }
    tasks->parts.push_back(std::move(part));
  }
  tasks->part_scratch = scratch.Take(scratch.part_bytes);
  tasks->arguments = scratch.Take(static_cast<int64_t>(most_args * sizeof(void*)));
  tasks->packed_matrices = scratch.Take(static_cast<int64_t>(tasks->parts.size() * sizeof(int64_t)));
  KernelStep step;
  step.num_tasks = p.blocks / p.blocks_of_task;
  step.scratch_bytes = scratch.bytes;
  step.library = std::move(tasks);
  made.body = std::move(step);
  return made;
}

}  // namespace

const RecipeKind kBandRecipe = {"band", &MakeBandStep};

}  // namespace strop::cpu
