// Integers of every width: wrapping, division, shifts, counting.
#include "strop/interp/ops/fixture.h"

namespace strop::interp {
namespace {

class IntegerTest : public OpTest {
 protected:
  static std::vector<ElementType> Types() {
    std::vector<ElementType> out;
    for (int i = 0; i < kNumElementTypes; ++i)
      if (IsInteger(static_cast<ElementType>(i))) out.push_back(static_cast<ElementType>(i));
    return out;
  }
  static int64_t Min(ElementType t) { return IsSigned(t) ? -(int64_t{1} << (Bits(t) - 2)) * 2 : 0; }
  static int64_t Max(ElementType t) {
    if (IsUnsigned(t)) return static_cast<int64_t>(Bits(t) == 64 ? ~uint64_t{0} : (uint64_t{1} << Bits(t)) - 1);
    return static_cast<int64_t>(~static_cast<uint64_t>(Min(t)));
  }
  int64_t Do(Op op, ElementType t, int64_t a, int64_t b) {
    return Eval(op, {Integers(t, {a}), Integers(t, {b})}).GetInt(0);
  }
  int64_t Do(Op op, ElementType t, int64_t a) { return Eval(op, {Integers(t, {a})}).GetInt(0); }
};

TEST_F(IntegerTest, WrapsAtItsWidth) {
  for (ElementType t : Types()) {
    if (Bits(t) < 2) continue;
    SCOPED_TRACE(Name(t));
    EXPECT_EQ(Do(Op::Add, t, Max(t), 1), Min(t));
    EXPECT_EQ(Do(Op::Subtract, t, Min(t), 1), Max(t));
    EXPECT_EQ(Do(Op::Negate, t, 1), IsSigned(t) ? -1 : Max(t));
    EXPECT_EQ(Do(Op::Negate, t, Min(t)), Min(t));
    EXPECT_EQ(Do(Op::Multiply, t, Max(t), Max(t)), 1);
    EXPECT_EQ(Do(Op::Not, t, Min(t)), Max(t));
    if (IsSigned(t)) {
      EXPECT_EQ(Do(Op::Abs, t, Min(t)), Min(t));
    }
  }
}

TEST_F(IntegerTest, DivisionAndRemainder) {
  for (ElementType t : Types()) {
    if (Bits(t) < 4) continue;
    SCOPED_TRACE(Name(t));
    EXPECT_EQ(Do(Op::Divide, t, 7, 2), 3);
    EXPECT_EQ(Do(Op::Divide, t, 5, 0), IsSigned(t) ? -1 : Max(t));
    EXPECT_EQ(Do(Op::Remainder, t, 5, 0), 5);
    EXPECT_EQ(Do(Op::Remainder, t, 7, 4), 3);
    if (!IsSigned(t)) continue;
    EXPECT_EQ(Do(Op::Divide, t, -7, 2), -3);
    EXPECT_EQ(Do(Op::Remainder, t, -7, 2), -1);
    EXPECT_EQ(Do(Op::Remainder, t, 7, -2), 1);
    EXPECT_EQ(Do(Op::Divide, t, Min(t), -1), Min(t));
    EXPECT_EQ(Do(Op::Remainder, t, Min(t), -1), 0);
  }
}

TEST_F(IntegerTest, Shifts) {
  for (ElementType t : Types()) {
    if (Bits(t) < 4) continue;
    SCOPED_TRACE(Name(t));
    EXPECT_EQ(Do(Op::ShiftLeft, t, 1, 2), 4);
    EXPECT_EQ(Do(Op::ShiftLeft, t, Max(t), Bits(t) - 1), IsSigned(t) ? Min(t) : Max(t) - (Max(t) >> 1 & INT64_MAX));
    if (Bits(t) > 4 || !IsSigned(t)) {
      EXPECT_EQ(Do(Op::ShiftLeft, t, 3, Bits(t)), 0);
      EXPECT_EQ(Do(Op::ShiftRightLogical, t, Max(t), Bits(t)), 0);
    }
    EXPECT_EQ(Do(Op::ShiftRightLogical, t, Max(t), 1),
              IsSigned(t) ? Max(t) / 2 : static_cast<int64_t>(static_cast<uint64_t>(Max(t)) / 2));
    if (!IsSigned(t)) continue;
    EXPECT_EQ(Do(Op::ShiftRightArithmetic, t, Min(t), 1), Min(t) / 2);
    EXPECT_EQ(Do(Op::ShiftRightArithmetic, t, -1, -1), -1);  // a negative amount is too large
    EXPECT_EQ(Do(Op::ShiftRightArithmetic, t, 1, -1), 0);
    EXPECT_EQ(Do(Op::ShiftRightLogical, t, -1, Bits(t) - 1), 1);
    EXPECT_EQ(Do(Op::ShiftLeft, t, 1, -1), 0);
  }
}

TEST_F(IntegerTest, CountsBits) {
  for (ElementType t : Types()) {
    SCOPED_TRACE(Name(t));
    if (Bits(t) < 8) continue;  // the counts do not fit into fewer bits
    EXPECT_EQ(Do(Op::Clz, t, 0), Bits(t));
    EXPECT_EQ(Do(Op::Clz, t, 1), Bits(t) - 1);
    EXPECT_EQ(Do(Op::PopulationCount, t, 0), 0);
    EXPECT_EQ(Do(Op::PopulationCount, t, Max(t)), IsSigned(t) ? Bits(t) - 1 : Bits(t));
    if (IsSigned(t)) {
      EXPECT_EQ(Do(Op::Clz, t, -1), 0);
    }
  }
}

TEST_F(IntegerTest, OrderSignPower) {
  for (ElementType t : Types()) {
    if (Bits(t) < 4) continue;
    SCOPED_TRACE(Name(t));
    EXPECT_EQ(Do(Op::Maximum, t, Min(t), Max(t)), Max(t));
    EXPECT_EQ(Do(Op::Minimum, t, Min(t), Max(t)), Min(t));
    EXPECT_EQ(Do(Op::Power, t, 2, 2), 4);
    EXPECT_EQ(Do(Op::Power, t, 0, 0), 1);
    if (!IsSigned(t)) continue;
    EXPECT_EQ(Do(Op::Sign, t, Max(t)), 1);
    EXPECT_EQ(Do(Op::Sign, t, 0), 0);
    EXPECT_EQ(Do(Op::Sign, t, Min(t)), -1);
    EXPECT_EQ(Do(Op::Power, t, 2, -1), 0);
    EXPECT_EQ(Do(Op::Power, t, -1, -3), -1);
    EXPECT_EQ(Do(Op::Power, t, -1, -2), 1);
  }
}

TEST_F(IntegerTest, Mulhi) {
  EXPECT_EQ(Do(Op::Mulhi, ElementType::U32, 0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFE);
  EXPECT_EQ(Do(Op::Mulhi, ElementType::S32, INT32_MIN, INT32_MIN), 1 << 30);
  EXPECT_EQ(Do(Op::Mulhi, ElementType::U64, -1, -1), -2);
  EXPECT_EQ(Do(Op::Mulhi, ElementType::S64, -1, 1), -1);
  EXPECT_EQ(Do(Op::Mulhi, ElementType::U8, 200, 200), 200 * 200 >> 8);
}

TEST_F(IntegerTest, Predicates) {
  const Literal a = Integers(ElementType::Pred, {0, 0, 1, 1}), b = Integers(ElementType::Pred, {0, 1, 0, 1});
  EXPECT_EQ(Eval(Op::And, {a, b}), Integers(ElementType::Pred, {0, 0, 0, 1}));
  EXPECT_EQ(Eval(Op::Or, {a, b}), Integers(ElementType::Pred, {0, 1, 1, 1}));
  EXPECT_EQ(Eval(Op::Xor, {a, b}), Integers(ElementType::Pred, {0, 1, 1, 0}));
  EXPECT_EQ(Eval(Op::Not, {a}), Integers(ElementType::Pred, {1, 1, 0, 0}));
  EXPECT_EQ(Eval(Op::Maximum, {a, b}), Integers(ElementType::Pred, {0, 1, 1, 1}));
  EXPECT_EQ(Eval(Op::Minimum, {a, b}), Integers(ElementType::Pred, {0, 0, 0, 1}));
}

TEST_F(IntegerTest, FloatMathIsRefused) {
  const Result<Literal> sine = TryEval(Op::Sin, {Integers(ElementType::S32, {1})});
  EXPECT_FALSE(sine.ok());
}

}  // namespace
}  // namespace strop::interp
