// Quotients by constants are a product and a fused multiply-add (fixed_divisor.h), with the bits of the division.
//
//   %q = divide(%x, broadcast(c))
//   ->  %l = multiply(%x, broadcast(low)), %h = multiply(%x, broadcast(high))
//       %q = add(%h, %l), frontend_attributes={strop.contracted_operand="0",strop.quotient="1"}
//
// Constants may have several elements (means and deviations of colours). It is for targets with fused multiply-adds,
// and after the passes that know a division when they see one. XLA:CPU multiplies by the rounded inverse, which is not
// always the rounded quotient.
#include <optional>

#include "strop/ir/builder.h"
#include "strop/ir/contraction.h"
#include "strop/passes/fixed_divisor.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMostElements = 4096;  // of a constant

struct Halves {
  Literal high, low;
};

template <class F>
std::optional<Halves> SplitElements(const Literal& c) {
  Halves halves{c, c};
  const std::span<F> high = halves.high.mutable_data<F>(), low = halves.low.mutable_data<F>();
  for (size_t k = 0; k < high.size(); ++k) {
    const std::optional<FixedDivisor<F>> divisor = FixedDivisorOf(high[k]);
    if (!divisor) return std::nullopt;
    high[k] = divisor->high;
    low[k] = divisor->low;
  }
  return halves;
}

// The constant whose elements an array repeats, or null.
const Instruction* RepeatedConstant(const Instruction* i) {
  while (i->op() == Op::Broadcast || i->op() == Op::Reshape) i = i->operand(0);
  return i->IsConstant() && i->shape().IsArray() && i->literal().has_values() ? i : nullptr;
}

// The array that `like` is, made of another constant.
Instruction* Repeated(const Instruction& like, const Literal& constant, Builder& b) {
  if (like.IsConstant()) return b.Constant(constant);
  Instruction* operand = Repeated(*like.operand(0), constant, b);
  return like.op() == Op::Reshape ? b.Reshape(operand, like.shape().dims())
                                  : b.Broadcast(operand, like.shape().dims(), like.dimensions());
}

bool Multiply(Instruction& quotient) {
  const Shape& shape = quotient.shape();
  if (quotient.op() != Op::Divide || !shape.IsArray() || !shape.IsStatic() || quotient.HasControlEdges()) return false;
  const bool single = shape.type() == ElementType::F32;
  const Instruction* constant = RepeatedConstant(quotient.operand(1));
  if (!constant || (!single && shape.type() != ElementType::F64) || quotient.operand(0)->IsConstant() ||
      constant->shape().num_elements() > kMostElements)
    return false;
  const std::optional<Halves> halves =
      single ? SplitElements<float>(constant->literal()) : SplitElements<double>(constant->literal());
  if (!halves) return false;
  Builder b(quotient.parent());
  b.set_insert_before(&quotient);
  if (quotient.has_metadata()) b.set_metadata(quotient.shared_metadata());
  Instruction* x = quotient.operand(0);
  Instruction* low = b.Make(Op::Multiply, {x, Repeated(*quotient.operand(1), halves->low, b)});
  Instruction* high = b.Make(Op::Multiply, {x, Repeated(*quotient.operand(1), halves->high, b)});
  Instruction* sum = b.Make(Op::Add, {high, low});
  sum->set_frontend_attribute(kContractionMark, "0");
  sum->set_frontend_attribute(kQuotientMark, "1");
  quotient.parent()->Replace(&quotient, sum);
  return true;
}

struct ConstantDivision final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t multiplied = 0;
    for (Computation* c : module.PostOrder())
      for (Instruction* i : c->PostOrder()) multiplied += Multiply(*i);
    context.Count("constant-division.multiplied", multiplied);
    return multiplied > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeConstantDivision() { return std::make_unique<ConstantDivision>(); }

}  // namespace strop
