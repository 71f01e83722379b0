// Computes at compile time what depends on constants only, with the evaluator.
//
//   %a = f32[] add(constant(1), constant(2))       constant(3)
//
// The program must not grow and compiling must stay quick: a result is at most a few thousand elements, or no larger
// than what goes into it; what takes many steps per element (dot, convolution, windows, sort) is folded when small
// only. Broadcasts and iotas are left, since they are smaller than what they make, but for spread scalars and iotas
// beside an array. So is everything that is not a function of its operands.
#include <algorithm>

#include "strop/interp/interpreter.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMaxElements = 4096;  // of result and operands, for ops of one step an element
constexpr int64_t kMaxMoved = 1 << 16;  // for ops that only move elements
constexpr int64_t kMaxSteps = 1 << 16;  // result elements times operand elements, for the others

int64_t OperandElements(const Instruction& i) {
  int64_t n = 0;
  for (int64_t k = 0; k < i.operand_count(); ++k) n = SaturatingAdd(n, i.operand(k)->shape().num_elements());
  return n;
}

bool IsPure(const Instruction& i) {
  switch (i.op()) {
    case Op::Constant:
    case Op::Iota:
    case Op::Parameter:
    case Op::Broadcast:
    case Op::Bitcast:  // means layouts
    case Op::Copy:
    case Op::OptimizationBarrier:
    case Op::AfterAll:
    case Op::AddDependency:
    case Op::Domain:
    case Op::Tuple:
    case Op::GetTupleElement:
    case Op::CustomCall:
    case Op::Fusion:
    case Op::PartitionId:
    case Op::ReplicaId:
    case Op::SetDimensionSize:
    case Op::DynamicReshape: return false;
    default: return !Is(i.op(), kSideEffect | kControlFlow | kCollective | kAsync);
  }
}

bool IsArrayOrTupleOfArrays(const Shape& shape) {
  const auto fits = [](const Shape& s) { return s.IsArray() && s.IsStatic(); };
  if (!shape.IsTuple()) return fits(shape);
  return shape.tuple_size() > 0 && std::ranges::all_of(shape.elements(), fits);
}

Instruction* AddConstants(Computation* c, const Literal& value, Instruction* before) {
  const Shape shape = before->shape().WithoutLayout();
  if (!shape.IsTuple()) return c->AddConstant(value.WithShape(shape), before);
  std::vector<Instruction*> elements;
  for (int64_t k = 0; k < shape.tuple_size(); ++k)
    elements.push_back(c->AddConstant(value.element(k).WithShape(shape.element(k)), before));
  return c->Add(Op::Tuple, shape, elements, NoAttrs{}, "", before);
}

bool IsWorthwhile(const Instruction& i) {
  int64_t result = 0;
  for (const Shape& leaf : i.shape().Leaves()) result = SaturatingAdd(result, leaf.num_elements());
  const int64_t operands = OperandElements(i);
  if (result > kMaxMoved || operands > kMaxMoved) return false;
  if (Is(i.op(), kDataMovement)) return result <= std::max<int64_t>(operands, 64);
  if (IsElementwise(i.op())) return result <= kMaxElements;
  return SaturatingMultiply(result, operands) <= kMaxSteps && result <= kMaxElements;
}

bool IsValue(const Instruction& i) { return i.IsConstant() && i.shape().IsArray() && i.literal().has_values(); }
bool IsSpread(const Instruction& i) {
  if (i.op() == Op::Iota) return true;
  return i.op() == Op::Broadcast && i.operand(0)->shape().IsScalar() && IsValue(*i.operand(0));
}

// The operands' values; none if one is unknown or it is not worth it. A spread scalar or an iota counts beside an
// array: alone, what is computed of a scalar is computed once (elementwise-of-scalars).
std::vector<Literal> Operands(const Instruction& i, Interpreter& interpreter) {
  bool spread = false, array = false;
  for (const Instruction* o : i.operands()) {
    if (!IsValue(*o) && !IsSpread(*o)) return {};
    spread |= !IsValue(*o);
    array |= IsValue(*o) && !o->shape().IsScalar();
  }
  if ((spread && !(array && IsElementwise(i.op()))) || !IsWorthwhile(i)) return {};
  std::vector<Literal> values;
  for (const Instruction* o : i.operands()) {
    if (IsValue(*o)) {
      values.push_back(o->literal());
      continue;
    }
    std::vector<Literal> scalar;
    for (const Instruction* s : o->operands()) scalar.push_back(s->literal());
    Result<Literal> value = interpreter.EvaluateInstruction(*o, scalar);
    if (!value.ok()) return {};
    values.push_back(*std::move(value));
  }
  return values;
}

struct ConstantFolding final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    InterpretOptions options;
    options.max_loop_iterations = 1 << 12;
    Interpreter interpreter(options);
    int64_t folded = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {  // list order: what is folded feeds what comes after
        if (i->operand_count() == 0 || !IsPure(*i) || !IsArrayOrTupleOfArrays(i->shape())) continue;
        if (i->HasControlEdges()) continue;
        const std::vector<Literal> operands = Operands(*i, interpreter);
        if (operands.empty()) continue;
        Result<Literal> value = interpreter.EvaluateInstruction(*i, operands);
        if (!value.ok() || !value->shape().Compatible(i->shape())) {
          context.Decide(*i, "not folded: ", value.ok() ? "the value has another shape" : value.status().message());
          continue;
        }
        c->Replace(i, AddConstants(c, *value, i));
        ++folded;
      }
    }
    context.Count("constant-folding.folded", folded);
    return folded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeConstantFolding() { return std::make_unique<ConstantFolding>(); }

}  // namespace strop
