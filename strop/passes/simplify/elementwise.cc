// Rules that several elementwise ops share: constants that meet, signs that cancel, what absorbs or repeats itself; and
// those of every elementwise op, which compute of scalars, copies and transposes what would be computed of larger
// arrays.
#include <array>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// -x * -y -> x * y; of float quotients, too
Instruction* NegatesCancel(Instruction* i, Builder& b) {
  if (!NegatesExactly(i) || (i->op() == Op::Divide && IsInt(i))) return nullptr;
  const Instruction *x = i->operand(0), *y = i->operand(1);
  if (x->op() != Op::Negate || y->op() != Op::Negate) return nullptr;
  return b.Make(i->op(), {x->operand(0), y->operand(0)});
}

Instruction* OfItself(Instruction* i, Builder&) { return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr; }

bool IsConstant(const Instruction* i) { return Splat(i) || (i->IsConstant() && i->literal().has_values()); }

// (x + c) + d -> x + (c + d): integers wrap, so that it is exact; so for multiply, and, or, xor, minimum and maximum.
Instruction* ConstantsMeet(Instruction* i, Builder& b) {
  const bool order = i->op() == Op::Minimum || i->op() == Op::Maximum;
  if (!(order ? IsIntOrFloat(i) : IsInt(i) || (IsPred(Type(i)) && i->op() != Op::Multiply && i->op() != Op::Add)))
    return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *d = i->operand(k), *inner = i->operand(1 - k);
    if (!IsConstant(d) || inner->op() != i->op() || inner->use_count() != 1) continue;
    for (int64_t n = 0; n < 2; ++n)
      if (IsConstant(inner->operand(n)) && !IsConstant(inner->operand(1 - n)))
        return b.Make(i->op(), {inner->operand(1 - n), b.Make(i->op(), {inner->operand(n), d})});
  }
  return nullptr;
}

// -x * c -> x * -c, and -(x * c) -> x * -c: signs never change how a product or a quotient rounds.
Instruction* NegateIntoConstant(Instruction* i, Builder& b) {
  const bool outside = i->op() == Op::Negate;
  Instruction* product = outside ? i->operand(0) : i;
  if (product->op() != Op::Multiply && product->op() != Op::Divide) return nullptr;
  if (outside && product->use_count() != 1) return nullptr;
  if (product->op() == Op::Divide ? !IsFloat(Type(i)) : !IsIntOrFloat(i)) return nullptr;
  if (IsFloat(Type(i)) && !FormatOf(Type(i)).has_sign) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *c = product->operand(k), *x = product->operand(1 - k);
    if (!Splat(c) || Splat(x)) continue;
    if (!outside) {
      if (x->op() != Op::Negate) continue;
      x = x->operand(0);
    }
    Instruction* minus = NegatedConstant(b, c);
    return b.Make(product->op(), {k == 0 ? minus : x, k == 0 ? x : minus});
  }
  return nullptr;
}

// floor(floor(x)), sign(sign(x)) and their kind
Instruction* Idempotent(Instruction* i, Builder&) { return i->operand(0)->op() == i->op() ? i->operand(0) : nullptr; }

// f(|x|) -> |f(x)| of a function that hands the sign on, which may be computed of x, too: formulas of erfc ask for erf
// of both.
Instruction* OddOfAbs(Instruction* i, Builder& b) {
  const Instruction* abs = i->operand(0);
  if (abs->op() != Op::Abs || Type(abs->operand(0)) != Type(i)) return nullptr;  // of a complex number
  return b.Make(Op::Abs, {b.Make(i->op(), {abs->operand(0)}, i->any_attrs())});
}

// max(x, max(x, y)) -> max(x, y); so for minimum, and, or
Instruction* Absorbed(Instruction* i, Builder&) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *x = i->operand(k), *inner = i->operand(1 - k);
    if (inner->op() == i->op() && (inner->operand(0) == x || inner->operand(1) == x)) return inner;
  }
  return nullptr;
}

bool IsBroadcastScalar(const Instruction* i) {
  return i->shape().IsScalar() || (i->op() == Op::Broadcast && i->operand(0)->shape().IsScalar());
}

// exp(broadcast(s)) -> broadcast(exp(s)); operands that are scalars already (clamp's bounds) stay.
Instruction* ElementwiseOfScalars(Instruction* i, Builder& b) {
  if (i->shape().IsScalar()) return nullptr;
  std::vector<Instruction*> scalars;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    Instruction* x = i->operand(k);
    if (!IsBroadcastScalar(x)) return nullptr;
    scalars.push_back(x->shape().IsScalar() ? x : x->operand(0));
  }
  const Shape scalar = Shape::Scalar(i->shape().type());
  return b.Broadcast(b.Make(i->op(), scalars, i->any_attrs(), {}, &scalar), i->shape().dims(), {});
}

