// dot, ragged-dot, scaled-dot.
#include <algorithm>

#include "strop/ir/ops/infer.h"

namespace strop::infer {

// The element type of a contraction: the wider operand's unless the declared one is another (XLA's
// preferred_element_type), which must not be narrower for integers.
Result<ElementType> ContractionType(const Args& args) {
  const ElementType lhs = args.operand(0).type(), rhs = args.operand(1).type();
  // Weights may be integers under float activations.
  auto real = [](ElementType t) { return IsFloat(t) || IsInteger(t); };
  const bool compatible = lhs == rhs || (real(lhs) && real(rhs));
  if (!compatible)
    return args.Error("cannot combine elements of types ", Name(lhs), " and ", Name(rhs), " (operands ",
                      args.operand(0), " and ", args.operand(1), ")");
  const bool mixed = IsFloat(lhs) != IsFloat(rhs);
  const ElementType wider = mixed ? (IsFloat(lhs) ? lhs : rhs) : Bits(rhs) > Bits(lhs) ? rhs : lhs;
  if (!args.declared || args.declared->type() == wider) return wider;
  const ElementType wanted = args.declared->type();
  if (!IsArrayType(wanted)) return args.Error("the result must be an array, but is ", *args.declared);
  if (!IsFloat(wider) && Bits(wanted) < Bits(wider))
    return args.Error("the result type ", Name(wanted), " is narrower than the operands' ", Name(wider));
  if (IsComplex(wider) && !IsComplex(wanted))
    return args.Error("the result of complex operands must be complex, but is ", Name(wanted));
  return wanted;
}

namespace {

struct DotNumbers {
  const Dims& lhs_batch;
  const Dims& lhs_contracting;
  const Dims& rhs_batch;
  const Dims& rhs_contracting;
};

Dims Concat(const Dims& a, const Dims& b) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Status CheckDotNumbers(const Args& args, const DotNumbers& n, bool check_contracted_sizes) {
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  if (n.lhs_batch.size() != n.rhs_batch.size())
    return args.Violates(1, "both operands must have as many batch dimensions, but have ", Braces(n.lhs_batch), " and ",
                         Braces(n.rhs_batch));
  if (n.lhs_contracting.size() != n.rhs_contracting.size())
    return args.Violates(2, "both operands must have as many contracting dimensions, but have ",
                         Braces(n.lhs_contracting), " and ", Braces(n.rhs_contracting));
  if (!IsUnique(Concat(n.lhs_batch, n.lhs_contracting)))
    return args.Violates(3, "lhs batch and contracting dimensions ", Braces(n.lhs_batch), " and ",
                         Braces(n.lhs_contracting), " must be unique");
  if (!IsUnique(Concat(n.rhs_batch, n.rhs_contracting)))
    return args.Violates(4, "rhs batch and contracting dimensions ", Braces(n.rhs_batch), " and ",
                         Braces(n.rhs_contracting), " must be unique");
  auto in_range = [&](int label, const Dims& dims, const Shape& shape) -> Status {
    if (InRange(dims, shape.rank())) return OkStatus();
    return args.Violates(label, Braces(dims), " are not dimensions of ", shape);
  };
  STROP_TRY(in_range(5, n.lhs_batch, lhs));
  STROP_TRY(in_range(6, n.lhs_contracting, lhs));
  STROP_TRY(in_range(7, n.rhs_batch, rhs));
  STROP_TRY(in_range(8, n.rhs_contracting, rhs));
  for (size_t i = 0; i < n.lhs_batch.size(); ++i)
    if (!SizesAgree(lhs, n.lhs_batch[i], rhs, n.rhs_batch[i]))
      return args.Violates(9, "batch dimension ", n.lhs_batch[i], " of lhs ", lhs, " and ", n.rhs_batch[i], " of rhs ",
                           rhs, " must have the same size");
  for (size_t i = 0; check_contracted_sizes && i < n.lhs_contracting.size(); ++i)
    if (!SizesAgree(lhs, n.lhs_contracting[i], rhs, n.rhs_contracting[i]))
      return args.Violates(10, "contracting dimension ", n.lhs_contracting[i], " of lhs ", lhs, " and ",
                           n.rhs_contracting[i], " of rhs ", rhs, " must have the same size");
  return OkStatus();
}

// Collects dimensions of the operands into the result's.
struct ResultDims {
  Shape shape;
  Int64Vector dims;
  std::vector<bool> dynamic;
  void Take(const Shape& from, int64_t i) {
    dims.push_back(from.dim(i));
    dynamic.push_back(from.is_dynamic(i));
  }
  void TakeRest(const Shape& from, const Dims& without) {
    for (int64_t i = 0; i < from.rank(); ++i)
      if (!Contains(without, i)) Take(from, i);
  }
  Shape Make(ElementType type) && {
    Shape made = Shape::Array(type, std::move(dims));
    for (size_t i = 0; i < dynamic.size(); ++i) made.set_dynamic(static_cast<int64_t>(i), dynamic[i]);
    return made;
  }
};

// batch, lhs free, rhs free (without `rhs_group`).
ResultDims DotDims(const Args& args, const DotNumbers& n, const Dims& rhs_group = {}) {
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  ResultDims result;
  for (size_t i = 0; i < n.lhs_batch.size(); ++i) {
    Shape one = Shape::Array(lhs.type(), {lhs.dim(n.lhs_batch[i])});
    one.set_dynamic(0, lhs.is_dynamic(n.lhs_batch[i]));
    Refine(one, 0, rhs, n.rhs_batch[i]);
    result.Take(one, 0);
  }
  result.TakeRest(lhs, Concat(n.lhs_batch, n.lhs_contracting));
  result.TakeRest(rhs, Concat(Concat(n.rhs_batch, n.rhs_contracting), rhs_group));
  return result;
}

}  // namespace

Result<Shape> Dot(const Args& args) {
  const auto& a = args.attrs<DotAttrs>();
  const bool sparse = !a.sparsity.text.empty();
  if (args.operand_count() < 2 || (!sparse && args.operand_count() != 2))
    return args.Error("expected 2 operands, but got ", args.operand_count());
  STROP_TRY(args.ExpectArrays());
  const DotNumbers n{a.lhs_batch, a.lhs_contracting, a.rhs_batch, a.rhs_contracting};
  STROP_TRY(CheckDotNumbers(args, n, !sparse));
  if (a.operand_precision.size() > 2 && !sparse)
    return args.Violates(11, "operand_precision must name two precisions, but names ", a.operand_precision.size());
  STROP_ASSIGN(ElementType type, ContractionType(args));
  return DotDims(args, n).Make(type);
}

// One dimension of lhs is cut into groups whose sizes the third operand gives at run time. Where that dimension is
// decides:
//   free         each group of rows has its own rhs:        [b,m,k] x [g,b,k,n] -> [b,m,n]
//   contracting  each group gives a result of its own:      [b,m,k] x [b,k,n]   -> [g,b,m,n]
//   batch        groups of batches; as a plain dot:         [b,m,k] x [b,k,n]   -> [b,m,n]
Result<Shape> RaggedDot(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<RaggedDotAttrs>();
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  const Shape& sizes = args.operand(2);
  const DotNumbers n{a.lhs_batch, a.lhs_contracting, a.rhs_batch, a.rhs_contracting};
  STROP_TRY(CheckDotNumbers(args, n, true));
  if (a.lhs_ragged.size() != 1 || !InRange(a.lhs_ragged, lhs.rank()))
    return args.Error("lhs_ragged_dims=", Braces(a.lhs_ragged), " must name one dimension of ", lhs);
  if (!IsInteger(sizes.type()) || sizes.rank() < 1)
    return args.Error("the group sizes must be an array of integers, but are ", sizes);
  const int64_t ragged = a.lhs_ragged[0];
  const bool batch = Contains(a.lhs_batch, ragged), contracting = Contains(a.lhs_contracting, ragged);
  const size_t wanted_groups = batch || contracting ? 0 : 1;
  if (a.rhs_group.size() != wanted_groups || !InRange(a.rhs_group, rhs.rank()))
    return args.Error("rhs_group_dims=", Braces(a.rhs_group), " must name ", wanted_groups, " dimensions of ", rhs);
  if (wanted_groups) {
    const int64_t group = a.rhs_group[0];
    if (Contains(a.rhs_batch, group) || Contains(a.rhs_contracting, group))
      return args.Error("rhs_group_dims=", Braces(a.rhs_group), " must be neither batch nor contracting dimensions");
    if (!SizesAgree(sizes, sizes.rank() - 1, rhs, group))
      return args.Error("the group sizes ", sizes, " and dimension ", group, " of rhs ", rhs,
                        " must count the same groups");
  }
  STROP_ASSIGN(ElementType type, ContractionType(args));
  ResultDims dims = DotDims(args, n, a.rhs_group);
  if (contracting) {
    dims.dims.insert(dims.dims.begin(), sizes.dim(sizes.rank() - 1));
    dims.dynamic.insert(dims.dynamic.begin(), sizes.is_dynamic(sizes.rank() - 1));
  }
  return std::move(dims).Make(type);
}

// lhs, rhs, and a scale for blocks of each: a scalar, or as many dimensions, each dividing the operand's.
Result<Shape> ScaledDot(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<DotAttrs>();
  const DotNumbers n{a.lhs_batch, a.lhs_contracting, a.rhs_batch, a.rhs_contracting};
  STROP_TRY(CheckDotNumbers(args, n, true));
  for (int64_t side = 0; side < 2; ++side) {
    const Shape& operand = args.operand(side);
    const Shape& scale = args.operand(side + 2);
    if (scale.IsScalar()) continue;
    bool fits = scale.rank() == operand.rank();
    for (int64_t i = 0; fits && i < scale.rank(); ++i)
      fits = scale.is_unbounded(i) || operand.is_unbounded(i) ||
             (scale.dim(i) == 0 ? operand.dim(i) == 0 : operand.dim(i) % scale.dim(i) == 0);
    if (!fits) return args.Error("the scale ", scale, " does not divide the operand ", operand, " into blocks");
  }
  STROP_ASSIGN(ElementType type, ContractionType(args));
  return DotDims(args, n).Make(type);
}

}  // namespace strop::infer
