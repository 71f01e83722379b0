#include "tests/fuzz/conditioning.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "strop/ir/builder.h"
#include "tests/fuzz/random.h"

namespace strop::fuzz {
namespace {

bool RoundsScalars(Op op) {
  return Is(op, kFloatMath) || op == Op::Add || op == Op::Subtract || op == Op::Multiply || op == Op::Divide;
}

// Ops that combine many elements by a function that is called.
bool AppliesToMany(Op op) {
  return op == Op::Reduce || op == Op::ReduceWindow || op == Op::Scatter || op == Op::SelectAndScatter ||
         op == Op::Scan;
}

// Is `matches` true of any instruction of those functions?
template <class Fn>
bool AnyApplied(const Instruction& i, Fn matches) {
  for (const Computation* c : i.called())
    for (const Instruction* inner : c->instructions())
      if (matches(*inner)) return true;
  return false;
}

// Sums of many products: what gets lost shows in the operands, not in the result. The largest of many loses nothing.
bool AddsUp(const Instruction& i) {
  if (AppliesToMany(i.op()))
    return AnyApplied(
        i, [](const Instruction& inner) { return RoundsScalars(inner.op()) && !IsInteger(inner.shape().type()); });
  switch (i.op()) {
    case Op::Dot:
    case Op::RaggedDot:
    case Op::ScaledDot:
    case Op::Convolution:
    case Op::Fft:
    case Op::Cholesky:
    case Op::TriangularSolve:
    case Op::BatchNormGrad:
    case Op::BatchNormInference:
    case Op::BatchNormTraining: return true;
    default: return false;
  }
}

// Rounds nothing, but which NaN it gives is open: one of two, or one with bits of the other operand.
bool ChoosesNan(const Instruction& i) {
  if (AppliesToMany(i.op()))
    return AnyApplied(i, [](const Instruction& inner) { return inner.shape().IsArray() && ChoosesNan(inner); });
  switch (i.op()) {
    case Op::Maximum:
    case Op::Minimum:
    case Op::Clamp:
    case Op::ReducePrecision: return IsFloat(i.shape().type());
    case Op::Abs:  // is left out where it changes no number
      return IsFloat(i.shape().type()) && IsFloat(i.operand(0)->shape().type());
    default: return false;
  }
}

// A NaN comes out with its sign. Whether with its bits is open, as where a type is computed in a wider one.
bool PassesNan(const Instruction& i) {
  switch (i.op()) {
    case Op::Ceil:
    case Op::Floor:
    case Op::Negate:
    case Op::RoundNearestAfz:
    case Op::RoundNearestEven:
    case Op::Sign: return IsFloat(i.shape().type());
    default: return false;
  }
}

bool IsInexact(const Shape& shape) { return IsFloat(shape.type()) || IsComplex(shape.type()); }

bool HasDynamicSize(const Shape& shape) {
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.is_dynamic(d)) return true;
  return false;
}

bool AnyLeafInexact(const Shape& shape) {
  for (const Shape& leaf : shape.Leaves())
    if (IsInexact(leaf)) return true;
  return false;
}

// Computations of scalars whose roundings are those of the op that applies them. A scan's works on whole slices.
std::set<const Computation*> ScalarFunctions(const Module& module) {
  std::set<const Computation*> functions;
  for (const Computation* c : module.PostOrder())
    for (const Instruction* i : c->instructions())
      if (!Is(i->op(), kControlFlow | kAsync) && i->op() != Op::Fusion && i->op() != Op::Map && i->op() != Op::Scan)
        for (const Computation* callee : i->called()) functions.insert(callee);
  return functions;
}

// How many terms each element of `x` is a sum of, about: it is the op, or the tuple's element that it is.
int64_t Terms(const Instruction& op, const Instruction& x) {
  if (!AddsUp(op)) return 1;
  int64_t in = 0;
  for (const Instruction* operand : op.operands())
    for (const Shape& leaf : operand->shape().Leaves()) in = std::max(in, leaf.num_elements());
  return std::max<int64_t>(in / std::max<int64_t>(x.shape().num_elements(), 1), 1);
}

// Where subnormals begin, relative noise is rounded away, and each rounding loses a part of the smallest number. `x`
// stays zero if it is, and crosses zero only as a sum may.
Instruction* NoisyWhereSmall(Builder& b, Instruction* x, Instruction* noisy, const Instruction& op, double ulps,
                             Random& random) {
  const Shape shape = x->shape().WithoutLayout();
  const FloatFormat& format = FormatOf(shape.type());
  if (!format.has_sign || !format.has_zero) return noisy;
  const double smallest = std::ldexp(1.0, 1 - format.bias - format.mantissa_bits);
  const double steps = ulps * std::sqrt(static_cast<double>(Terms(op, *x)));
  Literal noise = *Literal::Zeros(shape);
  for (int64_t i = 0; i < noise.num_elements(); ++i)
    noise.SetDouble(i, smallest * std::round(random.Between(-steps, steps)));
  Instruction* moved = b.Make(Op::Add, {noisy, b.Constant(std::move(noise))});
  Instruction* zero = b.Splat(shape.type(), 0, shape.dims());
  if (!AddsUp(op)) {
    Instruction* above = b.Compare(x, zero, CompareDirection::Gt);
    Instruction* still = b.Compare(moved, zero, CompareDirection::Gt);
    moved = b.Make(Op::Select, {b.Compare(above, still, CompareDirection::Eq), moved, zero});
  }
  const double below = std::ldexp(1.0, 2 - format.bias);
  Instruction* small =
      b.Compare(b.Make(Op::Abs, {x}), b.Splat(shape.type(), below, shape.dims()), CompareDirection::Lt);
  small = b.Make(Op::And, {small, b.Compare(x, zero, CompareDirection::Ne)});
  return b.Make(Op::Select, {small, moved, noisy});
}

Instruction* Multiplied(Builder& b, Instruction* x, const Instruction& op, double ulps, Random& random) {
  const Shape shape = x->shape().WithoutLayout();
  const int mantissa = FormatOf(shape.type()).mantissa_bits;
  // Long sums round often; and equal terms, whose sum may be a product, always in the same direction.
  const double terms = static_cast<double>(Terms(op, *x));
  ulps *= std::max({1.0, std::sqrt(terms) / 8, terms / 64});
  // Equal elements are mostly rounded equally: bits that none of them has stay so.
  const bool same = random.Chance(30);
  Literal noise = *Literal::Zeros(shape), back = *Literal::Zeros(shape);
  for (int64_t i = 0; i < noise.num_elements(); ++i) {
    // Below one, a unit in the last place is half as large: both directions are steps of the type.
    const double step = std::ldexp(std::round(random.Between(-ulps, ulps)), -mantissa);
    // Steps up are up to two units of the number: with a small one back, every unit is reached.
    const bool returns = step > 0 && mantissa > 1 && random.Chance(50);
    noise.SetDouble(i, same && i > 0 ? noise.GetDouble(0) : 1 + (step < 0 ? step / 2 : step));
    back.SetDouble(i, same && i > 0 ? back.GetDouble(0) : 1 - (returns ? std::ldexp(1.0, -mantissa - 1) : 0));
  }
  Instruction* noisy = b.Make(Op::Multiply, {x, b.Constant(std::move(noise))});
  noisy = b.Make(Op::Multiply, {noisy, b.Constant(std::move(back))});
  return NoisyWhereSmall(b, x, noisy, op, ulps, random);
}

// Are the elements sums, or linear in an operand at least? Then the sum of magnitudes is what the op gives for the
// magnitudes of its operands; for a system of equations, about the largest element of its solution.
bool IsLinear(const Instruction& x) {
  switch (x.op()) {
    case Op::Dot:
    case Op::Convolution:
    case Op::Fft:
    case Op::TriangularSolve: return true;
    case Op::Reduce:
    case Op::ReduceWindow:
    case Op::Scatter: return x.shape().IsArray() && x.called()[0]->root()->op() == Op::Add;
    default: return false;
  }
}

// Each element one of `values`; or all the same one.
Instruction* AnyOf(Builder& b, const Shape& shape, const std::vector<double>& values, Random& random) {
  const bool same = random.Chance(50);
  Literal literal = *Literal::Zeros(shape.WithoutLayout());
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    literal.SetDouble(i, same && i > 0 ? literal.GetDouble(0) : random.Pick(values));
  return b.Constant(std::move(literal));
}

// Terms that cancel leave nothing, or what was rounded of them: `x` with one of both where it is that small beside its
// terms.
// Where these overflow together, a part of them may: anything may be left.
Instruction* Cancelled(Builder& b, Instruction* x, Instruction* part, bool leaves, double ulps, Random& random) {
  std::vector<Instruction*> magnitudes;
  for (int64_t k = 0; k < x->operand_count(); ++k) {
    Instruction* operand = x->operand(k);
    const ElementType type = operand->shape().type();
    if (!IsInexact(operand->shape())) {
      magnitudes.push_back(operand);
      continue;
    }
    Instruction* magnitude = b.Make(Op::Abs, {operand});
    if (IsComplex(type)) {
      const Shape shape = operand->shape().WithoutLayout();
      magnitude = b.MakeWithShape(Op::Convert, shape, {magnitude});
    }
    magnitudes.push_back(magnitude);
  }
  const Shape shape = x->shape().WithoutLayout();
  std::vector<Computation*> called(x->called().begin(), x->called().end());
  const bool solves = x->op() == Op::TriangularSolve;
  Instruction* scale = b.Make(Op::Abs, {solves ? x : b.Make(x->op(), magnitudes, x->any_attrs(), called, &shape)});
  const ElementType type = scale->shape().type();
  // Every element has all terms; it is their sum in one.
  if ((solves || x->op() == Op::Fft) && shape.num_elements() > 0) {
    Dims all;
    for (int64_t d = 0; d < shape.rank(); ++d) all.push_back(d);
    Computation* larger = x->parent()->module()->AddComputation("larger");
    Builder in(larger);
    larger->set_root(
        in.Make(Op::Maximum, {in.Parameter(0, Shape::Scalar(type)), in.Parameter(1, Shape::Scalar(type))}));
    scale = b.Make(Op::Reduce, {scale, b.Splat(type, 0, {})}, DimensionsAttrs{all}, {larger});
    const Shape broad = shape.WithType(type);
    scale = b.MakeWithShape(Op::Broadcast, broad, {scale}, DimensionsAttrs{});
  }
  const double unit = std::ldexp(1.0, -FormatOf(type).mantissa_bits);
  Instruction* limit = b.Make(Op::Multiply, {scale, b.Splat(type, ulps * unit, shape.dims())});
  Instruction* nothing = b.Compare(b.Make(Op::Abs, {part}), limit, CompareDirection::Le);
  Instruction* left = b.Splat(type, 0, shape.dims());
  if (leaves) {
    Literal shares = *Literal::Zeros(shape.WithType(type));
    for (int64_t i = 0; i < shares.num_elements(); ++i)  // some are nothing beside others that are something
      shares.SetDouble(i, random.Chance(25) ? 0 : random.Between(-1.0, 1.0));
    left = b.Make(Op::Multiply, {limit, b.Constant(std::move(shares))});
  }
  // What is rounded of large terms is more than some units of a small sum.
  part = b.Make(Op::Select, {nothing, left, leaves ? b.Make(Op::Add, {part, left}) : part});
  Instruction* twice = b.Make(Op::Add, {scale, scale});
  std::vector<double> wild = {INFINITY, -INFINITY, NAN};
  // A transform need not multiply by the factors that are zero.
  if (x->op() == Op::Fft) wild.insert(wild.end(), {0, 1});
  return b.Make(Op::Select, {b.Make(Op::IsFinite, {twice}), part, AnyOf(b, scale->shape(), wild, random)});
}

// Is it a product of many, some of which may overflow before a zero comes?
bool MultipliesUp(const Instruction& x) {
  return (x.op() == Op::Reduce || x.op() == Op::ReduceWindow) && x.shape().IsArray() && IsInexact(x.shape()) &&
         x.called()[0]->root()->op() == Op::Multiply;
}

// `noisy`, or anything where the product of those magnitudes that are above one is beyond the range.
Instruction* Overflowed(Builder& b, Instruction* x, Instruction* noisy, Random& random) {
  std::vector<Instruction*> magnitudes;
  for (int64_t k = 0; k < x->operand_count(); ++k) {
    Instruction* operand = x->operand(k);
    if (HasDynamicSize(operand->shape())) return noisy;
    Instruction* magnitude = b.Make(Op::Abs, {operand});
    const Shape& real = magnitude->shape();
    magnitude = b.Make(Op::Maximum, {magnitude, b.Splat(real.type(), 1, real.dims())});
    magnitudes.push_back(b.MakeWithShape(Op::Convert, operand->shape().WithoutLayout(), {magnitude}));
  }
  const Shape shape = x->shape().WithoutLayout();
  std::vector<Computation*> called(x->called().begin(), x->called().end());
  Instruction* product = b.Make(Op::Abs, {b.Make(x->op(), magnitudes, x->any_attrs(), called, &shape)});
  Instruction* finite = b.Make(Op::IsFinite, {product});
  const Shape part = product->shape();
  Instruction* wild = AnyOf(b, part, {INFINITY, -INFINITY, NAN, 0}, random);
  if (IsComplex(shape.type()))
    wild = b.Make(Op::Complex, {wild, AnyOf(b, part, {INFINITY, -INFINITY, NAN, 0}, random)});
  return b.Make(Op::Select, {finite, noisy, wild});
}

// Complex arithmetic leaves two more things open: the sign of a part that is zero, and which number that is not finite
// stands for which (inf + nan i or nan + nan i).
Instruction* WithShare(Builder& b, Instruction* part, Instruction* other, double ulps, Random& random) {
  const ElementType type = part->shape().type();
  const Int64Vector& dims = part->shape().dims();
  const double unit = std::ldexp(1.0, -FormatOf(type).mantissa_bits);
  if (random.Chance(25)) {  // a part that is nothing beside the other may be zero
    Instruction* limit = b.Make(Op::Multiply, {b.Make(Op::Abs, {other}), b.Splat(type, ulps * unit, dims)});
    Instruction* nothing = b.Compare(b.Make(Op::Abs, {part}), limit, CompareDirection::Le);
    return b.Make(Op::Select, {nothing, b.Splat(type, 0, dims), part});
  }
  Instruction* share = b.Splat(type, random.Between(-ulps, ulps) * unit, dims);
  return b.Make(Op::Add, {part, b.Make(Op::Multiply, {other, share})});
}

// Values of which each element is one of two, or all the same; NaNs keep their sign, and have `any_bits` below it.
Instruction* EitherOf(Builder& b, const Shape& shape, double one, double other, Random& random, bool any_bits = false) {
  Literal values = *Literal::Zeros(shape.WithoutLayout());
  const ElementType type = shape.type();
  const uint64_t sign = FormatOf(type).has_negative_zero ? uint64_t{1} << (Bits(type) - 1) : 0;
  // Signs may depend on the operands: any share of them.
  const int64_t dice = random.Below(4);
  const int share = dice == 0 ? 0 : dice == 1 ? 100 : static_cast<int>(random.Below(101));
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double value = random.Chance(share) ? one : other;
    uint64_t code = EncodeFloat(type, std::fabs(value)) | (std::signbit(value) ? sign : 0);
    if (any_bits && std::isnan(value)) code |= random.Below(int64_t{1} << (FormatOf(type).mantissa_bits - 1));
    std::memcpy(values.mutable_bytes().data() + i * Bytes(type), &code, static_cast<size_t>(Bytes(type)));
  }
  return b.Constant(std::move(values));
}

