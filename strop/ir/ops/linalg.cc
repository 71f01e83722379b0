// cholesky, triangular-solve, fft, and the batch-norm family.
#include <algorithm>

#include "strop/ir/ops/infer.h"

namespace strop::infer {

Result<Shape> Cholesky(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Shape& a = args.operand(0);
  if (!IsFloat(a.type()) && !IsComplex(a.type()))
    return args.Error("the operand must be floating-point or complex, but is ", a);
  if (a.rank() < 2) return args.Violates(2, "the operand must have at least two dimensions, but is ", a);
  if (!SizesAgree(a, a.rank() - 2, a, a.rank() - 1))
    return args.Violates(3, "the last two dimensions must be equal, but are those of ", a);
  return a.WithoutLayout();
}

Result<Shape> TriangularSolve(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const Shape& a = args.operand(0);
  const Shape& b = args.operand(1);
  const auto& attrs = args.attrs<TriangularSolveAttrs>();
  if (!IsFloat(a.type()) && !IsComplex(a.type()))
    return args.Error("operands must be floating-point or complex, but are ", a, " and ", b);
  if (a.type() != b.type())
    return args.Violates(1, "operands must have the same element type, but are ", a, " and ", b);
  if (a.rank() < 2 || a.rank() != b.rank())
    return args.Violates(2, "operands must have the same rank, at least two, but are ", a, " and ", b);
  const int64_t last = a.rank() - 1;
  if (!SizesAgree(a, last - 1, a, last))
    return args.Violates(3, "the last two dimensions of a must be equal, but are those of ", a);
  if (!SizesAgree(a, last, b, attrs.left_side ? last - 1 : last))
    return args.Violates(3, "a ", a, " and b ", b, " cannot be multiplied with a on the ",
                         attrs.left_side ? "left" : "right");
  for (int64_t i = 0; i + 1 < last; ++i)
    if (!SizesAgree(a, i, b, i))
      return args.Violates(3, "batch dimensions must be equal, but operands are ", a, " and ", b);
  if (attrs.transpose_a == TransposeA::Invalid) return args.Error("transpose_a is not set");
  return b.WithoutLayout();
}

Result<Shape> Fft(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Shape& operand = args.operand(0);
  const auto& a = args.attrs<FftAttrs>();
  const int64_t axes = static_cast<int64_t>(a.length.size());
  if (axes > operand.rank())
    return args.Violates(1, "fft_length=", Braces(a.length), " has more dimensions than the operand ", operand);
  if (axes < 1 || axes > 3)
    return args.Violates(3, "fft_length=", Braces(a.length), " must have one, two or three entries");
  const bool from_real = a.type == FftType::Rfft, to_real = a.type == FftType::Irfft;
  const bool type_fits =
      from_real ? operand.type() == ElementType::F32 || operand.type() == ElementType::F64 : IsComplex(operand.type());
  if (!type_fits)
    return args.Violates(2, "the operand must be ", from_real ? "f32 or f64" : "complex", ", but is ", operand);
  Shape result = operand.WithoutLayout();
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t d = operand.rank() - axes + i;
    const bool half = to_real && i == axes - 1;
    if (a.length[i] < 0) return args.Error("fft_length must not be negative, but is ", Braces(a.length));
    const int64_t expected = half && a.length[i] > 0 ? a.length[i] / 2 + 1 : a.length[i];
    // A transform of no elements at all is legal whatever the lengths say.
    if (!operand.is_unbounded(d) && operand.dim(d) != expected && operand.num_elements() != 0)
      return args.Violates(to_real ? 5 : 4, "fft_length=", Braces(a.length), " needs size ", expected, " in dimension ",
                           d, " of the operand, which is ", operand);
  }
  const int64_t last = operand.rank() - 1;
  if (from_real) {
    result = result.WithType(ComplexOf(operand.type()));
    if (!operand.is_unbounded(last)) result.set_dim(last, operand.dim(last) == 0 ? 0 : a.length.back() / 2 + 1);
  } else if (to_real) {
    result = result.WithType(ComplexPart(operand.type()));
    result.set_dim(last, a.length.back());
    result.set_dynamic(last, false);
  }
  return result;
}

// ---- batch-norm -----------------------------------------------------------------------------------------------------

namespace {

// operand and, in `vectors`, arrays of one value per feature.
Status CheckBatchNorm(const Args& args, std::initializer_list<int64_t> vectors, int types_label, int size_label) {
  STROP_TRY(args.ExpectArrays());
  const Shape& operand = args.operand(0);
  const int64_t feature = args.attrs<BatchNormAttrs>().feature_index;
  if (feature < 0 || feature >= operand.rank())
    return args.Violates(1, "feature_index ", feature, " is not a dimension of the operand ", operand);
  if (!IsFloat(operand.type())) return args.Error("the operand must be floating-point, but is ", operand);
  for (int64_t i : vectors) {
    const Shape& vector = args.operand(i);
    if (vector.rank() != 1) return args.Error("operand ", i, " must have one dimension, but is ", vector);
    if (!TypesAgree(vector.type(), operand.type(), true))
      return args.Violates(types_label, "operand ", i, " must have the element type of ", operand, ", but is ", vector);
    if (!SizesAgree(vector, 0, operand, feature))
      return args.Violates(size_label, "operand ", i, " must have one value for each feature of ", operand,
                           " (dimension ", feature, "), but is ", vector);
  }
  return OkStatus();
}

// The statistics: a vector of the features, of the scale's element type.
Shape FeatureVector(const Args& args) {
  Shape vector = args.operand(1).WithoutLayout();
  Refine(vector, 0, args.operand(0), args.attrs<BatchNormAttrs>().feature_index);
  return vector;
}

}  // namespace

Result<Shape> BatchNormTraining(const Args& args) {
  STROP_TRY(CheckBatchNorm(args, {1, 2}, 2, 3));
  return Shape::Tuple({args.operand(0).WithoutLayout(), FeatureVector(args), FeatureVector(args)});
}

Result<Shape> BatchNormInference(const Args& args) {
  STROP_TRY(CheckBatchNorm(args, {1, 2, 3, 4}, 2, 3));
  return args.operand(0).WithoutLayout();
}

Result<Shape> BatchNormGrad(const Args& args) {
  STROP_TRY(CheckBatchNorm(args, {1, 2, 3}, 2, 5));
  if (!ShapesAgree(args.operand(4), args.operand(0), true))
    return args.Violates(3, "the gradient of the output must have the operand's shape ", args.operand(0), ", but is ",
                         args.operand(4));
  return Shape::Tuple({args.operand(0).WithoutLayout(), FeatureVector(args), FeatureVector(args)});
}

}  // namespace strop::infer
