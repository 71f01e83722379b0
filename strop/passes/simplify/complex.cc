// Rules of complex numbers and their parts: complex, real, imag.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* PartOfComplex(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() == Op::Complex) return x->operand(i->op() == Op::Real ? 0 : 1);
  if (IsComplex(Type(x))) return nullptr;
  return i->op() == Op::Real ? x : b.Splat(Type(i), 0, i->shape().dims());
}

// complex(real(x), imag(x)) -> x
Instruction* ComplexOfParts(Instruction* i, Builder&) {
  Instruction *x, *y;
  if (!Match(i, Complex(Real(Any(&x)), Imag(Any(&y)))) || x != y || !IsComplex(Type(x))) return nullptr;
  return x;
}

constexpr Rule kRules[] = {
    {"part-of-complex", Op::Real, &PartOfComplex},
    {"part-of-complex", Op::Imag, &PartOfComplex},
    {"complex-of-parts", Op::Complex, &ComplexOfParts},
};

}  // namespace

RuleSet ComplexRules() { return kRules; }

}  // namespace strop::simplify
