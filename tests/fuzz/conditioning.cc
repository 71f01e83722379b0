#include "tests/fuzz/conditioning.h"

#include <cmath>
#include <cstring>
#include <set>

#include "strop/ir/builder.h"
#include "tests/fuzz/random.h"

namespace strop::fuzz {
namespace {

// Sums of many products: what gets lost shows in the operands, not in the result.
bool AddsUp(Op op) {
  switch (op) {
    case Op::Reduce:
    case Op::ReduceWindow:
    case Op::Scatter:
    case Op::SelectAndScatter:
    case Op::Dot:
    case Op::Convolution:
    case Op::Fft:
    case Op::Cholesky:
    case Op::TriangularSolve:
    case Op::BatchNormGrad:
    case Op::BatchNormInference:
    case Op::BatchNormTraining:
    case Op::Scan: return true;
    default: return false;
  }
}

bool IsInexact(const Shape& shape) { return IsFloat(shape.type()) || IsComplex(shape.type()); }

bool AnyLeafInexact(const Shape& shape) {
  for (const Shape& leaf : shape.Leaves())
    if (IsInexact(leaf)) return true;
  return false;
}

// Computations of scalars whose roundings are those of the op that applies them.
std::set<const Computation*> ScalarFunctions(const Module& module) {
  std::set<const Computation*> functions;
  for (const Computation* c : module.PostOrder())
    for (const Instruction* i : c->instructions())
      if (!Is(i->op(), kControlFlow | kAsync) && i->op() != Op::Fusion && i->op() != Op::Map)
        for (const Computation* callee : i->called()) functions.insert(callee);
  return functions;
}

Instruction* Multiplied(Builder& b, Instruction* x, double ulps, Random& random) {
  const Shape shape = x->shape().WithoutLayout();
  const int mantissa = FormatOf(shape.type()).mantissa_bits;
  Literal noise = *Literal::Zeros(shape);
  for (int64_t i = 0; i < noise.num_elements(); ++i) {
    // Below one, a unit in the last place is half as large: both directions are steps of the type.
    const double step = std::ldexp(std::round(random.Between(-ulps, ulps)), -mantissa);
    noise.SetDouble(i, 1 + (step < 0 ? step / 2 : step));
  }
  return b.Make(Op::Multiply, {x, b.Constant(std::move(noise))});
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

Instruction* NoisyPart(Builder& b, Instruction* part, Instruction* finite, double ulps, Random& random) {
  const ElementType type = part->shape().type();
  const Int64Vector& dims = part->shape().dims();
  const double wild[] = {INFINITY, -INFINITY, NAN, 0, 1};
  Instruction* zero = b.Compare(part, b.Splat(type, 0, dims), CompareDirection::Eq);
  Instruction* noisy = Multiplied(b, part, ulps, random);
  noisy = b.Make(Op::Select, {zero, b.Splat(type, random.Chance(50) ? 0.0 : -0.0, dims), noisy});
  return b.Make(Op::Select, {finite, noisy, b.Splat(type, wild[random.Below(5)], dims)});
}

// Values of which each element is one of two, or all the same; NaNs keep their sign.
Instruction* EitherOf(Builder& b, const Shape& shape, double one, double other, Random& random) {
  Literal values = *Literal::Zeros(shape.WithoutLayout());
  const ElementType type = shape.type();
  const uint64_t sign = FormatOf(type).has_negative_zero ? uint64_t{1} << (Bits(type) - 1) : 0;
  const int share = 50 * static_cast<int>(random.Below(3));
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double value = random.Chance(share) ? one : other;
    const uint64_t code = EncodeFloat(type, std::fabs(value)) | (std::signbit(value) ? sign : 0);
    std::memcpy(values.mutable_bytes().data() + i * Bytes(type), &code, static_cast<size_t>(Bytes(type)));
  }
  return b.Constant(std::move(values));
}

// The sign of a NaN that was computed is open as well, and that of a sum that is zero: sorts and bitcasts see them. A
// sum that overflows on the way may end as either infinity, or as NaN.
Instruction* NoisyReal(Builder& b, Instruction* x, double ulps, Random& random) {
  const Shape& shape = x->shape();
  const FloatFormat& format = FormatOf(shape.type());
  Instruction* noisy = Multiplied(b, x, ulps, random);
  if (AddsUp(x->op()) && format.has_negative_zero) {
    Instruction* zero = EitherOf(b, shape, 0.0, -0.0, random);
    noisy = b.Make(Op::Select, {b.Compare(x, zero, CompareDirection::Eq), zero, noisy});
  }
  if (AddsUp(x->op()) && format.has_infinity) {
    Instruction* wild = EitherOf(b, shape, random.Chance(50) ? NAN : INFINITY, -INFINITY, random);
    noisy = b.Make(Op::Select, {b.Make(Op::IsFinite, {x}), noisy, wild});
  }
  if (!format.has_nan) return noisy;
  return b.Make(Op::Select,
                {b.Compare(noisy, noisy, CompareDirection::Ne), EitherOf(b, shape, NAN, -NAN, random), noisy});
}

Instruction* Noisy(Builder& b, Instruction* x, double ulps, Random& random) {
  if (!IsComplex(x->shape().type())) return NoisyReal(b, x, ulps, random);
  Instruction* real = b.Make(Op::Real, {x});
  Instruction* imag = b.Make(Op::Imag, {x});
  Instruction* finite = b.Make(Op::And, {b.Make(Op::IsFinite, {real}), b.Make(Op::IsFinite, {imag})});
  // One of the two parts stays what it is: not finite.
  const bool first = random.Chance(50);
  // Backends go through logarithms and exponentials of complex numbers, which lose what the exponent takes.
  if (Is(x->op(), kFloatMath)) ulps *= 64;
  // Errors of a part are in proportion to the whole: a share of the other part.
  Instruction* wild_real = NoisyPart(b, WithShare(b, real, imag, ulps, random), finite, ulps, random);
  Instruction* wild_imag = NoisyPart(b, WithShare(b, imag, real, ulps, random), finite, ulps, random);
  Instruction* nan = b.Splat(real->shape().type(), random.Chance(50) ? NAN : INFINITY, real->shape().dims());
  if (first) wild_real = b.Make(Op::Select, {finite, wild_real, nan});
  if (!first) wild_imag = b.Make(Op::Select, {finite, wild_imag, nan});
  return b.Make(Op::Complex, {wild_real, wild_imag});
}

void AddNoise(Computation& computation, double ulps, Random& random) {
  Builder b(&computation);
  for (Instruction* i : computation.instructions()) {
    const bool element = i->op() == Op::GetTupleElement && AddsUp(i->operand(0)->op());
    if ((!Rounds(*i) && !element) || !IsInexact(i->shape())) {
      if (!AddsUp(i->op())) continue;
    }
    if (AddsUp(i->op())) {
      b.set_insert_before(i);
      for (int64_t k = 0; k < i->operand_count(); ++k)
        if (IsInexact(i->operand(k)->shape())) i->SetOperand(k, Noisy(b, i->operand(k), ulps, random));
    }
    if (!IsInexact(i->shape())) continue;
    b.set_insert_before(i->next());
    const std::vector<Use> uses(i->uses().begin(), i->uses().end());
    Instruction* noisy = Noisy(b, i, ulps, random);
    for (const Use& use : uses) use.user->SetOperand(use.operand_number, noisy);
    if (i->IsRoot()) computation.set_root(noisy);
  }
}

}  // namespace

bool Rounds(const Instruction& i) {
  if (!AnyLeafInexact(i.shape())) return false;
  if (Is(i.op(), kFloatMath) || AddsUp(i.op())) return true;
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
  for (Computation* c : copy->PostOrder())
    if (!scalar.count(c)) AddNoise(*c, ulps, random);
  return copy;
}

}  // namespace strop::fuzz
