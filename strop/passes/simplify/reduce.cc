// Rules of reduce. The order in which a reduction combines its elements is left open.
#include <algorithm>

#include "strop/passes/partial_reduction.h"
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/reshape_groups.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

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

// Over dimensions of one element: what is left is the operand, combined with the initial value.
Instruction* ReduceOfOne(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || Type(i) != Type(i->operand(0))) return nullptr;
  for (int64_t d : i->dimensions())
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  const Op op = ReducerOp(*i->to_apply());
  if (op == Op::kEnd) return nullptr;
  Instruction* one = b.Reshape(i->operand(0), i->shape().dims());
  if (IsIdentity(op, i->operand(1))) return one;
  Instruction* init = i->operand(1);
  return b.Make(op, {one, i->shape().IsScalar() ? init : b.Broadcast(init, i->shape().dims(), {})});
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

// Elements are reduced in another order than the reverse has them.
Instruction* ReduceReverse(Instruction* i, Builder& b) {
  Instruction* reverse = i->operand(0);
  if (i->operand_count() != 2 || reverse->op() != Op::Reverse || ReducerOp(*i->to_apply()) == Op::kEnd) return nullptr;
  Dims left;
  for (int64_t d : reverse->dimensions())
    if (!Contains(i->dimensions(), d)) left.push_back(d);
  if (left.size() == reverse->dimensions().size()) return nullptr;
  Instruction* x = reverse->operand(0);
  Instruction* operands[] = {left.empty() ? x : b.Make(Op::Reverse, {x}, DimensionsAttrs{left}), i->operand(1)};
  Computation* reducer = i->to_apply();
  return b.Make(Op::Reduce, operands, i->any_attrs(), {&reducer, 1}, &i->shape());
}

// Sums of sums
Instruction* ReduceReduce(Instruction* i, Builder& b) {
  const Instruction* inner = i->operand(0);
  if (i->operand_count() != 2 || inner->op() != Op::Reduce || inner->operand_count() != 2 || inner->use_count() != 1 ||
      Type(inner) != Type(i) || Type(inner->operand(0)) != Type(i) ||
      inner->frontend_attributes().contains(kPartialReduction))
    return nullptr;
  const Op op = ReducerOp(*i->to_apply());
  if (op == Op::kEnd || ReducerOp(*inner->to_apply()) != op || !IsIdentity(op, inner->operand(1))) return nullptr;
  Dims dimensions;
  int64_t left = 0;  // of the inner result
  for (int64_t d = 0; d < inner->operand(0)->shape().rank(); ++d)
    if (Contains(inner->dimensions(), d) || Contains(i->dimensions(), left++)) dimensions.push_back(d);
  Instruction* operands[] = {inner->operand(0), i->operand(1)};
  Computation* reducer = i->to_apply();
  return b.Make(Op::Reduce, operands, DimensionsAttrs{dimensions}, {&reducer, 1}, &i->shape());
}

// y summed up so often. A number that small floats cannot count to is one for f32, which rounds to 24 bits at worst.
Instruction* Times(Instruction* y, int64_t copies, Builder& b) {
  const ElementType type = Type(y);
  const bool by_f32 = IsFloat(type) && Bits(type) < 32 && copies > int64_t{1} << FormatOf(type).mantissa_bits;
  if (by_f32) y = b.Convert(y, ElementType::F32);
  y = b.Make(Op::Multiply, {y, b.Splat(Type(y), static_cast<double>(copies), y->shape().dims())});
  return by_f32 ? b.Convert(y, type) : y;
}

