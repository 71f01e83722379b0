#include "strop/codegen/index.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "strop/base/division.h"

namespace strop {
namespace {

using V = llvm::Value*;

constexpr int64_t kAnyMultiple = (int64_t{1} << 30) * 81 * 25 * 7 * 11 * 13;  // of a constant 0, which all divide

// Bounds that overflow are unknown.
int64_t AddBounds(int64_t a, int64_t b, int64_t unknown) {
  int64_t sum = 0;
  return a == unknown || b == unknown || __builtin_add_overflow(a, b, &sum) ? unknown : sum;
}

int64_t ScaleBound(int64_t a, int64_t factor, int64_t unknown_a, int64_t unknown) {
  int64_t product = 0;
  return a == unknown_a || __builtin_mul_overflow(a, factor, &product) ? unknown : product;
}

bool Bounded(const LaneIndex& a) { return a.low != LaneIndex::kNoLow && a.high != LaneIndex::kNoHigh; }

// `sum` = a + b.
void AddFacts(const LaneIndex& a, const LaneIndex& b, LaneIndex& sum) {
  sum.low = AddBounds(a.low, b.low, LaneIndex::kNoLow);
  sum.high = AddBounds(a.high, b.high, LaneIndex::kNoHigh);
  const LaneIndex &moving = a.digit >= 0 ? a : b, &by = a.digit >= 0 ? b : a;
  if (moving.digit < 0 || by.digit >= 0 || !Bounded(by)) return;
  if (__builtin_add_overflow(moving.offset_low, by.low, &sum.offset_low)) return;
  if (__builtin_add_overflow(moving.offset_high, by.high, &sum.offset_high)) return;
  sum.digit = moving.digit;
  sum.per = moving.per;
  sum.scale = moving.scale;
}

// `product` = a * factor.
void MulFacts(const LaneIndex& a, int64_t factor, LaneIndex& product) {
  constexpr int64_t kLow = LaneIndex::kNoLow, kHigh = LaneIndex::kNoHigh;
  product.low = factor > 0 ? ScaleBound(a.low, factor, kLow, kLow) : ScaleBound(a.high, factor, kHigh, kLow);
  product.high = factor > 0 ? ScaleBound(a.high, factor, kHigh, kHigh) : ScaleBound(a.low, factor, kLow, kHigh);
  if (a.digit < 0) return;
  if (__builtin_mul_overflow(a.scale, factor, &product.scale)) return;
  if (__builtin_mul_overflow(factor > 0 ? a.offset_low : a.offset_high, factor, &product.offset_low)) return;
  if (__builtin_mul_overflow(factor > 0 ? a.offset_high : a.offset_low, factor, &product.offset_high)) return;
  product.digit = a.digit;
  product.per = a.per;
}

// quotient = a / divisor, rest = a % divisor
void DivFacts(const LaneIndex& a, int64_t divisor, LaneIndex& quotient, LaneIndex& rest) {
  if (rest.low == LaneIndex::kNoLow) rest = rest.Within(0, divisor - 1);
  if (a.digit >= 0 && a.scale % divisor == 0) {
    quotient.digit = a.digit;
    quotient.per = a.per;
    quotient.scale = a.scale / divisor;
    quotient.offset_low = FloorDiv(a.offset_low, divisor);
    quotient.offset_high = FloorDiv(a.offset_high, divisor);
  } else if (a.pattern && a.digit >= 0 && a.scale == 1 && a.offset_low == 0 && a.offset_high == 0) {
    quotient.digit = a.digit;
    quotient.per = a.per * divisor;
    quotient.scale = 1;
    quotient.offset_low = quotient.offset_high = 0;
  }
  if (a.low < 0 || !Bounded(a)) return;
  quotient = quotient.Within(a.low / divisor, a.high / divisor);
  if (quotient.low == quotient.high) rest = rest.Within(a.low % divisor, a.high % divisor);
}

}  // namespace

bool ArrayIndex::uniform() const {
  return std::all_of(digits.begin(), digits.end(), [](const LaneIndex& d) { return d.uniform(); });
}

int ArrayIndex::level() const {
  int level = 0;
  for (const LaneIndex& d : digits) level = std::max(level, d.level);
  return level;
}

int64_t ArrayIndex::num_elements() const {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

LaneIndex IndexBuilder::Constant(int64_t value) {
  return LaneIndex{.base = b_.I64(value), .multiple = value == 0 ? kAnyMultiple : std::abs(value)}.Within(value, value);
}

LaneIndex IndexBuilder::Counter(llvm::Value* counter, int level, int64_t stride, int64_t multiple) {
  return LaneIndex{.base = counter, .stride = lanes_ == 1 ? 0 : stride, .multiple = multiple, .level = level};
}

LaneIndex IndexBuilder::FromLanes(llvm::Value* values, int level) {
  if (VectorBuilder::Lanes(values) == 1) return LaneIndex{.base = values, .level = level};
  return LaneIndex{.lanes = values, .level = level};
}

LaneIndex IndexBuilder::Neighbours(const LaneIndex& first, int64_t offset) {
  Int64Vector distances;
  for (int64_t l = 0; l < lanes_; ++l) distances.push_back(offset + l);
  return AtDistances(first.base, first.multiple, first.level, distances);
}

LaneIndex IndexBuilder::Shift(const LaneIndex& a, int64_t offset) {
  std::optional<Int64Vector> distances = Distances(a);
  if (a.uniform() || !distances) return Add(a, Constant(offset));
  for (int64_t& d : *distances) d += offset;
  LaneIndex out = AtDistances(a.base, a.multiple, a.level, *distances);
  AddFacts(a, Constant(offset), out);
  return out;
}

std::optional<Int64Vector> IndexBuilder::Distances(const LaneIndex& a) const {
  if (a.lanes && !a.pattern) return std::nullopt;
  Int64Vector distances;
  for (int64_t l = 0; l < lanes_; ++l) {
    const auto* distance =
        a.pattern ? llvm::dyn_cast<llvm::ConstantInt>(a.pattern->getAggregateElement(static_cast<unsigned>(l)))
                  : nullptr;
    if (a.pattern && !distance) return std::nullopt;
    distances.push_back(distance ? distance->getSExtValue() : l * a.stride);
  }
  return distances;
}

LaneIndex IndexBuilder::AtDistances(V base, int64_t multiple, int level, const Int64Vector& distances) {
  LaneIndex out{.base = base, .multiple = multiple, .level = level};
  if (std::all_of(distances.begin(), distances.end(), [&](int64_t d) { return d == distances[0]; })) {
    if (distances[0] == 0) return out;
    out.base = Emit(Arith::kAdd, base, b_.I64(distances[0]), level);
    out.multiple = std::gcd(multiple, distances[0]);
    return out;
  }
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int64_t d : distances) lanes.push_back(llvm::cast<llvm::Constant>(b_.I64(d)));
  out.lanes = out.pattern = llvm::ConstantVector::get(lanes);
  return out;
}

LaneIndex IndexBuilder::AffineIfEven(const LaneIndex& a) {
  if (!a.pattern) return a;
  const std::optional<Int64Vector> distances = Distances(a);
  if (!distances) return a;
  const int64_t first = (*distances)[0], step = (*distances)[1] - first;
  for (size_t l = 1; l < distances->size(); ++l)
    if ((*distances)[l] - (*distances)[l - 1] != step) return a;
  LaneIndex out = a;
  out.lanes = nullptr;
  out.pattern = nullptr;
  out.base = Emit(Arith::kAdd, a.base, b_.I64(first), a.level);
  out.stride = step;
  out.multiple = first == 0 ? a.multiple : std::gcd(a.multiple, first);
  return out;
}

V IndexBuilder::Compute(Arith op, V a, V b) {
  switch (op) {
    case Arith::kAdd: return b_.Add(a, b);
    case Arith::kMul: return b_.Mul(a, b);
    case Arith::kExactDiv: return b_.ir().CreateExactSDiv(a, b);
    case Arith::kSpread: return b_.Add(b_.Mul(b_.LaneNumbers(lanes_, 64), b), a);  // a + lane * b
    default: break;
  }
  // Division by a constant divisor b. Where the dividend is known to fit (b comes as i32), 32 bits do: vectors have the
  // multiplication that such a division becomes.
  const bool narrow = VectorBuilder::ScalarBits(b) == 32;
  if (narrow) a = b_.ZExtOrTrunc(a, 32);
  b = b_.Splat(b, VectorBuilder::Lanes(a));
  V r = op == Arith::kUDiv ? b_.ir().CreateUDiv(a, b) : b_.ir().CreateURem(a, b);
  return narrow ? b_.ZExtOrTrunc(r, 64) : r;
}

V IndexBuilder::Emit(Arith op, V a, V b, int level) {
  const auto is = [](V v, int64_t n) {
    const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
    return c && c->getSExtValue() == n;
  };
  if (op == Arith::kAdd && is(a, 0)) return b;
  if (op == Arith::kAdd && is(b, 0)) return a;
  if (op == Arith::kMul && is(b, 1)) return a;
  // (x + 1) + 2 is x + 3: rows that are walked together find what they read to be the same.
  const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(a);
  if (const auto* more = llvm::dyn_cast<llvm::ConstantInt>(b);
      op == Arith::kAdd && more && sum && sum->getOpcode() == llvm::Instruction::Add)
    if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1)))
      return Emit(op, sum->getOperand(0), b_.I64(known->getSExtValue() + more->getSExtValue()), level);
  // (x * 4) / 2 is x * 2: what is read at the same places is seen to be the same.
  const auto* product = llvm::dyn_cast<llvm::BinaryOperator>(a);
  if (const auto* by = llvm::dyn_cast<llvm::ConstantInt>(b);
      (op == Arith::kMul || op == Arith::kExactDiv) && by && product && product->getOpcode() == llvm::Instruction::Mul)
    if (const auto* factor = llvm::dyn_cast<llvm::ConstantInt>(product->getOperand(1))) {
      const int64_t f = factor->getSExtValue(), g = by->getSExtValue();
      int64_t both = 0;
      if (op == Arith::kMul && !__builtin_mul_overflow(f, g, &both))
        return Emit(Arith::kMul, product->getOperand(0), b_.I64(both), level);
      if (op == Arith::kExactDiv && f % g == 0) return Emit(Arith::kMul, product->getOperand(0), b_.I64(f / g), level);
    }
  const LoopScopes::Key key{static_cast<uint64_t>(op), reinterpret_cast<uint64_t>(a), reinterpret_cast<uint64_t>(b)};
  if (const std::vector<V>* done = scopes_.Find(level, key)) return (*done)[0];
  V v = scopes_.At(level, [&] { return Compute(op, a, b); });
  scopes_.Remember(level, key, {v});
  return v;
}

