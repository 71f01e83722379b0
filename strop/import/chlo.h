// What the CHLO decompositions share: expressions on instructions, computed in a type wide enough for the result.
//
//   Chlo c(op);                       // f16, bf16 and f8 operands are widened to f32
//   c.Return(c.Mul(c.x(), c.Num(2))); // narrowed again
#pragma once
#include <initializer_list>
#include <span>

#include "strop/import/convert.h"

namespace strop {

class Chlo {
 public:
  explicit Chlo(OpImport& op);

  OpImport& op() { return op_; }
  Instruction* x() { return operands_[0]; }
  Instruction* y() { return operands_[1]; }
  ElementType type() const { return type_; }  // f32, f64, or complex
  bool is_double() const { return type_ == ElementType::F64; }
  const Shape& shape() const { return shape_; }

  Instruction* Num(double value);  // a constant spread over the operand's dimensions
  Instruction* Unary(Op hlo, Instruction* a);
  Instruction* Binary(Op hlo, Instruction* a, Instruction* b);
  Instruction* Add(Instruction* a, Instruction* b) { return Binary(Op::Add, a, b); }
  Instruction* Sub(Instruction* a, Instruction* b) { return Binary(Op::Subtract, a, b); }
  Instruction* Mul(Instruction* a, Instruction* b) { return Binary(Op::Multiply, a, b); }
  Instruction* Div(Instruction* a, Instruction* b) { return Binary(Op::Divide, a, b); }
  Instruction* Pow(Instruction* a, Instruction* b) { return Binary(Op::Power, a, b); }
  Instruction* Min(Instruction* a, Instruction* b) { return Binary(Op::Minimum, a, b); }
  Instruction* Max(Instruction* a, Instruction* b) { return Binary(Op::Maximum, a, b); }
  Instruction* And(Instruction* a, Instruction* b) { return Binary(Op::And, a, b); }
  Instruction* Or(Instruction* a, Instruction* b) { return Binary(Op::Or, a, b); }
  Instruction* Neg(Instruction* a) { return Unary(Op::Negate, a); }
  Instruction* Abs(Instruction* a) { return Unary(Op::Abs, a); }
  Instruction* Exp(Instruction* a) { return Unary(Op::Exp, a); }
  Instruction* Log(Instruction* a) { return Unary(Op::Log, a); }
  Instruction* Log1p(Instruction* a) { return Unary(Op::Log1p, a); }
  Instruction* Floor(Instruction* a) { return Unary(Op::Floor, a); }
  Instruction* Sqrt(Instruction* a) { return Unary(Op::Sqrt, a); }
  Instruction* Not(Instruction* a) { return Unary(Op::Not, a); }
  Instruction* Cmp(CompareDirection direction, Instruction* a, Instruction* b) {
    return op_.b().Compare(a, b, direction);
  }
  Instruction* Lt(Instruction* a, Instruction* b) { return Cmp(CompareDirection::Lt, a, b); }
  Instruction* Le(Instruction* a, Instruction* b) { return Cmp(CompareDirection::Le, a, b); }
  Instruction* Eq(Instruction* a, Instruction* b) { return Cmp(CompareDirection::Eq, a, b); }
  Instruction* Ne(Instruction* a, Instruction* b) { return Cmp(CompareDirection::Ne, a, b); }
  Instruction* If(Instruction* pred, Instruction* a, Instruction* b);

  // Horner; coefficients from the highest power down.
  Instruction* Polynomial(Instruction* x, std::span<const double> coefficients);
  Instruction* Polynomial(Instruction* x, std::initializer_list<double> c) {
    return Polynomial(x, std::span(c.begin(), c.size()));
  }

  // chlo functions that others need (chlo_gamma.cc)
  Instruction* Lgamma(Instruction* x);
  Instruction* Digamma(Instruction* x);
  Instruction* Zeta(Instruction* x, Instruction* q);

  Status Return(Instruction* value);  // converted to the type of the op's result

 private:
  OpImport& op_;
  std::vector<Instruction*> operands_;
  ElementType type_;
  Shape shape_;
};

// The operands of a broadcasting op at the shape of the result: trailing dimensions align as in NumPy, unless
// broadcast_dimensions says where the smaller one goes.
Result<std::vector<Instruction*>> BroadcastOperands(OpImport& op);

}  // namespace strop
