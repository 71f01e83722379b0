// rng as random bits and arithmetic, which fuse:
//
//   bits     = rng-bit-generator(philox, state of the program, advanced by what the bits take)
//   uniform  a + u * (b - a), where u = bits * 2^-24 (f64: 2^-53); integers: a + (bits * (b - a) >> 32)
//   normal   a + b * sqrt(-2 log(1 - u)) * cos(2 pi v)    (Box and Muller)
//
// The state lives in the executable, so every run gives new numbers, and the first run of a program always the same.
// Every rng has a key of its own. f16 and bf16 are computed in f32; a result that rounds up to b becomes a, because b
// is excluded. Integers of up to 32 bits are drawn by multiplication (the bias is less than 2^-32 of the range), those
// of 64 bits by remainder.
#include <numbers>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

class Expander {
 public:
  Expander(Instruction* rng, uint64_t key)
      : rng_(rng), b_(rng->parent()), type_(rng->shape().type()), dims_(rng->shape().dims().ToVector()), key_(key) {
    b_.set_insert_before(rng);
    b_.set_metadata(rng->shared_metadata());
  }

  Result<Instruction*> Run() {
    Instruction* result = rng_->attrs<RngAttrs>().distribution == RngDistribution::Normal ? Normal()
                          : IsFloat(type_)                                                ? UniformFloat()
                                                                                          : UniformInteger();
    STROP_TRY(b_.status());
    return result;
  }

 private:
  Instruction* Binary(Op op, Instruction* x, Instruction* y) { return b_.Make(op, {x, y}); }
  Instruction* Wide(Instruction* scalar) { return b_.Broadcast(scalar, dims_, {}); }
  Instruction* Number(ElementType type, double value) { return b_.Splat(type, value, dims_); }

  Instruction* Bits(ElementType type, const Int64Vector& dims) {
    const Shape bits = Shape::Array(type, dims), state = Shape::Array(ElementType::U64, {3});
    const int64_t block = 16;  // bytes that one step of the counter gives
    const RngStateAttrs advance{.delta = bits.byte_size() / block + 1};
    Instruction* counter = b_.MakeWithShape(Op::RngGetAndUpdateState, Shape::Array(ElementType::U64, {2}), {}, advance);
    Instruction* key = b_.Constant(Literal::Vector<uint64_t>({&key_, 1}));
    Instruction* drawn = b_.MakeWithShape(Op::RngBitGenerator, Shape::Tuple({state, bits}),
                                          {b_.Make(Op::Concatenate, {key, counter}, DimensionsAttrs{{0}})},
                                          RngBitGeneratorAttrs{RngAlgorithm::Philox});
    return b_.GetTupleElement(drawn, 1);
  }

  ElementType Compute() const { return type_ == ElementType::F64 ? ElementType::F64 : ElementType::F32; }

  // In [0, 1): as many bits as a number has digits.
  Instruction* UnitInterval(Instruction* bits) {
    const bool wide = Compute() == ElementType::F64;
    const ElementType word = wide ? ElementType::U64 : ElementType::U32;
    Instruction* digits = Binary(Op::ShiftRightLogical, bits, Number(word, wide ? 11 : 8));
    return Binary(Op::Multiply, b_.Convert(digits, Compute()), Number(Compute(), wide ? 0x1p-53 : 0x1p-24));
  }

  Instruction* UniformFloat() {
    const ElementType word = Compute() == ElementType::F64 ? ElementType::U64 : ElementType::U32;
    Instruction* low = b_.Convert(rng_->operand(0), Compute());
    Instruction* range = Binary(Op::Subtract, b_.Convert(rng_->operand(1), Compute()), low);
    Instruction* u = UnitInterval(Bits(word, dims_));
    Instruction* value = b_.Convert(Binary(Op::Add, Wide(low), Binary(Op::Multiply, u, Wide(range))), type_);
    Instruction* below = b_.Compare(value, Wide(rng_->operand(1)), CompareDirection::Lt);
    return b_.Make(Op::Select, {below, value, Wide(rng_->operand(0))});
  }

  Instruction* UniformInteger() {
    if (IsPred(type_)) {
      Instruction* bits = Bits(ElementType::U32, dims_);
      return b_.Compare(bits, Number(ElementType::U32, 0x1p31), CompareDirection::Lt);
    }
    const ElementType wide = IsSigned(type_) ? ElementType::S64 : ElementType::U64;
    Instruction* low = b_.Convert(rng_->operand(0), wide);
    Instruction* range = b_.Convert(Binary(Op::Subtract, b_.Convert(rng_->operand(1), wide), low), ElementType::U64);
    Instruction* offset;
    if (strop::Bits(type_) <= 32) {
      Instruction* bits = b_.Convert(Bits(ElementType::U32, dims_), ElementType::U64);
      offset = Binary(Op::ShiftRightLogical, Binary(Op::Multiply, bits, Wide(range)), Number(ElementType::U64, 32));
    } else {
      range = Binary(Op::Maximum, range, b_.Scalar(ElementType::U64, 1));  // an empty range gives its low end
      offset = Binary(Op::Remainder, Bits(ElementType::U64, dims_), Wide(range));
    }
    return b_.Convert(Binary(Op::Add, Wide(low), b_.Convert(offset, wide)), type_);
  }

  Instruction* Normal() {
    const ElementType compute = Compute();
    Int64Vector pair = dims_;
    pair.insert(pair.begin(), 2);
    Instruction* bits = Bits(compute == ElementType::F64 ? ElementType::U64 : ElementType::U32, pair);
    const auto half = [&](int64_t k) {
      Dims start, limit, stride;
      for (int64_t d : pair) {
        start.push_back(0);
        limit.push_back(d);
        stride.push_back(1);
      }
      start[0] = k;
      limit[0] = k + 1;
      return UnitInterval(b_.Reshape(b_.Slice(bits, start, limit, stride), dims_));
    };
    Instruction* log = b_.Make(Op::Log, {Binary(Op::Subtract, Number(compute, 1), half(0))}, AccuracyAttrs{});
    Instruction* radius = b_.Make(Op::Sqrt, {Binary(Op::Multiply, Number(compute, -2), log)}, AccuracyAttrs{});
    Instruction* angle = Binary(Op::Multiply, half(1), Number(compute, 2 * std::numbers::pi));
    Instruction* unit = Binary(Op::Multiply, radius, b_.Make(Op::Cos, {angle}, AccuracyAttrs{}));
    Instruction* scaled = Binary(Op::Multiply, unit, Wide(b_.Convert(rng_->operand(1), compute)));
    return b_.Convert(Binary(Op::Add, Wide(b_.Convert(rng_->operand(0), compute)), scaled), type_);
  }

  Instruction* rng_;
  Builder b_;
  ElementType type_;
  Int64Vector dims_;
  uint64_t key_;
};

struct RngExpander final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::Rng || !i->shape().IsStatic()) continue;
        const uint64_t key = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(expanded + 1);
        STROP_ASSIGN(Instruction * value, Expander(i, key).Run());
        c->Replace(i, value);
        ++expanded;
      }
    }
    context.Count("rng-expander.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeRngExpander() { return std::make_unique<RngExpander>(); }

}  // namespace strop
