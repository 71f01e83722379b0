// Rules of constants.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// A constant of equal elements -> broadcast of a scalar
Instruction* ConstantSplat(Instruction* i, Builder& b) {
  const Literal& literal = i->literal();
  if (!i->shape().IsArray() || i->shape().IsScalar() || !literal.has_values()) return nullptr;
  if (literal.num_elements() < 2 || !literal.AllElementsEqual()) return nullptr;
  const size_t bytes = static_cast<size_t>(Bytes(i->shape().type()));
  Result<Literal> scalar = Literal::FromBytes(Shape::Scalar(i->shape().type()), literal.bytes().first(bytes));
  if (!scalar.ok()) return nullptr;
  return b.Broadcast(b.Constant(*std::move(scalar)), i->shape().dims(), {});
}

// The elements' number along dimension `d` of `n`, times the step: one term of a sum.
Instruction* CountedTerm(Builder& b, ElementType type, const Int64Vector& dims, int64_t d, int64_t step) {
  const Int64Vector along = {dims[static_cast<size_t>(d)]};
  Instruction* count = b.Iota(Shape::Array(type, along), 0);
  if (step != 1) count = b.Make(Op::Multiply, {count, b.Splat(type, static_cast<double>(step), along)});
  return dims.size() == 1 ? count : b.Broadcast(count, dims, {d});
}

// Integers that count along each dimension, as the indices of frames do: base + 160 i + j -> sums of iotas. What reads
// at such places can see that they are neighbours, and no table is read.
Instruction* ConstantCounts(Instruction* i, Builder& b) {
  constexpr int64_t kLeast = 64;  // of fewer, it is the values that other rules ask for
  const Literal& literal = i->literal();
  const Shape& shape = i->shape();
  if (!shape.IsArray() || shape.num_elements() < kLeast || !literal.has_values() || !IsInteger(shape.type()) ||
      Bits(shape.type()) < 8)
    return nullptr;
  const Int64Vector dims = shape.dims();
  const size_t rank = dims.size();
  constexpr int64_t kMost = int64_t{1} << 30;  // so that 32 bits are enough
  const int64_t base = literal.GetInt(0);
  if (base < -kMost || base > kMost) return nullptr;
  Int64Vector steps(rank, 0);
  int64_t last = base, reach = std::abs(base), behind = 1;
  for (size_t d = rank; d-- > 0; behind *= dims[d]) {
    if (dims[d] == 1) continue;
    steps[d] = literal.GetInt(behind) - base;
    if (steps[d] < -kMost || steps[d] > kMost) return nullptr;
    last += steps[d] * (dims[d] - 1);
    reach = SaturatingAdd(reach, SaturatingMultiply(std::abs(steps[d]), dims[d]));
  }
  if (reach > kMost || literal.GetInt(shape.num_elements() - 1) != last) return nullptr;
  Int64Vector at(rank, 0);
  int64_t expected = base;
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    if (literal.GetInt(k) != expected) return nullptr;
    for (size_t d = rank; d-- > 0;) {
      expected += steps[d];
      if (++at[d] < dims[d]) break;
      expected -= steps[d] * dims[d];
      at[d] = 0;
    }
  }
  const ElementType type = Bits(shape.type()) == 64 ? ElementType::S32 : shape.type();
  Instruction* sum = nullptr;
  for (size_t d = 0; d < rank; ++d) {
    if (steps[d] == 0) continue;
    Instruction* term = CountedTerm(b, type, dims, static_cast<int64_t>(d), steps[d]);
    sum = sum ? b.Make(Op::Add, {sum, term}) : term;
  }
  if (!sum) return nullptr;
  if (base != 0) sum = b.Make(Op::Add, {sum, b.Splat(type, static_cast<double>(base), dims)});
  return type == shape.type() ? sum : b.Convert(sum, shape.type());
}

constexpr Rule kRules[] = {
    {"constant-splat", Op::Constant, &ConstantSplat},
    {"constant-counts", Op::Constant, &ConstantCounts},
};

}  // namespace

RuleSet ConstantRules() { return kRules; }

}  // namespace strop::simplify