// f(broadcast(x), broadcast(y)) -> broadcast(f(x, y)), where both are spread in the same way: f is computed once
// instead of for each copy. Scalars that are spread are spread less.
Instruction* ElementwiseOfBroadcasts(Instruction* i, Builder& b) {
  const Instruction* first = nullptr;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    Instruction* x = i->operand(k);
    if (SpreadScalar(x)) continue;
    if (x->op() != Op::Broadcast) return nullptr;
    if (first &&
        (first->dimensions() != x->dimensions() || !first->operand(0)->shape().SameDims(x->operand(0)->shape())))
      return nullptr;
    first = x;
  }
  if (!first || first->operand(0)->shape().num_elements() >= i->shape().num_elements()) return nullptr;
  const Shape& narrow = first->operand(0)->shape();
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    Instruction* x = i->operand(k);
    if (Instruction* scalar = SpreadScalar(x))
      operands.push_back(x->shape().IsScalar() ? x : b.Broadcast(scalar, narrow.dims(), {}));
    else
      operands.push_back(x->operand(0));
  }
  const Shape shape = narrow.WithType(Type(i));
  return b.Broadcast(b.Make(i->op(), operands, i->any_attrs(), {}, &shape), i->shape().dims(), first->dimensions());
}

// f(transpose(x), transpose(y)) -> transpose(f(x, y)); scalars that are spread stay so. Transposes of what is made anew
// in any order become part of it instead: in front of f, rule transpose-elementwise would put them back.
Instruction* ElementwiseOfTransposes(Instruction* i, Builder& b) {
  const Instruction* first = nullptr;
  int64_t transposes = 0;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    const Instruction* x = i->operand(k);
    if (SpreadScalar(i->operand(k))) continue;
    if (x->op() != Op::Transpose || x->use_count() != 1 || (first && first->dimensions() != x->dimensions()))
      return nullptr;
    const Op source = x->operand(0)->op();
    if (source == Op::Broadcast || source == Op::Iota) return nullptr;
    first = x;
    ++transposes;
  }
  if (transposes < 2) return nullptr;
  std::vector<Instruction*> operands;
  const auto dims = first->operand(0)->shape().dims();
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    Instruction* x = i->operand(k);
    if (Instruction* scalar = SpreadScalar(x))
      operands.push_back(x->shape().IsScalar() ? x : b.Broadcast(scalar, dims, {}));
    else
      operands.push_back(x->operand(0));
  }
  const Shape shape = first->operand(0)->shape().WithType(Type(i));
  return b.Transpose(b.Make(i->op(), operands, i->any_attrs(), {}, &shape), first->dimensions());
}

constexpr size_t CountElementwise() {
  size_t n = 0;
  for (const OpInfo& info : kOps) n += (info.traits & kElementwise) != 0;
  return n;
}

// x & ~x = 0, x | ~x = ~0, x ^ ~x = ~0
Instruction* WithItsComplement(Instruction* i, Builder& b) {
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction* n = i->operand(k);
    if (n->op() != Op::Not || n->operand(0) != i->operand(1 - k)) continue;
    Instruction* zero = b.Splat(Type(i), 0, i->shape().dims());
    return i->op() == Op::And ? zero : b.Make(Op::Not, {zero});
  }
  return nullptr;
}

bool IsSplatOfNeutral(const Instruction* i, Op op) { return IsSplatOf(i, op == Op::Multiply ? 1 : 0); }

// Is it updates of an array of neutral elements that nothing else reads?
bool UpdatesNeutral(const Instruction* i, Op op) {
  bool updates = false;
  for (; i->op() == Op::DynamicUpdateSlice && i->use_count() == 1; i = i->operand(0)) updates = true;
  return updates && IsSplatOfNeutral(i, op);
}

// What pads a small part of an array: an update of it at a known place
bool PadsNeutral(const Instruction* i, Op op) {
  constexpr int64_t kSmall = 4;
  if (i->op() != Op::Pad || i->use_count() != 1 || !IsSplatOfNeutral(i->operand(1), op)) return false;
  if (i->operand(0)->shape().num_elements() > i->shape().num_elements() / kSmall) return false;
  return std::ranges::all_of(i->attrs<PadAttrs>().padding,
                             [](const PaddingDim& p) { return p.low >= 0 && p.high >= 0 && p.interior == 0; });
}