V IndexBuilder::Materialize(const LaneIndex& a) {
  if (a.pattern) return Emit(Arith::kAdd, a.base, a.pattern, a.level);
  if (a.lanes) return a.lanes;
  if (a.stride == 0) return a.base;
  return Emit(Arith::kSpread, a.base, b_.I64(a.stride), a.level);
}

LaneIndex IndexBuilder::Add(const LaneIndex& a, const LaneIndex& b) {
  const int level = std::max(a.level, b.level);
  LaneIndex sum;
  if (!a.lanes && !b.lanes)
    sum = LaneIndex{.base = Emit(Arith::kAdd, a.base, b.base, level),
                    .stride = a.stride + b.stride,
                    .multiple = std::gcd(a.multiple, b.multiple),
                    .level = level};
  else if (const auto x = Distances(a), y = Distances(b); x && y) {
    Int64Vector distances;
    for (size_t l = 0; l < x->size(); ++l) distances.push_back((*x)[l] + (*y)[l]);
    sum = AtDistances(Emit(Arith::kAdd, a.base, b.base, level), std::gcd(a.multiple, b.multiple), level, distances);
  } else
    sum = LaneIndex{.lanes = Emit(Arith::kAdd, Materialize(a), Materialize(b), level), .level = level};
  AddFacts(a, b, sum);
  return sum;
}

