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

// A task is a block of rows. Values inside the band lie in scratch memory, one block of each; whoever reads or writes
// them is told an address at which the whole value would begin if its block lay where it lies.
class BandTasks final : public TaskKernel {
 public:
  struct Product {
    std::shared_ptr<const RowGemm> gemm;
    GemmProblem problem;
    int64_t packed = 0;  // offset in scratch memory
  };
  struct Part {
    std::variant<KernelFn, Product> body;
    std::vector<BandProblem::Place> args;  // operands, then the result
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
        for (const BandProblem::Place& place : parts[n].args)
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
    if (packed_of != p.Offset(p.b, batch)) {
      product.gemm->Pack(b, packed);
      packed_of = p.Offset(p.b, batch);
    }
    product.gemm->Run(at(p.a, args[0], in_product), b, packed, at(p.c, args[2], in_product), memory + part_scratch,
                      in_product);
  }
};

Result<MadeStep> MakeBandStep(ByteReader& fields, const LoadContext& context) {
  STROP_ASSIGN(const BandProblem p, ReadProblem<BandProblem>(fields, kBandRecipe));
  auto tasks = std::make_shared<BandTasks>();
  tasks->block = p.block;
  int64_t bytes = p.value_bytes, part_bytes = 0;
  const auto take = [&bytes](int64_t size) {
    const int64_t at = bytes;
    bytes += RoundUp(size, kAlign);
    return at;
  };
  MadeStep made;
  made.tiles = StrCat(p.blocks, " blocks of ", p.block, " rows");
  size_t most_args = 0;
  // Half of the products of a band of which not all columns are wanted are zeros.
  const bool partial = std::ranges::any_of(p.parts, [](const auto& part) { return part.wanted.step != 0; });
  const GemmIsa& isa = partial ? BestGemmIsaOfVectors() : BestGemmIsa();
  for (const BandProblem::Part& planned : p.parts) {
    BandTasks::Part part;
    part.args = planned.args;
    most_args = std::max(most_args, part.args.size());
    if (planned.is_product) {
      if (part.args.size() != 3 || planned.product.m == 0) return InvalidArgument("a product of a band that is none");
      BandTasks::Product product;
      product.problem = planned.product;
      STROP_ASSIGN(product.gemm, RowGemm::Create(product.problem, p.block, isa, planned.wanted));
      product.packed = take(product.gemm->packed_bytes());
      part_bytes = std::max(part_bytes, product.gemm->scratch_bytes());
      StrAppend(made.tiles, "; ", product.gemm->tiles());
      part.body = std::move(product);
    } else {
      STROP_ASSIGN(void* const code, context.Find(planned.kernel.code));
      part_bytes = std::max(part_bytes, planned.kernel.scratch_bytes);
      part.body = reinterpret_cast<KernelFn>(code);
    }
    tasks->parts.push_back(std::move(part));
  }
  tasks->part_scratch = take(part_bytes);
  tasks->arguments = take(static_cast<int64_t>(most_args * sizeof(void*)));
  tasks->packed_matrices = take(static_cast<int64_t>(tasks->parts.size() * sizeof(int64_t)));
  KernelStep step;
  step.num_tasks = p.blocks;
  step.scratch_bytes = bytes;
  step.library = std::move(tasks);
  made.body = std::move(step);
  return made;
}

}  // namespace

const RecipeKind kBandRecipe = {"band", &MakeBandStep};

}  // namespace strop::cpu
