// sort by one key in a known order, topk and fft -> the kernel library.
#include <algorithm>
#include <cstring>

#include "strop/analysis/scalar_pattern.h"
#include "strop/cpu/kernels/fft.h"
#include "strop/cpu/kernels/sort.h"
#include "strop/cpu/kernels/top_k.h"
#include "strop/cpu/library/library.h"

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
  STROP_ASSIGN(SortKey key, KeyOf(i));
  std::vector<int64_t> widths, bytes;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    widths.push_back(Bytes(i.operand(k)->shape().type()));
    bytes.push_back(i.operand(k)->shape().byte_size());
  }
  HostStep step;
  step.fn = [key, shape = ShapeOf(i), widths, bytes](const HostCall& call) {
    std::vector<SortOperand> operands;
    const size_t n = widths.size();
    for (size_t k = 0; k < n; ++k) {
      if (call.args[n + k] != call.args[k] && bytes[k] > 0) std::memcpy(call.args[n + k], call.args[k], bytes[k]);
      operands.push_back({call.args[n + k], widths[k]});
    }
    return SortByKey(shape, operands, key, call.run.pool);
  };
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
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
  HostStep step;
  step.fn = [type = input.type(), rows = RowsOf(input), n = input.dim(input.rank() - 1),
             k = spec.instruction->attrs<TopKAttrs>().k,
             largest = spec.instruction->attrs<TopKAttrs>().largest](const HostCall& call) {
    return TopK(type, largest, rows, n, k, call.args[0], call.args[1], static_cast<int32_t*>(call.args[2]),
                call.run.pool);
  };
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
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
  const bool wide = input.type() == ElementType::F64 || input.type() == ElementType::C128;
  STROP_ASSIGN(std::shared_ptr<const FftPlan> plan, FftPlan::Create(static_cast<FftKind>(a.type), a.length, wide));
  int64_t batch = 1;
  for (int64_t d = 0; d + static_cast<int64_t>(a.length.size()) < input.rank(); ++d) batch *= input.dim(d);
  HostStep step;
  step.fn = [plan, batch](const HostCall& call) { return plan->Run(batch, call.args[0], call.args[1], call.run.pool); };
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
}

}  // namespace strop::cpu