LaneIndex IndexBuilder::Mul(const LaneIndex& a, int64_t factor) {
  if (factor == 1) return a;
  if (factor == 0) return Constant(0);
  LaneIndex product;
  const int64_t magnitude = std::abs(factor);
  const int64_t multiple = a.multiple > kAnyMultiple / magnitude ? magnitude : a.multiple * magnitude;
  if (a.pattern) {
    Int64Vector distances = *Distances(a);
    for (int64_t& d : distances) d *= factor;
    product = AtDistances(Emit(Arith::kMul, a.base, b_.I64(factor), a.level), multiple, a.level, distances);
  } else if (a.lanes) {
    product = LaneIndex{.lanes = Emit(Arith::kMul, a.lanes, b_.I64(factor), a.level), .level = a.level};
  } else {
    product = LaneIndex{.base = Emit(Arith::kMul, a.base, b_.I64(factor), a.level),
                        .stride = a.stride * factor,
                        .multiple = multiple,
                        .level = a.level};
  }
  MulFacts(a, factor, product);
  return product;
}

LaneIndex IndexBuilder::Sub(int64_t from, const LaneIndex& a) { return Plus(Mul(a, -1), from); }

LaneIndex IndexBuilder::Plus(const LaneIndex& a, int64_t offset) {
  return a.pattern ? Shift(a, offset) : Add(a, Constant(offset));
}