Instruction* NoisyPart(Builder& b, Instruction* part, Instruction* finite, const Instruction& op, double ulps,
                       Random& random) {
  const ElementType type = part->shape().type();
  const Int64Vector& dims = part->shape().dims();
  Instruction* zero = b.Compare(part, b.Splat(type, 0, dims), CompareDirection::Eq);
  Instruction* noisy = Multiplied(b, part, op, ulps, random);
  noisy = b.Make(Op::Select, {zero, EitherOf(b, part->shape(), 0.0, -0.0, random), noisy});
  return b.Make(Op::Select, {finite, noisy, AnyOf(b, part->shape(), {INFINITY, -INFINITY, NAN, 0, 1}, random)});
}

// Numbers with the signs of others.
Instruction* WithSigns(Builder& b, Instruction* numbers, Instruction* signs) {
  const ElementType type = numbers->shape().type();
  const ElementType codes[] = {ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64};
  const ElementType code = codes[std::countr_zero(static_cast<uint64_t>(Bytes(type)))];
  Instruction* below = b.Splat(code, Bits(type) - 1, numbers->shape().dims());
  Instruction* bits = b.BitcastConvert(numbers, code);
  // What differs, without what is below the sign.
  Instruction* differs = b.Make(Op::Xor, {bits, b.BitcastConvert(signs, code)});
  differs = b.Make(Op::ShiftLeft, {b.Make(Op::ShiftRightLogical, {differs, below}), below});
  return b.BitcastConvert(b.Make(Op::Xor, {bits, differs}), type);
}

