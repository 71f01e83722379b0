#include "strop/analysis/cost.h"

#include <algorithm>

namespace strop {
namespace {

int64_t ArrayElements(const Shape& shape) {
  if (shape.IsTuple()) return shape.tuple_size() == 0 ? 0 : ArrayElements(shape.element(0));
  return shape.IsArray() ? shape.num_elements() : 0;
}

int64_t Sum(int64_t (*of)(const Instruction&), const Computation& computation) {
  int64_t n = 0;
  for (const Instruction* i : computation.instructions()) n = SaturatingAdd(n, of(*i));
  return n;
}

// Elements of the contracting dimensions of one result element.
int64_t ContractedElements(const Instruction& dot) {
  const Dims* contracting = nullptr;
  if (dot.op() == Op::RaggedDot)
    contracting = &dot.attrs<RaggedDotAttrs>().lhs_contracting;
  else
    contracting = &dot.attrs<DotAttrs>().lhs_contracting;
  int64_t n = 1;
  for (int64_t d : *contracting) n = SaturatingMultiply(n, dot.operand(0)->shape().dim(d));
  return n;
}

int64_t ConvolutionFlops(const Instruction& conv) {
  const ConvolutionAttrs& a = conv.attrs<ConvolutionAttrs>();
  int64_t n = SaturatingMultiply(2, conv.shape().num_elements());
  n = SaturatingMultiply(n, conv.operand(1)->shape().dim(a.dim_labels.kernel_input_feature));
  for (const WindowDim& d : a.window.dims) n = SaturatingMultiply(n, d.size);
  return n;
}

int64_t WindowElements(const Window& window) {
  int64_t n = 1;
  for (const WindowDim& d : window.dims) n = SaturatingMultiply(n, std::max<int64_t>(d.size, 1));
  return n;
}

int64_t Log2(int64_t n) {
  int64_t bits = 0;
  while (n > 1) n >>= 1, ++bits;
  return bits;
}

}  // namespace

int64_t Flops(const Instruction& i) {
  const int64_t elements = ArrayElements(i.shape());
  switch (i.op()) {
    case Op::Dot:
    case Op::ScaledDot:
    case Op::RaggedDot: return SaturatingMultiply(SaturatingMultiply(2, elements), ContractedElements(i));
    case Op::Convolution: return ConvolutionFlops(i);
    case Op::Reduce: {
      int64_t per = std::max<int64_t>(1, i.to_apply()->instruction_count() - i.to_apply()->parameter_count());
      return SaturatingMultiply(i.operand(0)->shape().num_elements(), per);
    }
    case Op::ReduceWindow: return SaturatingMultiply(elements, WindowElements(i.attrs<WindowAttrs>().window));
    case Op::SelectAndScatter:
      return SaturatingMultiply(i.operand(1)->shape().num_elements(), WindowElements(i.attrs<WindowAttrs>().window));
    case Op::Sort: return SaturatingMultiply(elements, Log2(elements));
    case Op::Fft: return SaturatingMultiply(SaturatingMultiply(5, elements), Log2(std::max<int64_t>(elements, 2)));
    case Op::Cholesky: {
      int64_t n = i.shape().rank() ? i.shape().dim(i.shape().rank() - 1) : 1;
      return SaturatingMultiply(elements, n) / 3;
    }
    case Op::TriangularSolve: {
      int64_t n = i.operand(0)->shape().dim(i.operand(0)->shape().rank() - 1);
      return SaturatingMultiply(elements, n);
    }
    case Op::Fusion:
    case Op::Call:
    case Op::AsyncStart: return Sum(&Flops, *i.called(0));
    case Op::While: return SaturatingAdd(Sum(&Flops, *i.body()), Sum(&Flops, *i.condition()));
    case Op::Conditional: {
      int64_t most = 0;
      for (Computation* c : i.called()) most = std::max(most, Sum(&Flops, *c));
      return most;
    }
    case Op::Map: return SaturatingMultiply(elements, Sum(&Flops, *i.to_apply()));
    default: return IsElementwise(i.op()) && !Is(i.op(), kFloatMath) ? elements : 0;
  }
}

int64_t Transcendentals(const Instruction& i) {
  switch (i.op()) {
    case Op::Fusion:
    case Op::Call:
    case Op::AsyncStart: return Sum(&Transcendentals, *i.called(0));
    case Op::While: return SaturatingAdd(Sum(&Transcendentals, *i.body()), Sum(&Transcendentals, *i.condition()));
    case Op::Conditional: {
      int64_t most = 0;
      for (Computation* c : i.called()) most = std::max(most, Sum(&Transcendentals, *c));
      return most;
    }
    case Op::Map: return SaturatingMultiply(ArrayElements(i.shape()), Sum(&Transcendentals, *i.to_apply()));
    default: return Is(i.op(), kFloatMath) ? ArrayElements(i.shape()) : 0;
  }
}

namespace {

// Bytes that a fusion's parameter brings in: only the slices, if slices are all that reads it.
int64_t ParameterBytes(const Instruction& parameter) {
  int64_t n = 0;
  for (const Use& use : parameter.uses()) {
    const Op op = use.user->op();
    if (use.operand_number == 0 && (op == Op::DynamicSlice || op == Op::Slice || op == Op::Gather))
      n = SaturatingAdd(n, use.user->shape().byte_size());
    else if (use.operand_number == 0 && (op == Op::DynamicUpdateSlice || op == Op::Scatter))
      continue;
    else
      return parameter.shape().byte_size();
  }
  return std::min(n, parameter.shape().byte_size());
}

// x * x reads x once.
bool IsRepeated(const Instruction& i, int64_t k) {
  if (k > 16) return false;  // of a long concatenation nobody looks for two
  for (int64_t before = 0; before < k; ++before)
    if (i.operand(before) == i.operand(k)) return true;
  return false;
}

// A number in the code.
bool IsImmediate(const Instruction& operand) { return operand.IsConstant() && operand.shape().IsScalar(); }

}  // namespace

bool OnlyRenames(const Instruction& i) {
  switch (i.op()) {
    case Op::Parameter:
    case Op::Constant:
    case Op::Tuple:
    case Op::GetTupleElement:
    case Op::Bitcast:
    case Op::Reshape:
    case Op::AfterAll:
    case Op::OptimizationBarrier:
    case Op::AddDependency:
    case Op::Domain: return true;
    default: return false;
  }
}

int64_t BytesAccessed(const Instruction& i) {
  if (OnlyRenames(i)) return 0;
  const int64_t result = i.shape().byte_size();
  int64_t n = result;
  switch (i.op()) {
    case Op::Slice:
    case Op::DynamicSlice: return SaturatingMultiply(2, result);
    case Op::Gather: {
      const int64_t read = std::min(result, i.operand(0)->shape().byte_size());
      return SaturatingAdd(SaturatingAdd(result, read), i.operand(1)->shape().byte_size());
    }
    case Op::DynamicUpdateSlice: return SaturatingMultiply(2, i.operand(1)->shape().byte_size());
    case Op::Scatter: {  // in place: what the updates change is read and written
      const int64_t inputs = i.operand_count() / 2;
      n = i.operand(inputs)->shape().byte_size();
      for (int64_t k = inputs + 1; k < i.operand_count(); ++k)
        n = SaturatingAdd(n, SaturatingMultiply(3, i.operand(k)->shape().byte_size()));
      return n;
    }
    case Op::Fusion: {
      const Computation& fused = *i.called(0);
      // In place, if what is updated comes from outside.
      if (fused.root()->op() == Op::DynamicUpdateSlice && fused.root()->operand(0)->IsParameter())
        n = fused.root()->operand(1)->shape().byte_size();
      if (fused.root()->op() == Op::Scatter) n = SaturatingMultiply(2, fused.root()->operand(2)->shape().byte_size());
      for (const Instruction* p : fused.parameters()) n = SaturatingAdd(n, ParameterBytes(*p));
      return n;
    }
    case Op::Call: return Sum(&BytesAccessed, *i.called(0));
    case Op::While: return SaturatingAdd(Sum(&BytesAccessed, *i.body()), Sum(&BytesAccessed, *i.condition()));
    case Op::Conditional: {
      int64_t most = 0;
      for (Computation* c : i.called()) most = std::max(most, Sum(&BytesAccessed, *c));
      return most;
    }
    default:
      for (int64_t k = 0; k < i.operand_count(); ++k)
        if (!IsRepeated(i, k) && !IsImmediate(*i.operand(k))) n = SaturatingAdd(n, i.operand(k)->shape().byte_size());
      return n;
  }
}

ModuleCost CostOf(const Module& module) {
  ModuleCost cost;
  for (const Instruction* i : module.entry()->instructions()) {
    cost.flops = SaturatingAdd(cost.flops, Flops(*i));
    cost.transcendentals = SaturatingAdd(cost.transcendentals, Transcendentals(*i));
    cost.bytes_accessed = SaturatingAdd(cost.bytes_accessed, BytesAccessed(*i));
  }
  return cost;
}

}  // namespace strop