std::optional<std::pair<LaneIndex, LaneIndex>> IndexBuilder::DivModByLanes(const LaneIndex& a, int64_t divisor) {
  std::optional<Int64Vector> distances = Distances(a);
  if (!distances) return std::nullopt;
  LaneIndex base{.base = a.base, .multiple = a.multiple, .level = a.level};
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a.base)) {
    for (int64_t& distance : *distances) distance += known->getSExtValue();
    base = Constant(0);
  } else if (a.multiple % divisor != 0) {
    return std::nullopt;
  }
  Int64Vector quotients, rests;
  for (int64_t distance : *distances) {
    quotients.push_back(FloorDiv(distance, divisor));
    rests.push_back(distance - quotients.back() * divisor);
  }
  // The base may be negative: lanes that a condition excludes are in front of those that are not.
  V quotient = Emit(Arith::kExactDiv, base.base, b_.I64(divisor), a.level);
  const bool same = std::ranges::all_of(rests, [&](int64_t rest) { return rest == rests[0]; });
  return std::pair{AtDistances(quotient, std::max<int64_t>(base.multiple / divisor, 1), a.level, quotients),
                   same ? Constant(rests[0]) : AtDistances(b_.I64(0), kAnyMultiple, a.level, rests)};
}

// The same of x * factor + offset, one number, where the divisor divides the factor.
std::optional<std::pair<LaneIndex, LaneIndex>> IndexBuilder::DivModOfProduct(const LaneIndex& a, int64_t divisor) {
  const auto of = [](V v, unsigned opcode) -> std::pair<V, const llvm::ConstantInt*> {
    const auto* i = llvm::dyn_cast<llvm::BinaryOperator>(v);
    if (!i || i->getOpcode() != opcode) return {v, nullptr};
    const auto* by = llvm::dyn_cast<llvm::ConstantInt>(i->getOperand(1));
    return {by ? i->getOperand(0) : v, by};
  };
  if (!a.uniform()) return std::nullopt;
  const auto [product, more] = of(a.base, llvm::Instruction::Add);
  const auto [x, factor] = of(product, llvm::Instruction::Mul);
  if (!factor || factor->getSExtValue() % divisor != 0) return std::nullopt;
  const int64_t offset = more ? more->getSExtValue() : 0, quotient = FloorDiv(offset, divisor);
  V scaled = Emit(Arith::kMul, x, b_.I64(factor->getSExtValue() / divisor), a.level);
  return std::pair{LaneIndex{.base = Emit(Arith::kAdd, scaled, b_.I64(quotient), a.level), .level = a.level},
                   Constant(offset - quotient * divisor)};
}

