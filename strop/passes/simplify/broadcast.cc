// Rules of constants, iotas and broadcasts, and the one that computes on a scalar what would be computed on its copies.
#include "strop/ir/physical_shape.h"
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// A constant of equal elements -> broadcast of a scalar
Instruction* ConstantSplat(Instruction* i, Builder& b) {
  const Literal& literal = i->literal();
  if (!i->shape().IsArray() || i->shape().IsScalar() || !literal.has_values()) return nullptr;
  if (literal.num_elements() < 2 || !literal.AllElementsEqual()) return nullptr;
  const size_t bytes = static_cast<size_t>(Bytes(i->shape().type()));
  Result<Literal> scalar = Literal::FromBytes(Shape::Scalar(i->shape().type()), literal.bytes().first(bytes));
  if (!scalar.ok()) return nullptr;
  return b.Broadcast(b.Constant(*std::move(scalar)), i->shape().dims(), {});
}

// Along a dimension of one element: zero
Instruction* IotaOfOne(Instruction* i, Builder& b) {
  if (i->shape().dim(i->attrs<IotaAttrs>().dimension) != 1) return nullptr;
  return b.Splat(i->shape().type(), 0, i->shape().dims());
}

// To its own shape: nothing, or a transpose
Instruction* BroadcastToSelf(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->shape().rank() != i->shape().rank()) return nullptr;
  if (IsIdentityPermutation(i->dimensions())) return i->operand(0);
  return b.Transpose(i->operand(0), InversePermutation(i->dimensions()));
}

Instruction* BroadcastBroadcast(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  if (inner->op() != Op::Broadcast) return nullptr;
  Dims dimensions;
  for (int64_t d : inner->dimensions()) dimensions.push_back(i->dimensions()[d]);
  return b.Broadcast(inner->operand(0), i->shape().dims(), dimensions);
}

// broadcast(reshape(f32[3] -> f32[1,3])) -> broadcast: sizes of one need no dimension of their own.
Instruction* BroadcastReshape(Instruction* i, Builder& b) {
  Instruction* reshape = i->operand(0);
  if (reshape->op() != Op::Reshape) return nullptr;
  Int64Vector dims;
  Dims dimensions;
  for (int64_t d = 0; d < reshape->shape().rank(); ++d) {
    if (reshape->shape().dim(d) == 1) continue;
    dims.push_back(reshape->shape().dim(d));
    dimensions.push_back(i->dimensions()[d]);
  }
  if (static_cast<int64_t>(dims.size()) == reshape->shape().rank()) return nullptr;
  return b.Broadcast(b.Reshape(reshape->operand(0), dims), i->shape().dims(), dimensions);
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

// f(transpose(x), transpose(y)) -> transpose(f(x, y)); scalars that are spread stay so.
Instruction* ElementwiseOfTransposes(Instruction* i, Builder& b) {
  const Instruction* first = nullptr;
  int64_t transposes = 0;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    const Instruction* x = i->operand(k);
    if (SpreadScalar(i->operand(k))) continue;
    if (x->op() != Op::Transpose || x->use_count() != 1 || (first && first->dimensions() != x->dimensions()))
      return nullptr;
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

constexpr Rule kRules[] = {
    {"constant-splat", Op::Constant, &ConstantSplat},
    {"iota-of-one", Op::Iota, &IotaOfOne},
    {"broadcast-to-self", Op::Broadcast, &BroadcastToSelf},
    {"broadcast-broadcast", Op::Broadcast, &BroadcastBroadcast},
    {"broadcast-reshape", Op::Broadcast, &BroadcastReshape},
};

constexpr size_t CountElementwise() {
  size_t n = 0;
  for (const OpInfo& info : kOps) n += (info.traits & kElementwise) != 0;
  return n;
}

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

RuleSet BroadcastRules() { return kRules; }
RuleSet ElementwiseRules() { return kElementwiseRules; }

}  // namespace strop::simplify
