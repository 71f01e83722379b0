#include "tests/fuzz/values.h"

#include <cmath>

namespace strop::fuzz {
namespace {

double RandomFloat(ElementType type, Values values, Random& random) {
  const FloatFormat& f = FormatOf(type);
  if (values == Values::kExtreme && random.Chance(60)) {
    if (f.bits <= 16) return DecodeFloat(type, random.Bits() & ((uint64_t{1} << f.bits) - 1));
    const int span = (1 << (f.exponent_bits - 1)) + f.mantissa_bits;
    return std::ldexp(random.Between(-2.0, 2.0), static_cast<int>(random.Between(int64_t{-span}, int64_t{span})));
  }
  if (values != Values::kTame && random.Chance(12)) {
    const int top = (1 << f.exponent_bits) - 1 - f.bias, bottom = 1 - f.bias;
    const double specials[] = {0.0,
                               -0.0,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               1,
                               -1,
                               0.5,
                               2.5,
                               -1.5,
                               std::ldexp(1.0, bottom),                                     // smallest normal
                               -std::ldexp(1.0, bottom - f.mantissa_bits),                  // smallest subnormal
                               std::ldexp(1.0, bottom) * 0.75,                              // subnormal
                               std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), top - 1),  // about the largest
                               -std::ldexp(1.0, top - 1),
                               2147483648.0,
                               -9223372036854775808.0};
    return specials[random.Below(std::size(specials))];
  }
  if (random.Chance(30)) return static_cast<double>(random.Between(int64_t{-4}, int64_t{4}));
  return random.Between(-3.0, 3.0);
}

// Ends of the range are left out: where intermediates of complex arithmetic overflow or lose all digits, each
// implementation answers as it likes.
double RandomPart(ElementType type, Values values, Random& random) {
  static constexpr double kSpecials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
  if (values != Values::kTame && random.Chance(12)) return kSpecials[random.Below(std::size(kSpecials))];
  return RandomFloat(ComplexPart(type), Values::kTame, random);
}

int64_t RandomInt(ElementType type, Values values, Random& random) {
  const bool wild = values == Values::kExtreme ? random.Chance(70) : values == Values::kSpecial && random.Chance(12);
  if (wild) {
    const int bits = Bits(type);
    const uint64_t ends[] = {0, 1, ~uint64_t{0}, uint64_t{1} << (bits - 1), (uint64_t{1} << (bits - 1)) - 1};
    return static_cast<int64_t>(random.Chance(50) ? ends[random.Below(std::size(ends))] : random.Bits());
  }
  return IsSigned(type) ? random.Between(int64_t{-6}, int64_t{9}) : random.Between(int64_t{0}, int64_t{9});
}

// SetInt wants a value that the type holds.
int64_t Wrapped(ElementType type, int64_t value) {
  const int unused = 64 - Bits(type);
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return IsSigned(type) ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

}  // namespace

Literal RandomLiteral(const Shape& shape, Values values, Random& random) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.elements()) elements.push_back(RandomLiteral(element, values, random));
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) return Literal::Token();
  Literal literal = *Literal::Zeros(shape.WithoutLayout());
  const ElementType type = shape.type();
  for (int64_t i = 0; i < literal.num_elements(); ++i) {
    switch (Kind(type)) {
      case ElementKind::Pred: literal.SetInt(i, random.Below(2)); break;
      case ElementKind::Float: literal.SetDouble(i, RandomFloat(type, values, random)); break;
      case ElementKind::Complex: {
        const double real = RandomPart(type, values, random);
        literal.SetComplex(i, {real, RandomPart(type, values, random)});
        break;
      }
      default: literal.SetInt(i, Wrapped(type, RandomInt(type, values, random)));
    }
  }
  return literal;
}

std::vector<Literal> RandomArguments(const Module& module, uint64_t seed, bool tame) {
  const int64_t dice = Random(seed).Below(10);
  const Values values = tame || dice < 5 ? Values::kTame : dice < 9 ? Values::kSpecial : Values::kExtreme;
  std::vector<Literal> arguments;
  for (const Instruction* parameter : module.entry()->parameters()) {
    uint64_t hash = seed;
    for (char c : parameter->name()) hash = hash * 1099511628211u + static_cast<unsigned char>(c);
    Random random(hash);
    arguments.push_back(RandomLiteral(parameter->shape(), values, random));
  }
  return arguments;
}

}  // namespace strop::fuzz
