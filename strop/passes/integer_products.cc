// A product of floats whose operands are small integers times a power of two is one of the integers, where no sum can
// be too large for the float to hold:
//
//   f32 dot((q - 3) * 0.5, w * 0.25)     ->     f32 convert(s32 dot(s16 q - 3, s8 w)) * 0.125
//
// (q, w: s8, converted to f32). Every product and every partial sum is then an integer of at most 24 bits times one
// power of two: the float program rounds nothing, in whatever order it adds, and the integers give its very bits with
// instructions that multiply two or four at once. Scales that are no powers of two are left alone, as are sums that
// could grow beyond: there a float program rounds, and what it gives depends on where.
#include <algorithm>
#include <cmath>
#include <optional>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"
#include "strop/rewrite/match.h"

namespace strop {
namespace {

constexpr int64_t kExactF32 = int64_t{1} << 24;  // integers up to here are floats
constexpr int64_t kExactBf16 = int64_t{1} << 8;
constexpr int64_t kExactS32 = (int64_t{1} << 31) - 1;
constexpr int kMostExponent = 40;                     // of a scale: no product leaves the normal numbers
constexpr int64_t kLeastProducts = int64_t{1} << 15;  // below, the library has loops of its own for floats
constexpr int64_t kFewRows = 4, kFewFeatures = 16;    // as do products of few rows, convolutions of few features
constexpr int64_t kMostZero = 255;                    // magnitude of a zero point

// (source - zero) * 2^exponent, source of 8 bits or less; |source - zero| <= bound
struct Factor {
  Instruction* source = nullptr;
  int64_t zero = 0, bound = 0;
  int exponent = 0;
};

bool IsByte(const Instruction& i) { return IsInteger(i.shape().type()) && Bits(i.shape().type()) <= 8; }

std::optional<double> SplatOf(Instruction* i) {
  Instruction* constant = nullptr;
  if (!match::Splat(&constant)(i) || constant->literal().num_elements() == 0) return std::nullopt;
  if (constant == i && !i->literal().AllElementsEqual()) return std::nullopt;
  return constant->literal().GetDouble(0);
}

// x without a multiplication by a power of two, whose exponent is added to the factor's.
Instruction* WithoutScale(Instruction* x, Factor& factor) {
  if (x->op() != Op::Multiply) return x;
  for (int64_t k = 0; k < 2; ++k) {
    const std::optional<double> scale = SplatOf(x->operand(k));
    int exponent = 0;
    if (!scale || !(*scale > 0) || !std::isfinite(*scale) || std::frexp(*scale, &exponent) != 0.5) continue;
    factor.exponent = exponent - 1;
    return x->operand(1 - k);
  }
  return x;
}

// x without a subtraction of an integer.
Instruction* WithoutZero(Instruction* x, Factor& factor) {
  if (factor.zero != 0 || (x->op() != Op::Subtract && x->op() != Op::Add)) return x;
  const std::optional<double> number = SplatOf(x->operand(1));
  if (!number || std::fabs(*number) > kMostZero || *number != std::nearbyint(*number)) return x;
  factor.zero = static_cast<int64_t>(x->op() == Op::Subtract ? *number : -*number);
  return x->operand(0);
}

// Up to which magnitude every integer is a number of this type, and every product of it with a scale; 0: none.
int64_t ExactIn(ElementType type) {
  if (type == ElementType::BF16) return kExactBf16;
  return type == ElementType::F32 || type == ElementType::F64 ? kExactF32 : 0;
}

std::optional<Factor> FactorOf(Instruction* x) {
  Factor factor;
  const ElementType type = x->shape().type();
  if (!IsByte(*x)) {
    if (ExactIn(type) == 0) return std::nullopt;
    x = WithoutZero(WithoutScale(x, factor), factor);
    if (x->op() != Op::Convert) return std::nullopt;
    x = x->operand(0);
    if (IsInteger(x->shape().type()) && Bits(x->shape().type()) > 8) {  // the zero point was subtracted before
      if (Bits(x->shape().type()) == 64 || !IsSigned(x->shape().type())) return std::nullopt;
      x = WithoutZero(x, factor);
      if (x->op() != Op::Convert) return std::nullopt;
      x = x->operand(0);
    }
  }
  if (!IsByte(*x) || std::abs(factor.exponent) > kMostExponent) return std::nullopt;
  const int bits = Bits(x->shape().type());
  const bool is_signed = IsSigned(x->shape().type());
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = is_signed ? -low - 1 : (int64_t{1} << bits) - 1;
  factor.source = x;
  factor.bound = std::max(std::abs(low - factor.zero), std::abs(high - factor.zero));
  if (IsFloat(type) && factor.bound > ExactIn(type)) return std::nullopt;  // rounded where the zero point was taken off
  return factor;
}

struct Sizes {
  int64_t k = 1, products = 0;
};

int64_t Product(const Shape& shape, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dim(d);
  return n;
}

// The length of a sum and the number of products, if integers are worth it.
std::optional<Sizes> SizesOf(const Instruction& product) {
  const Shape &lhs = product.operand(0)->shape(), &rhs = product.operand(1)->shape();
  if (!lhs.IsStatic() || !rhs.IsStatic() || !product.shape().IsStatic()) return std::nullopt;
  Sizes sizes;
  if (product.op() == Op::Dot) {
    const DotAttrs& a = product.attrs<DotAttrs>();
    if (product.operand_count() != 2 || !a.algorithm.empty()) return std::nullopt;
    sizes.k = Product(lhs, a.lhs_contracting);
    const int64_t batch_k = Product(lhs, a.lhs_batch) * sizes.k;
    if (batch_k == 0) return std::nullopt;
    const int64_t m = lhs.num_elements() / batch_k, n = rhs.num_elements() / batch_k;
    if (std::min(m, n) <= kFewRows) return std::nullopt;
    sizes.products = m * n * sizes.k;
  } else {
    const ConvolutionAttrs& a = product.attrs<ConvolutionAttrs>();
    if (a.feature_group_count != 1 || a.batch_group_count != 1 || !a.algorithm.empty()) return std::nullopt;
    const int64_t in = rhs.dim(a.dim_labels.kernel_input_feature), out = rhs.dim(a.dim_labels.kernel_output_feature);
    if (std::min(in, out) < kFewFeatures) return std::nullopt;
    sizes.k = rhs.num_elements() / out;
    sizes.products = product.shape().num_elements() * sizes.k;
  }
  if (sizes.products < kLeastProducts) return std::nullopt;
  return sizes;
}

Instruction* Integers(Builder& b, const Factor& factor) {
  if (factor.zero == 0) return factor.source;
  Instruction* wide = b.Convert(factor.source, ElementType::S16);
  return b.Make(Op::Subtract,
                {wide, b.Splat(ElementType::S16, static_cast<double>(factor.zero), factor.source->shape().dims())});
}

struct IntegerProducts final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* product : c->instructions()) {
        if (product->op() != Op::Dot && product->op() != Op::Convolution) continue;
        const ElementType type = product->shape().type();
        if (type != ElementType::F32 && type != ElementType::F64) continue;
        const std::optional<Sizes> sizes = SizesOf(*product);
        if (!sizes) continue;
        const std::optional<Factor> lhs = FactorOf(product->operand(0)), rhs = FactorOf(product->operand(1));
        if (!lhs || !rhs) continue;
        const int64_t most = type == ElementType::F32 ? kExactF32 : kExactS32;
        if (sizes->k > most / (lhs->bound * rhs->bound)) continue;
        STROP_TRY(Rewrite(product, *lhs, *rhs));
        ++rewritten;
      }
    }
    context.Count("integer-products.rewritten", rewritten);
    return rewritten > 0;
  }

  static Status Rewrite(Instruction* product, const Factor& lhs, const Factor& rhs) {
    Builder b(product->parent());
    b.set_insert_before(product);
    b.set_metadata(product->shared_metadata());
    Attrs attrs = product->any_attrs();
    const ElementType type = product->shape().type();
    const Shape shape = product->shape().WithType(ElementType::S32);
    Instruction* operands[] = {Integers(b, lhs), Integers(b, rhs)};
    STROP_TRY(b.status());
    Instruction* value = b.Convert(b.Make(product->op(), operands, attrs, {}, &shape), type);
    const int exponent = lhs.exponent + rhs.exponent;
    STROP_TRY(b.status());
    if (exponent != 0)
      value = b.Make(Op::Multiply, {value, b.Splat(type, std::ldexp(1.0, exponent), product->shape().dims())});
    STROP_TRY(b.status());
    product->parent()->Replace(product, value);
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeIntegerProducts() { return std::make_unique<IntegerProducts>(); }

}  // namespace strop
