// Rules of add. x + -0 is x, but x + 0 is not: -0 + 0 = 0.
#include "strop/analysis/combiner.h"
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* AddZero(Instruction* i, Builder&) {
  if (IsInt(i)) return Other(i, IsZeroInteger);
  return IsFloat(Type(i)) ? Other(i, IsNegativeZero) : nullptr;
}

// x + -y -> x - y
Instruction* AddNegate(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!NegatesExactly(i) || !Match(i, Add(Any(&x), OneUse(Negate(Any(&y)))))) return nullptr;
  return b.Make(Op::Subtract, {x, y});
}

// x - y + y for integers
Instruction* AddWhatWasSubtracted(Instruction* i, Builder&) {
  if (!IsInt(i)) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *difference = i->operand(k), *y = i->operand(1 - k);
    if (difference->op() == Op::Subtract && difference->operand(1) == y) return difference->operand(0);
  }
  return nullptr;
}

// Is it a sum that began at zero, and so is no -0, to which 0 is added?
bool BeganAtZero(const Instruction* i) {
  if (IsInt(i) || i->op() == Op::Dot || i->op() == Op::Convolution) return true;
  while (i->op() == Op::Scatter && i->operand_count() == 3 && RecognizeCombiner(*i->to_apply()).op == Op::Add)
    i = i->operand(0);
  return IsPositiveZero(i);
}

// x + what is added up in an array of zeros: it is added up in x. (The gradient of an array that is read by several
// gathers is a sum of scatters.) What a loop carries may hold -0, and keeps it where nothing is added.
Instruction* AddScattered(Instruction* i, Builder& b) {
  if (!IsIntOrFloat(i)) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *x = i->operand(k), *scatter = i->operand(1 - k);
    if (scatter->op() != Op::Scatter || scatter->operand_count() != 3 || scatter->use_count() != 1 ||
        x->use_count() != 1 || x == scatter || RecognizeCombiner(*scatter->to_apply()).op != Op::Add)
      continue;
    const Instruction* zeros = scatter->operand(0);
    if (!(IsZeroInteger(zeros) || IsPositiveZero(zeros) || IsNegativeZero(zeros)) || !(BeganAtZero(x) || IsCarried(x)))
      continue;
    Computation* const add = scatter->to_apply();
    Instruction* const operands[] = {x, scatter->operand(1), scatter->operand(2)};
    return b.Make(Op::Scatter, operands, scatter->any_attrs(), {&add, 1}, &i->shape());
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"add-zero", Op::Add, &AddZero},
    {"add-negate", Op::Add, &AddNegate},
    {"add-subtracted", Op::Add, &AddWhatWasSubtracted},
    {"add-scattered", Op::Add, &AddScattered},
};

}  // namespace

RuleSet AddRules() { return kRules; }

}  // namespace strop::simplify