std::pair<LaneIndex, LaneIndex> IndexBuilder::DivMod(const LaneIndex& a, int64_t divisor, int64_t bound) {
  if (divisor == 1) return {a, Constant(0)};
  if (divisor >= bound) return {Constant(0), a};
  if (const ArrayIndex* digits = DigitsOf(a)) {
    // It was made of digits: those behind the divisor are the rest. How large the first one gets is not known: under a
    // condition that excludes the rest, it is that of a smaller array.
    int64_t behind = 1;
    size_t first = digits->sizes.size();
    while (first > 0 && behind < divisor) behind *= digits->sizes[--first];
    if (behind == divisor && first > 0) {
      LaneIndex quotient = Combine(*digits, 0, first), rest = Combine(*digits, first, digits->sizes.size() - first);
      DivFacts(a, divisor, quotient, rest);
      return {quotient, rest};
    }
    // The divisor ends inside a digit, which is divided instead: what is in front of it needs no division.
    if (const int64_t size = first > 0 ? digits->sizes[first] : 0; size > 0 && behind > divisor) {
      const int64_t after = behind / size, own = divisor / after;
      if (divisor % after == 0 && size % own == 0) {
        ArrayIndex parts = *digits;  // the digits that are noted move when others are
        const auto [high, low] = DivMod(parts.digits[first], own, size);
        parts.digits[first] = high;
        parts.sizes[first] = size / own;
        LaneIndex quotient = Combine(parts, 0, first + 1);
        parts.digits[first] = low;
        parts.sizes[first] = own;
        LaneIndex rest = Combine(parts, first, parts.sizes.size() - first);
        DivFacts(a, divisor, quotient, rest);
        return {quotient, rest};
      }
    }
  }
  const bool narrow = bound <= int64_t{1} << 31;
  V d = narrow ? b_.I32(static_cast<int32_t>(divisor)) : b_.I64(divisor);
  // Affine if no lane leaves the divisor's period: it is a multiple of what the lanes span, and so is the first lane.
  const auto stays = [&](const LaneIndex& i) {
    const int64_t span = std::abs(i.stride) * lanes_;
    return !i.lanes && i.stride > 0 && divisor % span == 0 && i.multiple % span == 0;
  };
  LaneIndex quotient, rest;
  if (const auto known = DivModOfProduct(a, divisor)) {
    std::tie(quotient, rest) = *known;
  } else if (a.uniform() || stays(a)) {
    quotient = LaneIndex{.base = Emit(Arith::kUDiv, a.base, d, a.level), .level = a.level};
    rest = LaneIndex{.base = Emit(Arith::kURem, a.base, d, a.level),
                     .stride = a.stride,
                     .multiple = std::gcd(a.multiple, divisor),
                     .level = a.level};
  } else if (const auto known = DivModByLanes(a, divisor)) {
    std::tie(quotient, rest) = *known;
  } else if (const LaneIndex even = AffineIfEven(a); a.pattern && stays(even)) {
    return DivMod(even, divisor, bound);
  } else {
    V v = Materialize(a);
    quotient = FromLanes(Emit(Arith::kUDiv, v, d, a.level), a.level);
    rest = FromLanes(Emit(Arith::kURem, v, d, a.level), a.level);
  }
  DivFacts(a, divisor, quotient, rest);
  return {quotient, rest};
}

LoopScopes::Key IndexBuilder::SumKey(const LaneIndex& sum) const {
  return {static_cast<uint64_t>(Arith::kSum), owner_, reinterpret_cast<uint64_t>(sum.base),
          reinterpret_cast<uint64_t>(sum.lanes), static_cast<uint64_t>(sum.stride)};
}

const ArrayIndex* IndexBuilder::DigitsOf(const LaneIndex& a) const {
  const std::vector<V>* known = scopes_.Find(a.level, SumKey(a));
  if (!known) return nullptr;
  return &sums_[static_cast<size_t>(llvm::cast<llvm::ConstantInt>((*known)[0])->getZExtValue())];
}