// NaNs of `op` that are an operand's, as IEEE 754 has it that they should be, not must: `nan` where none is NaN. Of an
// op that has no such element, with any bits.
Instruction* NanOfOperand(Builder& b, Instruction* nan, const Instruction& op, Random& random) {
  const Shape& shape = nan->shape();
  if (!Is(op.op(), kElementwise) || Is(op.op(), kChangesType)) return EitherOf(b, shape, NAN, -NAN, random, true);
  for (Instruction* operand : op.operands()) {
    if (!operand->shape().Compatible(shape)) continue;
    Instruction* is_nan = b.Compare(operand, operand, CompareDirection::Ne);
    Instruction* kept = op.op() == Op::Negate ? WithSigns(b, operand, nan) : operand;
    nan = b.Make(Op::Select, {is_nan, kept, nan});
  }
  return nan;
}

// NaNs of either sign. What functions of one number compute often has that number's sign, or the other.
Instruction* EitherNan(Builder& b, const Shape& shape, const Instruction& op, Random& random) {
  const bool function = op.operand_count() == 1 && op.operand(0)->shape().Compatible(shape);
  const bool any_bits = ChoosesNan(op) && FormatOf(shape.type()).has_infinity && random.Chance(50);
  if (!function || random.Chance(60)) return EitherOf(b, shape, NAN, -NAN, random, any_bits);
  Instruction* negative = b.Compare(op.operand(0), b.Splat(shape.type(), 0, shape.dims()), CompareDirection::Lt);
  Instruction *one = EitherOf(b, shape, NAN, NAN, random), *other = EitherOf(b, shape, -NAN, -NAN, random);
  const bool same = random.Chance(50);
  return b.Make(Op::Select, {negative, same ? other : one, same ? one : other});
}

