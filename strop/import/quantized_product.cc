// StableHLO defines a product of quantised tensors as one of the floats that they express, whose precision it leaves
// open. The integers give the exact sums: s32 holds them, and only their scale and the result are rounded. Zero points
// are subtracted before, so that padding is zero in both.
//
//   lhs: i8, scale s, zero z    rhs: i8, scales t[j]    ->    f32(s32 dot(s16 lhs - z, rhs)) * (s t[j])
//
// Small products stay what the specification writes, in its order.
#include "strop/import/quantized_product.h"

#include <algorithm>

namespace strop {
namespace {

constexpr int64_t kLeastProducts = int64_t{1} << 15;  // below, integers are not faster
constexpr int64_t kMostSum = (int64_t{1} << 31) - 1;

const MlirQuant& QuantOf(const MlirValue& value) { return *value.type->element()->quant; }

bool IsByte(const Instruction& i) { return IsInteger(i.shape().type()) && Bits(i.shape().type()) <= 8; }

// The largest magnitude of a stored integer less its zero point.
int64_t BoundOf(ElementType type, const MlirQuant& quant) {
  const int bits = Bits(type);
  const int64_t low = IsSigned(type) ? -(int64_t{1} << (bits - 1)) : 0, high = low + (int64_t{1} << bits) - 1;
  int64_t bound = 0;
  for (int64_t zero : quant.zero_points) bound = std::max({bound, high - zero, zero - low});
  return bound;
}

int64_t Product(const Shape& shape, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dim(d);
  return n;
}

// Elements of a sum.
int64_t SumLength(const Instruction& product) {
  const Shape &lhs = product.operand(0)->shape(), &rhs = product.operand(1)->shape();
  if (product.op() == Op::Dot) return Product(lhs, product.attrs<DotAttrs>().lhs_contracting);
  const int64_t out = rhs.dim(product.attrs<ConvolutionAttrs>().dim_labels.kernel_output_feature);
  return out == 0 ? 0 : rhs.num_elements() / out;
}

// The dimension of the result that is dimension `axis` of the right operand; -1: none is.
int64_t ResultDimension(const Instruction& product, int64_t axis) {
  if (product.op() == Op::Convolution) {
    const ConvDimLabels& labels = product.attrs<ConvolutionAttrs>().dim_labels;
    return axis == labels.kernel_output_feature ? labels.output_feature : -1;
  }
  const DotAttrs& a = product.attrs<DotAttrs>();
  const auto batch = std::ranges::find(a.rhs_batch, axis);
  if (batch != a.rhs_batch.end()) return batch - a.rhs_batch.begin();
  const auto contracted = [&](int64_t d) { return std::ranges::find(a.rhs_contracting, d) != a.rhs_contracting.end(); };
  if (contracted(axis)) return -1;
  const Shape& rhs = product.operand(1)->shape();
  int64_t d = product.shape().rank() - 1;
  for (int64_t free = rhs.rank() - 1; free != axis; --free)
    if (!contracted(free) && std::ranges::find(a.rhs_batch, free) == a.rhs_batch.end()) --d;
  return d;
}

// The stored integers less their zero points.
Instruction* Centered(Builder& b, Instruction* stored, const MlirQuant& quant) {
  if (std::ranges::all_of(quant.zero_points, [](int64_t z) { return z == 0; })) return stored;
  const Int64Vector& dims = stored->shape().dims();
  Instruction* zeros = nullptr;
  if (quant.axis < 0) {
    zeros = b.Splat(ElementType::S16, static_cast<double>(quant.zero_points[0]), dims);
  } else {
    Literal literal = *Literal::Zeros(Shape::Array(ElementType::S16, {static_cast<int64_t>(quant.zero_points.size())}));
    for (size_t i = 0; i < quant.zero_points.size(); ++i) literal.SetInt(static_cast<int64_t>(i), quant.zero_points[i]);
    zeros = b.Broadcast(b.Constant(std::move(literal)), dims, {quant.axis});
  }
  return b.Make(Op::Subtract, {b.Convert(stored, ElementType::S16), zeros});
}

}  // namespace

std::optional<IntegerProduct> MultiplyIntegers(Builder& b, const MlirOp& op, Instruction* product, Instruction* lhs,
                                               Instruction* rhs) {
  const MlirQuant &left = QuantOf(*op.operands[0]), &right = QuantOf(*op.operands[1]);
  if (product->op() != Op::Dot && product->op() != Op::Convolution) return std::nullopt;
  if (!IsByte(*lhs) || !IsByte(*rhs) || !product->shape().IsStatic()) return std::nullopt;
  if (product->shape().type() != ElementType::F32) return std::nullopt;
  const int64_t length = SumLength(*product);
  if (product->shape().num_elements() * length < kLeastProducts) return std::nullopt;
  if (length > kMostSum / (BoundOf(lhs->shape().type(), left) * BoundOf(rhs->shape().type(), right)))
    return std::nullopt;
  IntegerProduct result;
  if (right.axis >= 0) {
    result.dimension = ResultDimension(*product, right.axis);
    if (result.dimension < 0) return std::nullopt;
  }
  for (double scale : right.scales) result.scales.push_back(left.scales[0] * scale);
  const Shape shape = product->shape().WithType(ElementType::S32);
  Instruction* operands[] = {Centered(b, lhs, left), Centered(b, rhs, right)};
  Instruction* sums = b.Make(product->op(), operands, product->any_attrs(), {}, &shape);
  result.sums = b.Convert(sums, ElementType::F32);
  return result;
}

}  // namespace strop
