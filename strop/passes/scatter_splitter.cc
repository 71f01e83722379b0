// Many updates of a large result, sums or choices among them, are cut into parts, each with a result of its own, so
// that threads can share them:
//
//   %s = f32[65536] scatter(%x, s32[1048576,1] %i, f32[1048576] %u), to_apply=%add
//   ->
//   %parts = f32[4,65536] scatter(%zeros, s32[4,262144,1] reshape(%i), f32[4,262144] reshape(%u)),
//            input_batching_dims={0}, scatter_indices_batching_dims={0}, to_apply=%add
//   %s = f32[65536] add(%x, f32[65536] reduce(%parts, -0), dimensions={0})
//
// The parts follow from the shapes alone, so that the order of a sum does. Within a part it is that of the updates.
// What chooses (a maximum) may choose from the operand more than once: each part begins with it.
#include <algorithm>
#include <numeric>

#include "strop/analysis/combiner.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kParts[] = {4, 2, 3, 5};            // the first that divides the updates
constexpr int64_t kLeastElements = int64_t{1} << 16;  // of the updates: what is less is not worth two more kernels
constexpr int64_t kSumsAPlace = 2;        // of each part, on average: fewer, and the parts are most of the work
constexpr int64_t kLargestWindow = 32;    // elements; the columns of wider ones are shared out
constexpr int64_t kLeastBytes = 1 << 10;  // of the result; into smaller ones, additions take turns in one kernel

// Is it all the same how often and in which order it is applied to the same values?
bool Chooses(Op op) { return op == Op::Maximum || op == Op::Minimum || op == Op::And || op == Op::Or; }

// How many parts; 1 where splitting gains nothing, or is not known to be right.
int64_t PartsOf(const Instruction& scatter) {
  if (scatter.operand_count() != 3 || !scatter.shape().IsArray()) return 1;
  for (int64_t k = 0; k < 3; ++k)
    if (!scatter.operand(k)->shape().IsArray() || !scatter.operand(k)->shape().IsStatic()) return 1;
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operand(2)->shape();
  const ElementType type = operand.type();
  const Op combines = RecognizeCombiner(*scatter.to_apply()).op;
  const bool wide = type == ElementType::F32 || type == ElementType::F64 || (IsInteger(type) && Bits(type) >= 32);
  if (!Chooses(combines) && !(combines == Op::Add && wide)) return 1;
  if (a.unique_indices || !a.input_batching_dims.empty() || a.index_vector_dim == 0) return 1;
  if (updates.rank() == 0 || Contains(a.update_window_dims, 0)) return 1;
  int64_t window = 1;
  for (int64_t d : a.update_window_dims) window *= updates.dim(d);
  if (window > kLargestWindow || updates.num_elements() < kLeastElements || operand.byte_size() < kLeastBytes) return 1;
  for (int64_t parts : kParts)
    if (updates.dim(0) % parts == 0 && operand.num_elements() * parts * kSumsAPlace <= updates.num_elements())
      return parts;
  return 1;
}

// The first dimension in two.
Instruction* Cut(Builder& b, Instruction* i, int64_t parts) {
  Int64Vector dims{parts, i->shape().dim(0) / parts};
  for (int64_t d = 1; d < i->shape().rank(); ++d) dims.push_back(i->shape().dim(d));
  return b.Reshape(i, dims);
}

// The n-th of the first dimension.
Instruction* Nth(Builder& b, Instruction* i, int64_t n) {
  const size_t rank = static_cast<size_t>(i->shape().rank());
  Dims start(rank, 0), limit(i->shape().dims().begin(), i->shape().dims().end());
  start[0] = n, limit[0] = n + 1;
  return b.Slice(i, start, limit, Dims(rank, 1));
}

void Split(Instruction& scatter, int64_t parts) {
  Builder b(scatter.parent());
  b.set_insert_before(&scatter);
  if (scatter.has_metadata()) b.set_metadata(scatter.shared_metadata());
  Instruction* operand = scatter.operand(0);
  const Shape& shape = operand->shape();
  ScatterAttrs attrs = scatter.attrs<ScatterAttrs>();
  for (Dims* dims : {&attrs.update_window_dims, &attrs.inserted_window_dims, &attrs.scatter_dims_to_operand_dims})
    for (int64_t& d : *dims) ++d;
  attrs.input_batching_dims = attrs.scatter_indices_batching_dims = {0};
  ++attrs.index_vector_dim;
  Int64Vector dims{parts};
  for (int64_t d : shape.dims()) dims.push_back(d);
  const Op combines = RecognizeCombiner(*scatter.to_apply()).op;
  // What changes no sum, -0 neither; integers have one zero.
  Instruction* nothing = Chooses(combines) ? nullptr : b.Scalar(shape.type(), -0.0);
  Dims behind(static_cast<size_t>(shape.rank()));
  std::iota(behind.begin(), behind.end(), int64_t{1});
  Instruction* into = nothing ? b.Broadcast(nothing, dims, {}) : b.Broadcast(operand, dims, behind);
  Instruction *indices = Cut(b, scatter.operand(1), parts), *updates = Cut(b, scatter.operand(2), parts);
  Instruction* all = b.Make(Op::Scatter, {into, indices, updates}, attrs, {scatter.to_apply()});
  Instruction* result = nullptr;
  if (nothing) {
    result = b.Make(Op::Add, {operand, b.Reduce(all, nothing, {0}, scatter.to_apply())});
  } else {
    for (int64_t k = 0; k < parts; ++k) {
      Instruction* part = b.Reshape(Nth(b, all, k), Int64Vector(shape.dims().begin(), shape.dims().end()));
      result = result ? b.Make(combines, {result, part}) : part;
    }
  }
  if (b.status().ok()) scatter.parent()->Replace(&scatter, result);
}

struct ScatterSplitter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t split = 0;
    for (Computation* c : module.PostOrder())
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::Scatter || i->HasControlEdges()) continue;
        const int64_t parts = PartsOf(*i);
        if (parts == 1) continue;
        Split(*i, parts);
        ++split;
      }
    context.Count("scatter-splitter.split", split);
    return split > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeScatterSplitter() { return std::make_unique<ScatterSplitter>(); }

}  // namespace strop