// What a sum that overflows on the way may end as: either infinity, NaN, or, added up in another order, a number,
// unless one of its terms is not finite.
Instruction* Overflow(Builder& b, Instruction* x, const Instruction& op, Random& random) {
  constexpr double kNumber = 1024;
  const Shape& shape = x->shape();
  Instruction* wild = EitherOf(b, shape, random.Chance(50) ? NAN : INFINITY, -INFINITY, random);
  const bool sum =
      op.op() == Op::Dot || op.op() == Op::Convolution || op.op() == Op::Reduce || op.op() == Op::ReduceWindow;
  if (x != &op || !sum || random.Chance(50)) return wild;
  std::vector<Instruction*> nothing;  // 0 for what is finite, NaN for the rest
  for (Instruction* operand : op.operands()) {
    const Shape& of = operand->shape();
    if (!IsInexact(of) || HasDynamicSize(of)) return wild;
    nothing.push_back(b.Make(Op::Multiply, {operand, b.Splat(of.type(), 0, of.dims())}));
  }
  const Shape declared = shape.WithoutLayout();
  std::vector<Computation*> called(op.called().begin(), op.called().end());
  Instruction* finite = b.Make(Op::IsFinite, {b.Make(op.op(), nothing, op.any_attrs(), called, &declared)});
  return b.Make(Op::Select, {finite, EitherOf(b, shape, kNumber, -kNumber, random), wild});
}