// Of copies: each is reduced once, a sum over them is a product with their number, and the largest is each of them.
Instruction* ReduceBroadcast(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (i->operand_count() != 2 || x->op() != Op::Broadcast || Type(x) != Type(i) || i->shape().num_elements() == 0)
    return nullptr;
  const Op op = ReducerOp(*i->to_apply());
  if (!IsIdentity(op, i->operand(1)) || op == Op::Multiply || x->shape().rank() == x->operand(0)->shape().rank())
    return nullptr;
  int64_t copies = 1, kept = 0;
  Dims own_reduced, own_kept;  // dimensions of the operand; of the result
  std::vector<int64_t> place(x->shape().rank(), -1);
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (!Contains(i->dimensions(), d)) place[d] = kept++;
    if (Contains(i->dimensions(), d) && !Contains(x->dimensions(), d)) copies *= x->shape().dim(d);
  }
  if (op == Op::Add && !IsInteger(Type(i)) && !IsFloat(Type(i))) return nullptr;
  for (int64_t k = 0; k < x->operand(0)->shape().rank(); ++k) {
    if (place[x->dimensions()[k]] < 0) {
      own_reduced.push_back(k);
    } else {
      own_kept.push_back(place[x->dimensions()[k]]);
    }
  }
  Instruction* y = x->operand(0);
  if (!own_reduced.empty()) y = b.Reduce(y, i->operand(1), own_reduced, i->to_apply());
  const bool summed = !own_reduced.empty();  // from the initial value on: 0 + -0 is 0, and so it stays
  if (op == Op::Add) y = Times(y, copies, b);
  if (op == Op::Add && !summed && IsFloat(Type(y)) && !IsNegativeZero(i->operand(1)))
    y = b.Make(Op::Add, {y, b.Splat(Type(y), 0, y->shape().dims())});
  return i->shape().IsScalar() ? y : b.Broadcast(y, i->shape().dims(), own_kept);
}

// A reshape within what is reduced, or within what stays
Instruction* ReduceReshape(Instruction* i, Builder& b) {
  if (i->frontend_attributes().contains(kPartialReduction)) return nullptr;
  const Instruction* x = i->operand(0);
  if (i->operand_count() != 2 || x->op() != Op::Reshape || Type(x) != Type(i) || i->shape().num_elements() == 0 ||
      ReducerOp(*i->to_apply()) == Op::kEnd)
    return nullptr;
  Dims dimensions;
  for (const ReshapeGroup& group : ReshapeGroups(x->operand(0)->shape(), x->shape())) {
    const int64_t reduced =
        std::count_if(group.to.begin(), group.to.end(), [&](int64_t d) { return Contains(i->dimensions(), d); });
    if (reduced == 0) continue;
    if (reduced != static_cast<int64_t>(group.to.size())) return nullptr;
    for (int64_t d : group.from) dimensions.push_back(d);
  }
  if (dimensions.empty()) return nullptr;
  return b.Reshape(b.Reduce(x->operand(0), i->operand(1), dimensions, i->to_apply()), i->shape().dims());
}

// Over equal parts one behind the other, as of a stack: the parts are combined element by element, each where it is
// computed, and what has no other place to go is not. Sums of halves would be rounded each time.
constexpr int64_t kMostParts = 64;

Instruction* ReduceOfParts(Instruction* i, Builder& b) {
  const Instruction* parts = i->operand(0);
  if (i->operand_count() != 2 || parts->op() != Op::Concatenate || parts->use_count() != 1 ||
      parts->operand_count() > kMostParts || Type(parts) != Type(i) || i->shape().num_elements() == 0 ||
      i->frontend_attributes().contains(kPartialReduction))
    return nullptr;
  const Op op = ReducerOp(*i->to_apply());
  const bool rounds = IsFloat(Type(i)) && Bits(Type(i)) < 32 && op != Op::Maximum && op != Op::Minimum;
  if (op == Op::kEnd || rounds || !Contains(i->dimensions(), parts->dimensions()[0])) return nullptr;
  Instruction* combined = parts->operand(0);
  for (int64_t k = 1; k < parts->operand_count(); ++k) {
    if (parts->operand(k)->shape().dims() != combined->shape().dims()) return nullptr;
    combined = b.Make(op, {combined, parts->operand(k)});
  }
  return b.Reduce(combined, i->operand(1), i->dimensions(), i->to_apply());
}

// Sums of products of what is spread to the same dimensions: a dot (matrices multiplied by hand). Where one side has
// all dimensions, or few numbers are summed, nothing is won.
constexpr int64_t kWorthADot = 16;