void IndexBuilder::Note(const LaneIndex& sum, const ArrayIndex& digits) {
  const auto is_zero = [](const LaneIndex& d) {
    const auto* c = d.uniform() && !d.lanes ? llvm::dyn_cast<llvm::ConstantInt>(d.base) : nullptr;
    return c && c->isZero();
  };
  ArrayIndex known;  // without zeros at the front
  for (size_t i = 0; i < digits.sizes.size(); ++i) {
    LaneIndex d = digits.digits[i];
    if (known.sizes.empty() && is_zero(d)) continue;
    // What a condition excludes may be beyond its size, and its constants may be the same ones elsewhere.
    if (!known.sizes.empty() &&
        ((d.low != LaneIndex::kNoLow && d.low < 0) || (d.high != LaneIndex::kNoHigh && d.high >= digits.sizes[i])))
      return;
    // Bounds hold where the sum was made; it may be used in another part of the loop.
    d.low = LaneIndex::kNoLow;
    d.high = LaneIndex::kNoHigh;
    d.digit = -1;
    known.digits.push_back(d);
    known.sizes.push_back(digits.sizes[i]);
  }
  if (known.sizes.size() < 2) return;
  sums_.push_back(std::move(known));
  scopes_.Remember(sum.level, SumKey(sum), {b_.I64(static_cast<int64_t>(sums_.size()) - 1)});
}

LaneIndex IndexBuilder::Combine(const ArrayIndex& index, size_t first, size_t count) {
  if (count == 0) return Constant(0);
  SmallVector<LaneIndex, 4> parts;
  int64_t weight = 1;
  for (size_t i = first + count; i-- > first;) {
    if (index.sizes[i] != 1) parts.push_back(Mul(index.digits[i], weight));
    weight *= index.sizes[i];
  }
  // What outer loops know is added there.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const LaneIndex& a, const LaneIndex& b) { return a.level < b.level; });
  LaneIndex sum;
  const size_t terms = parts.size();
  for (size_t i = 0; i < terms; ++i) sum = i > 0 ? Add(parts[i], sum) : parts[i];
  if (terms > 1 && !DigitsOf(sum)) {
    ArrayIndex digits;
    for (size_t i = first; i < first + count; ++i)
      digits.digits.push_back(index.digits[i]), digits.sizes.push_back(index.sizes[i]);
    Note(sum, InKnownDigits(digits));
  }
  return terms > 0 ? sum : Constant(0);
}

ArrayIndex IndexBuilder::InKnownDigits(const ArrayIndex& index) const {
  ArrayIndex out;
  for (size_t i = 0; i < index.sizes.size(); ++i) {
    const ArrayIndex* digits = DigitsOf(index.digits[i]);
    if (digits && digits->num_elements() == index.sizes[i]) {
      for (const LaneIndex& d : digits->digits) out.digits.push_back(d);
      for (int64_t size : digits->sizes) out.sizes.push_back(size);
    } else {
      out.digits.push_back(index.digits[i]);
      out.sizes.push_back(index.sizes[i]);
    }
  }
  return out;
}

LaneIndex IndexBuilder::Linear(const ArrayIndex& index) { return Combine(index, 0, index.digits.size()); }

ArrayIndex IndexBuilder::Refactor(const ArrayIndex& index, std::span<const int64_t> sizes) {
  if (std::equal(sizes.begin(), sizes.end(), index.sizes.begin(), index.sizes.end())) return index;
  ArrayIndex out;
  out.sizes.assign(sizes.begin(), sizes.end());
  out.digits.resize(sizes.size());
  // From the innermost digits outwards, in segments after which both factorings meet.
  size_t from_end = index.sizes.size(), to_end = sizes.size();
  while (to_end > 0) {
    size_t from = from_end, to = to_end - 1;
    int64_t from_product = 1, to_product = sizes[to];
    while (from_product != to_product && (from > 0 || to > 0)) {
      if ((from_product < to_product && from > 0) || to == 0) {
        if (from == 0) break;
        from_product *= index.sizes[--from];
      } else {
        to_product *= sizes[--to];
      }
    }
    if (from_product == 1 && from == from_end) {
      out.digits[to] = Constant(0);
    } else if (to + 1 == to_end) {
      out.digits[to] = Combine(index, from, from_end - from);
    } else {
      LaneIndex rest = Combine(index, from, from_end - from);
      int64_t bound = to_product;
      for (size_t i = to_end; i-- > to;) {
        if (i == to) {
          out.digits[i] = rest;
          break;
        }
        auto [quotient, digit] = DivMod(rest, sizes[i], bound);
        out.digits[i] = digit;
        rest = quotient;
        bound /= sizes[i];
      }
    }
    from_end = from;
    to_end = to;
  }
  return out;
}

}  // namespace strop