// A product that overflows may be added to before it is rounded (docs/adr/0014), and be finite again.
Instruction* Unrounded(Builder& b, Instruction* noisy, const Instruction& product) {
  const ElementType type = product.shape().type();
  if (type != ElementType::F32 && type != ElementType::F64) return noisy;
  const auto adds = [](const Instruction* user) { return user->op() == Op::Add || user->op() == Op::Subtract; };
  const std::vector<Instruction*> users = product.users();
  if (std::none_of(users.begin(), users.end(), adds)) return noisy;
  const double most = type == ElementType::F32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const auto limit = [&](double value) { return b.Splat(type, value, product.shape().dims()); };
  Instruction* finite =
      b.Make(Op::And, {b.Make(Op::IsFinite, {product.operand(0)}), b.Make(Op::IsFinite, {product.operand(1)})});
  return b.Make(Op::Select, {finite, b.Make(Op::Clamp, {limit(-most), noisy, limit(most)}), noisy});
}

// The sign of a NaN that was computed is open as well, and that of a sum that is zero: sorts and bitcasts see them.
Instruction* NoisyReal(Builder& b, Instruction* x, const Instruction& op, double ulps, Random& random) {
  const Shape& shape = x->shape();
  const FloatFormat& format = FormatOf(shape.type());
  Instruction* noisy = Multiplied(b, x, op, ulps, random);
  if (AddsUp(op) && format.has_negative_zero) {
    Instruction* zero = EitherOf(b, shape, 0.0, -0.0, random);
    noisy = b.Make(Op::Select, {b.Compare(x, zero, CompareDirection::Eq), zero, noisy});
  }
  if (AddsUp(op) && format.has_infinity) {
    noisy = b.Make(Op::Select, {b.Make(Op::IsFinite, {x}), noisy, Overflow(b, x, op, random)});
  }
  if (op.op() == Op::Multiply && x == &op && random.Chance(50)) noisy = Unrounded(b, noisy, op);
  if (!format.has_nan) return noisy;
  Instruction* nan = PassesNan(op) ? x : EitherNan(b, shape, op, random);
  if (format.has_infinity && op.operand_count() > 0 && random.Chance(50)) nan = NanOfOperand(b, nan, op, random);
  return b.Make(Op::Select, {b.Compare(noisy, noisy, CompareDirection::Ne), nan, noisy});
}