Instruction* ReduceIsDot(Instruction* i, Builder& b) {
  const Instruction* product = i->operand(0);
  const bool numbers = IsInteger(Type(i)) || IsFloat(Type(i));
  if (i->operand_count() != 2 || product->op() != Op::Multiply || product->use_count() != 1 || !numbers ||
      Type(product) != Type(i) || ReducerOp(*i->to_apply()) != Op::Add || !IsIdentity(Op::Add, i->operand(1)))
    return nullptr;
  const Instruction *x = product->operand(0), *y = product->operand(1);
  if (x->op() != Op::Broadcast || y->op() != Op::Broadcast) return nullptr;
  auto position = [](const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) - dims.begin(); };
  DotAttrs attrs;
  Dims batch, free_x, free_y;  // dimensions of the product
  int64_t summed = 1, rows = 1, columns = 1;
  for (int64_t d = 0; d < product->shape().rank(); ++d) {
    const bool in_x = Contains(x->dimensions(), d), in_y = Contains(y->dimensions(), d);
    const int64_t size = product->shape().dim(d);
    if (Contains(i->dimensions(), d)) {
      if (!in_x || !in_y) return nullptr;
      attrs.lhs_contracting.push_back(position(x->dimensions(), d));
      attrs.rhs_contracting.push_back(position(y->dimensions(), d));
      summed *= size;
    } else if (in_x && in_y) {
      attrs.lhs_batch.push_back(position(x->dimensions(), d));
      attrs.rhs_batch.push_back(position(y->dimensions(), d));
      batch.push_back(d);
    } else if (in_x) {
      free_x.push_back(d);
      rows *= size;
    } else if (in_y) {
      free_y.push_back(d);
      columns *= size;
    } else {
      return nullptr;
    }
  }
  if (summed < kWorthADot || rows < kWorthADot || columns < kWorthADot) return nullptr;
  // The dot's dimensions: batch, then those of x in its order, then those of y in its own.
  auto by_place = [](const Dims& dims) {
    return [&dims](int64_t p, int64_t q) {
      return std::find(dims.begin(), dims.end(), p) < std::find(dims.begin(), dims.end(), q);
    };
  };
  std::sort(free_x.begin(), free_x.end(), by_place(x->dimensions()));
  std::sort(free_y.begin(), free_y.end(), by_place(y->dimensions()));
  if (!free_x.empty() && !free_y.empty() && free_y[0] < free_x[0]) {  // so that nothing has to be transposed
    std::swap(x, y);
    std::swap(free_x, free_y);
    std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
    std::swap(attrs.lhs_batch, attrs.rhs_batch);
  }
  Dims order = batch;
  order.insert(order.end(), free_x.begin(), free_x.end());
  order.insert(order.end(), free_y.begin(), free_y.end());
  Instruction* dot = b.Dot(x->operand(0), y->operand(0), std::move(attrs), Type(i));
  Dims sorted = order, permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == order) return dot;
  for (int64_t d : sorted) permutation.push_back(position(order, d));
  return b.Transpose(dot, permutation);
}

constexpr Rule kRules[] = {
    {"reduce-of-one", Op::Reduce, &ReduceOfOne},     {"reduce-less-dims", Op::Reduce, &ReduceLessDims},
    {"reduce-of-empty", Op::Reduce, &ReduceOfEmpty}, {"reduce-transpose", Op::Reduce, &ReduceTranspose},
    {"reduce-reduce", Op::Reduce, &ReduceReduce},    {"reduce-broadcast", Op::Reduce, &ReduceBroadcast},
    {"reduce-reshape", Op::Reduce, &ReduceReshape},  {"reduce-is-dot", Op::Reduce, &ReduceIsDot},
    {"reduce-of-parts", Op::Reduce, &ReduceOfParts}, {"reduce-reverse", Op::Reduce, &ReduceReverse},
};

}  // namespace

RuleSet ReduceRules() { return kRules; }

}  // namespace strop::simplify
