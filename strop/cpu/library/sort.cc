// sort by one key in a known order, topk and fft -> the kernel library.
#include "strop/analysis/scalar_pattern.h"
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

Result<SortKey> KeyOf(const Instruction& sort) {
  std::optional<SortOrder> order = MatchSortOrder(*sort.to_apply());
  if (!order) return Unimplemented("comparator %", sort.to_apply()->name(), " is no comparison of one operand");
  SortKey key;
  key.operand = order->operand;
  key.type = sort.operand(order->operand)->shape().type();
  key.descending = order->descending;
  if (IsComplex(key.type)) return Unimplemented("sort by complex numbers");
  switch (order->kind) {
    case SortOrder::Kind::Ieee: key.order = KeyOrder::kIeee; break;
    case SortOrder::Kind::Total: key.order = KeyOrder::kTotal; break;
    case SortOrder::Kind::Canonical: key.order = KeyOrder::kNumpy; break;
  }
  return key;
}

SortShape ShapeOf(const Instruction& sort) {
  const Shape& shape = sort.operand(0)->shape();
  const int64_t dim = sort.attrs<SortAttrs>().dimensions[0];
  SortShape out;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d < dim) out.outer *= shape.dim(d);
    if (d == dim) out.n = shape.dim(d);
    if (d > dim) out.inner *= shape.dim(d);
  }
  return out;
}

int64_t RowsOf(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d = 0; d + 1 < shape.rank(); ++d) n *= shape.dim(d);
  return n;
}

}  // namespace

Decision SupportsSort(const Instruction& sort) {
  auto key = KeyOf(sort);
  return key.ok() ? Decision::Yes() : Decision::No(key.status().message());
}

Result<CompiledKernel> MakeSort(const KernelSpec& spec) {
  const Instruction& i = *spec.instruction;
  SortProblem problem;
  STROP_ASSIGN(problem.key, KeyOf(i));
  problem.shape = ShapeOf(i);
  for (int64_t k = 0; k < i.operand_count(); ++k) problem.widths.push_back(Bytes(i.operand(k)->shape().type()));
  return FromRecipe(RecipeOf(kSortRecipe, problem));
}

Decision SupportsTopK(const Instruction& i) {
  const ElementType type = i.operand(0)->shape().type();
  if (IsComplex(type)) return Decision::No("topk of ", Name(type));
  if (!i.shape().IsTuple() || i.shape().element(1).type() != ElementType::S32)
    return Decision::No("topk without s32 indices");
  return Decision::Yes();
}

Result<CompiledKernel> MakeTopK(const KernelSpec& spec) {
  const Shape& input = spec.instruction->operand(0)->shape();
  const TopKAttrs& a = spec.instruction->attrs<TopKAttrs>();
  return FromRecipe(
      RecipeOf(kTopKRecipe, TopKProblem{input.type(), RowsOf(input), input.dim(input.rank() - 1), a.k, a.largest}));
}

Decision SupportsFft(const Instruction& i) {
  const ElementType type = i.operand(0)->shape().type();
  switch (type) {
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::C64:
    case ElementType::C128: break;
    default: return Decision::No("fft of ", Name(type));
  }
  const size_t rank = i.attrs<FftAttrs>().length.size();
  return rank >= 1 && rank <= 3 ? Decision::Yes() : Decision::No("fft over ", rank, " dimensions");
}

Result<CompiledKernel> MakeFft(const KernelSpec& spec) {
  const Instruction& i = *spec.instruction;
  const FftAttrs& a = i.attrs<FftAttrs>();
  const Shape& input = i.operand(0)->shape();
  FftProblem problem;
  problem.kind = static_cast<FftKind>(a.type);
  problem.wide = input.type() == ElementType::F64 || input.type() == ElementType::C128;
  problem.lengths.assign(a.length.begin(), a.length.end());
  for (int64_t d = 0; d + static_cast<int64_t>(a.length.size()) < input.rank(); ++d) problem.batch *= input.dim(d);
  return FromRecipe(RecipeOf(kFftRecipe, problem));
}

}  // namespace strop::cpu