// `x`, of which `op` made the roundings: itself, or the tuple that it is an element of.
// Where it is `exact`, only what cancels is not what it was.
Instruction* Noisy(Builder& b, Instruction* x, const Instruction& op, double ulps, bool exact, Random& random) {
  if (HasDynamicSize(x->shape())) return x;  // noise is constants, whose sizes are known
  const bool cancels = x == &op && IsLinear(op) && random.Chance(50);
  const bool leaves = random.Chance(50);
  const double others = exact ? 0 : ulps;
  if (!IsComplex(x->shape().type()))
    return NoisyReal(b, cancels ? Cancelled(b, x, x, leaves, ulps, random) : x, op, others, random);
  Instruction* real = b.Make(Op::Real, {x});
  Instruction* imag = b.Make(Op::Imag, {x});
  Instruction* finite = b.Make(Op::And, {b.Make(Op::IsFinite, {real}), b.Make(Op::IsFinite, {imag})});
  // By way of a logarithm, or of functions of both parts, a number that is not finite may end as anything.
  if (op.op() == Op::Power || op.op() == Op::Expm1)
    for (Instruction* operand : op.operands())
      for (Op part : {Op::Real, Op::Imag})
        finite = b.Make(Op::And, {finite, b.Make(Op::IsFinite, {b.Make(part, {operand})})});
  if (cancels) {
    real = Cancelled(b, x, real, leaves, ulps, random);
    imag = Cancelled(b, x, imag, leaves, ulps, random);
  }
  ulps = others;
  // One of the two parts stays what it is: not finite.
  const bool first = random.Chance(50);
  // Backends go through logarithms and exponentials of complex numbers, which lose what the exponent takes.
  if (Is(op.op(), kFloatMath)) ulps *= 64;
  // Errors of a part are in proportion to the whole: a share of the other part.
  Instruction* wild_real = NoisyPart(b, WithShare(b, real, imag, ulps, random), finite, op, ulps, random);
  Instruction* wild_imag = NoisyPart(b, WithShare(b, imag, real, ulps, random), finite, op, ulps, random);
  Instruction* nan = AnyOf(b, real->shape(), {NAN, INFINITY, -INFINITY}, random);
  if (first) wild_real = b.Make(Op::Select, {finite, wild_real, nan});
  if (!first) wild_imag = b.Make(Op::Select, {finite, wild_imag, nan});
  return b.Make(Op::Complex, {wild_real, wild_imag});
}

