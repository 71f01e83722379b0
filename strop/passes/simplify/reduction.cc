// Rules of reduce, dot, sort, scatter and run-time sizes.
#include <algorithm>
#include <cmath>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

ElementType Type(const Instruction* i) { return i->shape().type(); }

bool Contains(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// ---- reduce ---------------------------------------------------------------------------------------------------------

// op(p0, p1) of a reducer of one value, or Op::kEnd.
Op ReducerOp(const Computation& c) {
  const Instruction* root = c.root();
  if (c.parameter_count() != 2 || root->operand_count() != 2 || !IsElementwise(root->op())) return Op::kEnd;
  const bool plain =
      root->operand(0) != root->operand(1) && root->operand(0)->IsParameter() && root->operand(1)->IsParameter();
  return plain && Is(root->op(), kCommutative) ? root->op() : Op::kEnd;
}

// Does combining with `init` change nothing (the sign of zero aside, which the order of a sum leaves open)?
bool IsIdentity(Op op, const Instruction* init) {
  const Literal* s = Splat(init);
  if (!s || IsComplex(s->type())) return false;
  const double v = s->GetDouble(0);
  switch (op) {
    case Op::Add: return v == 0;
    case Op::Multiply: return v == 1;
    case Op::Maximum: return IsFloat(s->type()) && FormatOf(s->type()).has_infinity ? v == -INFINITY : false;
    case Op::Minimum: return IsFloat(s->type()) && FormatOf(s->type()).has_infinity ? v == INFINITY : false;
    case Op::And: return IsAllOnes(init);
    case Op::Or: return IsZeroInteger(init);
    default: return false;
  }
}

// Over dimensions of one element: what is left is the operand.
Instruction* ReduceOfOne(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || Type(i) != Type(i->operand(0))) return nullptr;
  for (int64_t d : i->dimensions())
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  if (!IsIdentity(ReducerOp(*i->to_apply()), i->operand(1))) return nullptr;
  return b.Reshape(i->operand(0), i->shape().dims());
}

// Some of the dimensions have one element: a reduction of fewer dimensions.
Instruction* ReduceLessDims(Instruction* i, Builder& b) {
  const Shape& shape = i->operand(0)->shape();
  Int64Vector dims;
  Dims dimensions;
  int64_t ones = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool reduced = Contains(i->dimensions(), d);
    if (reduced && shape.dim(d) == 1) {
      ++ones;
      continue;
    }
    if (reduced) dimensions.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(shape.dim(d));
  }
  if (ones == 0 || dimensions.empty()) return nullptr;
  std::vector<Instruction*> operands = i->operands();
  for (size_t k = 0; k < operands.size() / 2; ++k) operands[k] = b.Reshape(operands[k], dims);
  Computation* reducer = i->to_apply();
  return b.Make(Op::Reduce, operands, DimensionsAttrs{dimensions}, {&reducer, 1}, &i->shape());
}

// Of nothing: the initial value
Instruction* ReduceOfEmpty(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || i->operand(0)->shape().num_elements() != 0 || Type(i->operand(1)) != Type(i))
    return nullptr;
  return i->shape().IsScalar() ? i->operand(1) : b.Broadcast(i->operand(1), i->shape().dims(), {});
}

// Of a transpose that keeps the order of the dimensions that stay. The order in which elements are combined is left
// open.
Instruction* ReduceTranspose(Instruction* i, Builder& b) {
  const Instruction* t = i->operand(0);
  if (i->operand_count() != 2 || t->op() != Op::Transpose || ReducerOp(*i->to_apply()) == Op::kEnd) return nullptr;
  Dims dimensions;
  int64_t last = -1;
  for (int64_t d = 0; d < t->shape().rank(); ++d) {
    const int64_t from = t->dimensions()[d];
    if (Contains(i->dimensions(), d)) {
      dimensions.push_back(from);
      continue;
    }
    if (from < last) return nullptr;
    last = from;
  }
  std::sort(dimensions.begin(), dimensions.end());
  Instruction* operands[] = {t->operand(0), i->operand(1)};
  Computation* reducer = i->to_apply();
  return b.Make(Op::Reduce, operands, DimensionsAttrs{dimensions}, {&reducer, 1}, &i->shape());
}

