// Rules of reduce, dot, sort, scatter and run-time sizes.
#include <algorithm>
#include <cmath>
#include <optional>

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

// Element k of a list of integers that is a constant, equal numbers, or such lists one after the other.
std::optional<int64_t> KnownElement(const Instruction* list, int64_t k) {
  for (int depth = 0; depth < 8; ++depth) {
    if (const Literal* splat = Splat(list)) return splat->GetInt(0);
    if (list->IsConstant()) return list->literal().GetInt(k);
    if (list->op() == Op::Reshape) {
      list = list->operand(0);
    } else if (list->op() == Op::Concatenate &&
               list->shape().dim(list->dimensions()[0]) == list->shape().num_elements()) {
      int64_t n = 0;
      while (k >= list->operand(n)->shape().num_elements()) k -= list->operand(n++)->shape().num_elements();
      list = list->operand(n);
    } else {
      break;
    }
  }
  return std::nullopt;
}

// The starts and sizes of the one window of a scatter, known here, all inside the operand; false if that is not so.
bool OneKnownWindow(const Instruction& scatter, Dims& starts, Dims& sizes) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Instruction* indices = scatter.operand(1);
  const int64_t components = static_cast<int64_t>(a.scatter_dims_to_operand_dims.size());
  if (!a.input_batching_dims.empty() || indices->shape().num_elements() != components) return false;
  const Shape& operand = scatter.operand(0)->shape();
  const Shape& updates = scatter.operand(2)->shape();
  size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    sizes.push_back(Contains(a.inserted_window_dims, d) ? 1 : updates.dim(a.update_window_dims[next++]));
    starts.push_back(0);
  }
  // Without components, every window of the updates is at 0.
  if (updates.num_elements() != Shape::Array(updates.type(), Int64Vector(sizes.begin(), sizes.end())).num_elements())
    return false;
  for (int64_t k = 0; k < components; ++k) {
    const std::optional<int64_t> start = KnownElement(indices, k);
    if (!start) return false;
    starts[a.scatter_dims_to_operand_dims[k]] = *start;
  }
  for (int64_t d = 0; d < operand.rank(); ++d)
    if (starts[d] < 0 || starts[d] > operand.dim(d) - sizes[d]) return false;  // it would be skipped
  return true;
}

// x.at[1:-1].add(y): one window at a known place is a slice, the combiner, and an update in place.
Instruction* ScatterOneWindow(Instruction* i, Builder& b) {
  if (i->operand_count() != 3) return nullptr;
  const Computation& combiner = *i->called(0);
  const Instruction* root = combiner.root();
  const bool replaces = root->IsParameter() && root->parameter_number() == 1;
  const bool combines = root->operand_count() == 2 && IsElementwise(root->op()) && Type(root) == Type(i) &&
                        root->operand(0)->IsParameter() && root->operand(1)->IsParameter() &&
                        root->operand(0) != root->operand(1);
  Dims starts, sizes;
  if ((!replaces && !combines) || !OneKnownWindow(*i, starts, sizes)) return nullptr;
  Instruction* window = b.Reshape(i->operand(2), Int64Vector(sizes.begin(), sizes.end()));
  if (!replaces) {
    Dims limits;
    for (size_t d = 0; d < starts.size(); ++d) limits.push_back(starts[d] + sizes[d]);
    Instruction* current = b.Slice(i->operand(0), starts, limits, Dims(starts.size(), 1));
    const bool in_order = root->operand(0)->parameter_number() == 0;
    window = b.Make(root->op(), {in_order ? current : window, in_order ? window : current}, root->any_attrs());
  }
  SmallVector<Instruction*, 8> operands;
  operands.push_back(i->operand(0));
  operands.push_back(window);
  for (int64_t start : starts) operands.push_back(b.Constant(Literal::Scalar(start)));
  return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
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
    {"scatter-one-window", Op::Scatter, &ScatterOneWindow},
    {"static-size", Op::GetDimensionSize, &StaticSize},
};

}  // namespace

RuleSet ReductionRules() { return kRules; }

}  // namespace strop::simplify