// x + an update of zeros: the sum of the update and what it meets is written into x (gradients of what dynamic slices
// read, above all in loops: of the window instead of the array). Where x is -0 outside of the window it stays -0, as
// under XLA. So for x - an update of zeros, and for x * one of ones; and for padding, where a loop carries x.
Instruction* WithUpdateOfNeutral(Instruction* i, Builder& b) {
  if (!IsIntOrFloat(i)) return nullptr;
  for (int64_t k = i->op() == Op::Subtract ? 1 : 0; k < 2; ++k) {
    Instruction *updated = i->operand(k), *x = i->operand(1 - k);
    const bool pads = PadsNeutral(updated, i->op()) && IsCarried(x);
    if ((!pads && !UpdatesNeutral(updated, i->op())) || SpreadScalar(x)) continue;
    Instruction *update = updated->operand(pads ? 0 : 1), *rest = x;
    if (!pads && !IsSplatOfNeutral(updated->operand(0), i->op()))
      rest = b.Make(i->op(), {k == 0 ? updated->operand(0) : x, k == 0 ? x : updated->operand(0)});
    std::vector<Instruction*> starts;
    for (int64_t d = 0; pads && d < i->shape().rank(); ++d)
      starts.push_back(b.Constant(Literal::Scalar<int64_t>(updated->attrs<PadAttrs>().padding[d].low)));
    for (int64_t d = 2; !pads && d < updated->operand_count(); ++d) starts.push_back(updated->operand(d));
    const auto& window = update->shape().dims();
    std::vector<Instruction*> operands{x};
    operands.insert(operands.end(), starts.begin(), starts.end());
    Instruction* met =
        b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{Dims(window.begin(), window.end())}, {}, nullptr);
    operands[0] = rest;
    operands.insert(operands.begin() + 1, b.Make(i->op(), {k == 0 ? update : met, k == 0 ? met : update}));
    return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"add-updated", Op::Add, &WithUpdateOfNeutral},
    {"subtract-updated", Op::Subtract, &WithUpdateOfNeutral},
    {"multiply-updated", Op::Multiply, &WithUpdateOfNeutral},
    {"add-constants", Op::Add, &ConstantsMeet},
    {"negates-cancel", Op::Multiply, &NegatesCancel},
    {"negates-cancel", Op::Divide, &NegatesCancel},
    {"maximum-self", Op::Maximum, &OfItself},
    {"minimum-self", Op::Minimum, &OfItself},
    {"multiply-constants", Op::Multiply, &ConstantsMeet},
    {"maximum-constants", Op::Maximum, &ConstantsMeet},
    {"minimum-constants", Op::Minimum, &ConstantsMeet},
    {"and-constants", Op::And, &ConstantsMeet},
    {"or-constants", Op::Or, &ConstantsMeet},
    {"xor-constants", Op::Xor, &ConstantsMeet},
    {"multiply-negate-constant", Op::Multiply, &NegateIntoConstant},
    {"divide-negate-constant", Op::Divide, &NegateIntoConstant},
    {"negate-product", Op::Negate, &NegateIntoConstant},
    {"floor-floor", Op::Floor, &Idempotent},
    {"ceil-ceil", Op::Ceil, &Idempotent},
    {"round-round", Op::RoundNearestEven, &Idempotent},
    {"round-round", Op::RoundNearestAfz, &Idempotent},
    {"sign-sign", Op::Sign, &Idempotent},
    {"erf-of-abs", Op::Erf, &OddOfAbs},
    {"tanh-of-abs", Op::Tanh, &OddOfAbs},
    {"cbrt-of-abs", Op::Cbrt, &OddOfAbs},
    {"maximum-absorbed", Op::Maximum, &Absorbed},
    {"minimum-absorbed", Op::Minimum, &Absorbed},
    {"and-absorbed", Op::And, &Absorbed},
    {"or-absorbed", Op::Or, &Absorbed},
    {"and-self", Op::And, &OfItself},
    {"or-self", Op::Or, &OfItself},
    {"and-complement", Op::And, &WithItsComplement},
    {"or-complement", Op::Or, &WithItsComplement},
    {"xor-complement", Op::Xor, &WithItsComplement},
};

// The same rules for every elementwise op.
constexpr auto kElementwiseRules = [] {
  std::array<Rule, 3 * CountElementwise()> rules{};
  size_t n = 0;
  for (const OpInfo& info : kOps) {
    if (!(info.traits & kElementwise)) continue;
    rules[n++] = {"elementwise-of-scalars", info.op, &ElementwiseOfScalars};
    rules[n++] = {"elementwise-of-broadcasts", info.op, &ElementwiseOfBroadcasts};
    rules[n++] = {"elementwise-of-transposes", info.op, &ElementwiseOfTransposes};
  }
  return rules;
}();

}  // namespace

RuleSet ElementwiseRules() { return kRules; }
RuleSet EveryElementwiseRules() { return kElementwiseRules; }

}  // namespace strop::simplify