// ---- dot ------------------------------------------------------------------------------------------------------------

// Nothing is summed: zero
Instruction* DotOfEmpty(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || i->operand(0)->shape().num_elements() != 0 || IsComplex(Type(i))) return nullptr;
  return b.Splat(Type(i), 0, i->shape().dims());
}

// Every sum has one term: an outer product, elementwise
Instruction* DotIsOuterProduct(Instruction* i, Builder& b) {
  const auto& a = i->attrs<DotAttrs>();
  if (i->operand_count() != 2 || Type(i->operand(0)) != Type(i) || Type(i->operand(1)) != Type(i) ||
      !a.algorithm.empty())
    return nullptr;
  for (int64_t d : a.lhs_contracting)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  // Result dimensions: batch, those of lhs that are left, those of rhs that are left.
  int64_t next = static_cast<int64_t>(a.lhs_batch.size());
  auto spread = [&](Instruction* x, const Dims& batch, const Dims& contracting) {
    Int64Vector dims;
    Dims dimensions;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Contains(contracting, d)) continue;
      const auto at = std::find(batch.begin(), batch.end(), d);
      dims.push_back(x->shape().dim(d));
      dimensions.push_back(at == batch.end() ? next++ : at - batch.begin());
    }
    Instruction* reshaped = b.Reshape(x, dims);
    return i->shape().IsScalar() ? reshaped : b.Broadcast(reshaped, i->shape().dims(), dimensions);
  };
  Instruction* lhs = spread(i->operand(0), a.lhs_batch, a.lhs_contracting);
  Instruction* rhs = spread(i->operand(1), a.rhs_batch, a.rhs_contracting);
  return b.Make(IsPred(Type(i)) ? Op::And : Op::Multiply, {lhs, rhs});
}

// ---- sort, scatter, sizes -------------------------------------------------------------------------------------------

// Along a dimension of at most one element, everything is in order.
Instruction* SortOfOne(Instruction* i, Builder& b) {
  const Shape& shape = i->operand(0)->shape();
  const int64_t along = i->attrs<SortAttrs>().dimensions[0];
  if (!shape.IsScalar() && shape.dim(along) > 1) return nullptr;
  if (i->operand_count() == 1) return i->operand(0);
  return b.Tuple(i->operands());
}

Instruction* ScatterOfNothing(Instruction* i, Builder&) {
  const bool one = i->operand_count() == 3 && i->shape().Compatible(i->operand(0)->shape());
  return one && i->operand(2)->shape().num_elements() == 0 ? i->operand(0) : nullptr;
}

Instruction* StaticSize(Instruction* i, Builder& b) {
  const int64_t size = i->operand(0)->shape().dim(i->dimensions()[0]);
  return size <= INT32_MAX ? b.Constant(Literal::Scalar(static_cast<int32_t>(size))) : nullptr;
}

constexpr Rule kRules[] = {
    {"reduce-of-one", Op::Reduce, &ReduceOfOne},
    {"reduce-less-dims", Op::Reduce, &ReduceLessDims},
    {"reduce-of-empty", Op::Reduce, &ReduceOfEmpty},
    {"reduce-transpose", Op::Reduce, &ReduceTranspose},
    {"dot-of-empty", Op::Dot, &DotOfEmpty},
    {"dot-is-outer-product", Op::Dot, &DotIsOuterProduct},
    {"sort-of-one", Op::Sort, &SortOfOne},
    {"scatter-of-nothing", Op::Scatter, &ScatterOfNothing},
    {"static-size", Op::GetDimensionSize, &StaticSize},
};

}  // namespace

RuleSet ReductionRules() { return kRules; }

}  // namespace strop::simplify