// The sum of `terms` over all dimensions but the feature's.
Instruction* SumByFeature(Builder& b, Instruction* terms, int64_t feature) {
  Dims reduced;
  for (int64_t d = 0; d < terms->shape().rank(); ++d)
    if (d != feature) reduced.push_back(d);
  const ElementType type = terms->shape().type();
  Computation* add = terms->parent()->module()->AddComputation("magnitudes");
  Builder in(add);
  add->set_root(in.Make(Op::Add, {in.Parameter(0, Shape::Scalar(type)), in.Parameter(1, Shape::Scalar(type))}));
  return b.Make(Op::Reduce, {terms, b.Splat(type, 0, {})}, DimensionsAttrs{reduced}, {add});
}

// Elements of a feature, at least one.
double Count(const Instruction& x, int64_t feature) {
  const double elements = static_cast<double>(x.shape().num_elements());
  return std::max(elements / static_cast<double>(std::max<int64_t>(x.shape().dim(feature), 1)), 1.0);
}

// The magnitude of what result `index` of a batch normalisation is a difference of; null if it is none. Each is in
// proportion to it, not to what is left:
//   training   the mean of x
//   grad       dy - mean(dy) - (x - mean) * correlation; the sums of dy and of dy (x - mean)
Instruction* BesideTerms(Builder& b, const Instruction& norm, int64_t index) {
  if (norm.op() != Op::BatchNormTraining && norm.op() != Op::BatchNormGrad) return nullptr;
  const int64_t feature = norm.attrs<BatchNormAttrs>().feature_index;
  const auto magnitude = [&](Instruction* x) { return b.Make(Op::Abs, {x}); };
  Instruction* x = norm.operand(0);
  if (norm.op() == Op::BatchNormTraining) {
    if (index != 1) return nullptr;
    Instruction* sum = SumByFeature(b, magnitude(x), feature);
    return b.Make(Op::Divide, {sum, b.Splat(sum->shape().type(), Count(*x, feature), sum->shape().dims())});
  }
  Instruction* dy = magnitude(norm.operand(4));
  const auto dims = x->shape().dims();
  const auto wide = [&](Instruction* vector) { return b.Broadcast(vector, dims, {feature}); };
  const auto times = [&](Instruction* y, Instruction* z) { return b.Make(Op::Multiply, {y, z}); };
  if (index == 2) return SumByFeature(b, dy, feature);
  Instruction* centred = magnitude(b.Make(Op::Subtract, {x, wide(norm.operand(2))}));
  Instruction* sum = SumByFeature(b, times(dy, centred), feature);
  const Shape& vector = sum->shape();
  Instruction* epsilon = b.Splat(vector.type(), norm.attrs<BatchNormAttrs>().epsilon, vector.dims());
  Instruction* inverse = magnitude(b.Make(Op::Rsqrt, {b.Make(Op::Add, {norm.operand(3), epsilon})}, AccuracyAttrs{}));
  if (index == 1) return times(sum, inverse);
  Instruction* correlation = b.Make(Op::Divide, {sum, b.Splat(vector.type(), Count(*x, feature), vector.dims())});
  correlation = times(correlation, times(inverse, inverse));
  Instruction* inner = b.Make(Op::Add, {dy, times(centred, wide(correlation))});
  return times(inner, wide(times(magnitude(norm.operand(1)), inverse)));
}

