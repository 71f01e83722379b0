// Every elementwise op on every element type that shape inference admits: one kernel a type, one result an op.
#include <gtest/gtest.h>

#include "strop/cpu/testing/differential.h"
#include "strop/ir/builder.h"

namespace strop::cpu {
namespace {

constexpr ElementType kTypes[] = {
#define ELEMENT(e, ...) ElementType::e,
    STROP_ELEMENT_TYPES(ELEMENT)
#undef ELEMENT
};

const Shape& ShapeOf(ElementType type) {
  static std::vector<Shape> shapes(kNumElementTypes);
  Shape& s = shapes[static_cast<size_t>(type)];
  s = Shape::Array(type, {3, 37});
  return s;
}

// Null if the op is not defined for the type.
Instruction* TryMake(Builder& b, Op op, ElementType type, const std::vector<Instruction*>& x) {
  std::vector<Instruction*> operands(x.begin(), x.begin() + Info(op).arity);
  Attrs attrs = DefaultAttrs(op);
  if (op == Op::Compare) attrs = CompareAttrs{CompareDirection::Le, CompareOrder::Default};
  if (op == Op::ReducePrecision) attrs = ReducePrecisionAttrs{5, 7};
  if (op == Op::Select) operands = {x[3], x[0], x[1]};
  std::vector<const Shape*> shapes;
  for (Instruction* o : operands) shapes.push_back(&o->shape());
  const Shape declared = ShapeOf(type);
  const Shape* wanted = Is(op, kChangesType) ? nullptr : &declared;
  if (!InferShape(op, shapes, attrs, {}, wanted).ok()) return nullptr;
  return b.Make(op, operands, attrs, {}, wanted);
}

double Tolerance(Op op, ElementType type) {
  if (Is(op, kFloatMath)) return IsComplex(type) ? 64 : 4;
  if (IsComplex(type)) return 8;
  return 0;
}

// All ops of a class in one kernel; on failure one by one, to name the op.
std::string CheckOps(ElementType type, const std::vector<Op>& ops, double ulps) {
  Module m("m");
  Differential d(m);
  Builder b(d.body());
  std::vector<Instruction*> x;
  for (int64_t k = 0; k < 3; ++k) x.push_back(b.Parameter(k, ShapeOf(type)));
  x.push_back(b.Parameter(3, ShapeOf(ElementType::Pred)));
  std::vector<Instruction*> results;
  std::vector<Op> made;
  for (Op op : ops) {
    if (Instruction* i = TryMake(b, op, type, x)) {
      results.push_back(i);
      made.push_back(op);
    }
  }
  if (results.empty()) return "";
  b.Tuple(results);
  if (Status s = b.Finish(); !s.ok()) return s.ToString();
  d.set_ulps(ulps);
  d.set_tame(IsComplex(type));
  const std::string difference = d.Check();
  if (difference.empty() || made.size() == 1) return difference;
  std::string all;
  for (Op op : made)
    if (std::string one = CheckOps(type, {op}, ulps); !one.empty())
      StrAppend(all, Name(op), " ", Name(type), ": ", one, "\n");
  return all.empty() ? "together only: " + difference : all;
}

TEST(Elementwise, EveryOpOfEveryType) {
  for (ElementType type : kTypes) {
    if (!IsArrayType(type)) continue;
    std::map<double, std::vector<Op>> ops;
    ForEachOp<kElementwise>([&]<Op O> {
      if (O != Op::Convert && O != Op::StochasticConvert && O != Op::Complex) ops[Tolerance(O, type)].push_back(O);
    });
    for (const auto& [ulps, list] : ops) EXPECT_EQ(CheckOps(type, list, ulps), "") << Name(type);
  }
}

// Kernels hold small floats in wider ones: results are numbers of their type before they are stored, too.
TEST(Elementwise, SmallFloatsInRegistersAreOfTheirType) {
  for (ElementType type : kTypes) {
    if (!IsFloat(type) || Bits(type) > 16) continue;
    Module m("m");
    Differential d(m);
    Builder b(d.body());
    std::vector<Instruction*> x;
    for (int64_t k = 0; k < 3; ++k) x.push_back(b.Parameter(k, ShapeOf(type)));
    x.push_back(b.Parameter(3, ShapeOf(ElementType::Pred)));
    std::vector<Instruction*> results;
    ForEachOp<kElementwise>([&]<Op O> {
      if (Is(O, kFloatMath) || O == Op::Convert || O == Op::StochasticConvert || O == Op::Complex) return;
      Instruction* result = TryMake(b, O, type, x);
      if (result && result->shape().type() == type) results.push_back(b.Convert(result, ElementType::F32));
    });
    b.Tuple(results);
    ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
    EXPECT_EQ(d.Check(), "") << Name(type);
  }
}

TEST(Elementwise, ConvertBetweenAllTypes) {
  for (ElementType from : kTypes) {
    if (!IsArrayType(from)) continue;
    Module m("m");
    Differential d(m);
    Builder b(d.body());
    Instruction* x = b.Parameter(0, ShapeOf(from));
    std::vector<Instruction*> results;
    std::vector<ElementType> targets;
    for (ElementType to : kTypes) {
      if (!IsArrayType(to) || (IsComplex(from) && !IsComplex(to))) continue;
      results.push_back(b.Convert(x, to));
      targets.push_back(to);
    }
    b.Tuple(results);
    ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
    const std::string difference = d.Check();
    EXPECT_EQ(difference, "") << "from " << Name(from) << " to "
                              << (difference.starts_with("result ") ? Name(targets[std::stoul(difference.substr(7))])
                                                                    : "?");
  }
}

TEST(Elementwise, EveryCodeOfSmallFloats) {
  // All codes to f32 and back: decoding is exact, and encoding what was decoded gives the code again.
  for (ElementType type : kTypes) {
    if (!IsFloat(type) || Bits(type) > 16) continue;
    const int64_t codes = int64_t{1} << Bits(type);
    Module m("m");
    Differential d(m);
    Builder b(d.body());
    Instruction* x = b.Parameter(0, Shape::Array(type, {codes}));
    Instruction* wide = b.Convert(x, ElementType::F32);
    Instruction* nudged = b.Make(Op::Multiply, {wide, b.Splat(ElementType::F32, 1.03125, {codes})});
    std::vector<Instruction*> results{wide, b.Convert(wide, type), b.Convert(nudged, type),
                                      b.Convert(b.Convert(nudged, ElementType::F64), type)};
    b.Tuple(results);
    ASSERT_TRUE(b.Finish().ok());
    Literal all = *Literal::Zeros(Shape::Array(type, {codes}));
    auto bytes = all.mutable_bytes();
    for (int64_t c = 0; c < codes; ++c)
      std::memcpy(&bytes[static_cast<size_t>(c * Bytes(type))], &c, static_cast<size_t>(Bytes(type)));
    d.SetInput(0, all);
    EXPECT_EQ(d.Check(), "") << Name(type);
  }
}

// All numbers of bf16 by some of them, one a row: by the reciprocal, with the quotient's own rounding.
TEST(Elementwise, QuotientsOfRowsOfBf16) {
  constexpr int64_t kCodes = 1 << 16, kDivisors = 61;
  Module m("m");
  Differential d(m);
  Builder b(d.body());
  Instruction* x = b.Parameter(0, Shape::Array(ElementType::BF16, {kCodes}));
  Instruction* y = b.Parameter(1, Shape::Array(ElementType::BF16, {kDivisors}));
  const Dims dims{kDivisors, kCodes};
  b.Make(Op::Divide, {b.Broadcast(x, dims, {1}), b.Broadcast(y, dims, {0})});
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  std::vector<uint16_t> all, divisors{0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0x7e80, 0x3f80};
  for (int64_t c = 0; c < kCodes; ++c) all.push_back(static_cast<uint16_t>(c));
  while (divisors.size() < kDivisors) divisors.push_back(static_cast<uint16_t>(divisors.size() * 0x9e37));
  const auto literal = [](const std::vector<uint16_t>& codes) {
    Literal value = *Literal::Zeros(Shape::Array(ElementType::BF16, {static_cast<int64_t>(codes.size())}));
    std::memcpy(value.mutable_bytes().data(), codes.data(), codes.size() * sizeof(codes[0]));
    return value;
  };
  d.SetInput(0, literal(all));
  d.SetInput(1, literal(divisors));
  EXPECT_EQ(d.Check(), "");
}

// Integers on, just below and just above what lies half way between two small floats, and the largest ones.
TEST(Elementwise, IntegersToSmallFloats) {
  std::vector<int32_t> values{0, INT32_MAX, INT32_MIN, INT32_MIN + 1};
  for (int shift = 0; shift < 31; ++shift)
    for (int64_t odd : {257, 259, 385, 511, 513, 2049, 4095, 131073})
      for (int64_t nudge : {-1, 0, 1})
        for (int64_t sign : {-1, 1}) values.push_back(static_cast<int32_t>(sign * ((odd << shift) + nudge)));
  const auto check = [](const Literal& all, ElementType type) {
    Module m("m");
    Differential d(m);
    Builder b(d.body());
    Instruction* x = b.Parameter(0, all.shape());
    const auto float_types = {ElementType::BF16, ElementType::F16, ElementType::F8E5M2, ElementType::F8E4M3FN};
    std::vector<Instruction*> results;
    for (ElementType to : float_types) results.push_back(b.Convert(x, to));
    b.Tuple(results);
    ASSERT_TRUE(b.Finish().ok());
    d.SetInput(0, all);
    EXPECT_EQ(d.Check(), "") << Name(type);
  };
  check(Literal::Vector<int32_t>(values), ElementType::S32);
  check(Literal::Vector<uint32_t>(std::vector<uint32_t>(values.begin(), values.end())), ElementType::U32);
  check(Literal::Vector<int64_t>(std::vector<int64_t>(values.begin(), values.end())), ElementType::S64);
}

TEST(Elementwise, CompareDirectionsAndOrders) {
  for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::F16, ElementType::BF16, ElementType::S32,
                           ElementType::U8, ElementType::Pred}) {
    for (CompareOrder order : {CompareOrder::Default, CompareOrder::TotalOrder}) {
      if (order == CompareOrder::TotalOrder && !IsFloat(type)) continue;
      Module m("m");
      Differential d(m);
      Builder b(d.body());
      Instruction* x = b.Parameter(0, ShapeOf(type));
      Instruction* y = b.Parameter(1, ShapeOf(type));
      std::vector<Instruction*> results;
      for (int direction = 0; direction < 6; ++direction) {
        results.push_back(b.Make(Op::Compare, {x, y}, CompareAttrs{static_cast<CompareDirection>(direction), order}));
        results.push_back(b.Make(Op::Compare, {x, x}, CompareAttrs{static_cast<CompareDirection>(direction), order}));
      }
      b.Tuple(results);
      ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
      EXPECT_EQ(d.Check(), "") << Name(type);
    }
  }
}

TEST(Elementwise, LongChainsDoNotRecurse) {
  Module m("m");
  Differential d(m);
  Builder b(d.body());
  Instruction* x = b.Parameter(0, Shape::Array(ElementType::F32, {50}));
  Instruction* sum = x;
  for (int i = 0; i < 3000; ++i) sum = b.Make(i % 2 ? Op::Add : Op::Multiply, {sum, x});
  ASSERT_TRUE(b.Finish().ok());
  d.set_tame(true);
  EXPECT_EQ(d.Check(), "");
}

}  // namespace
}  // namespace strop::cpu