void AddNoise(Computation& computation, double ulps, bool sparse, Random& random) {
  Builder b(&computation);
  for (Instruction* i : computation.instructions()) {
    const bool element = i->op() == Op::GetTupleElement && (AddsUp(*i->operand(0)) || ChoosesNan(*i->operand(0)));
    if (!AddsUp(*i) && !element && !Rounds(*i)) continue;
    const bool exact = sparse && random.Chance(50);
    if (AddsUp(*i)) {
      b.set_insert_before(i);
      for (int64_t k = 0; k < i->operand_count(); ++k)
        if (IsInexact(i->operand(k)->shape()))
          i->SetOperand(k, Noisy(b, i->operand(k), *i->operand(k), ulps, exact, random));
    }
    if (!IsInexact(i->shape())) continue;
    b.set_insert_before(i->next());
    const std::vector<Use> uses(i->uses().begin(), i->uses().end());
    const Instruction& op = element ? *i->operand(0) : *i;
    const bool rounds = (!ChoosesNan(op) || AddsUp(op)) && !PassesNan(op);
    Instruction* noisy = Noisy(b, i, op, rounds ? ulps : 0, exact, random);
    // What cancels inside is not seen from outside.
    if (element && !HasDynamicSize(i->shape()))
      if (Instruction* terms = BesideTerms(b, *i->operand(0), i->tuple_index()))
        noisy = WithShare(b, noisy, terms, ulps, random);
    if (MultipliesUp(*i) && !HasDynamicSize(i->shape())) noisy = Overflowed(b, i, noisy, random);
    for (const Use& use : uses) use.user->SetOperand(use.operand_number, noisy);
    if (i->IsRoot()) computation.set_root(noisy);
  }
}

}  // namespace

bool Rounds(const Instruction& i) {
  if (!AnyLeafInexact(i.shape())) return false;
  if (Is(i.op(), kFloatMath) || AddsUp(i) || ChoosesNan(i) || PassesNan(i)) return true;
  switch (i.op()) {
    case Op::Abs:
    case Op::Sign: return IsComplex(i.operand(0)->shape().type());
    case Op::Convert:
    case Op::ReducePrecision:
    case Op::StochasticConvert:
    case Op::Add:
    case Op::Subtract:
    case Op::Multiply:
    case Op::Divide:
    case Op::Remainder:
    case Op::Map: return true;
    default: return false;
  }
}

bool AnyRounds(const Module& module) {
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (Rounds(*i)) return true;
  return false;
}

std::unique_ptr<Module> WithNoise(const Module& module, double ulps, uint64_t seed) {
  std::unique_ptr<Module> copy = module.Clone();
  const std::set<const Computation*> scalar = ScalarFunctions(*copy);
  Random random(seed);
  const bool sparse = random.Chance(50);  // some ops are as exact as the evaluator's
  for (Computation* c : copy->PostOrder())
    if (!scalar.count(c)) AddNoise(*c, ulps, sparse, random);
  return copy;
}

}  // namespace strop::fuzz
