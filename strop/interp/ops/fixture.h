// For the tests of this room: evaluate one op on literals, make literals from numbers, scalar bodies for reduce and
// sort.
#pragma once
#include <gtest/gtest.h>

#include "strop/interp/interpreter.h"
#include "strop/ir/builder.h"

namespace strop::interp {

class OpTest : public ::testing::Test {
 protected:
  // The value of op(operands...); `declared` where the shape does not follow. Reports a failure as a test failure.
  Literal Eval(Op op, std::vector<Literal> operands, Attrs attrs = NoAttrs{}, std::vector<Computation*> called = {},
               const Shape* declared = nullptr) {
    Result<Literal> result = TryEval(op, std::move(operands), std::move(attrs), std::move(called), declared);
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    // After a failure, something that the rest of the test may look at.
    return result.ok() ? *std::move(result) : *Literal::Zeros(Shape::Array(ElementType::F64, {64}));
  }
  Literal EvalTo(const Shape& shape, Op op, std::vector<Literal> operands, Attrs attrs = NoAttrs{},
                 std::vector<Computation*> called = {}) {
    return Eval(op, std::move(operands), std::move(attrs), std::move(called), &shape);
  }
  Result<Literal> TryEval(Op op, std::vector<Literal> operands, Attrs attrs = NoAttrs{},
                          std::vector<Computation*> called = {}, const Shape* declared = nullptr) {
    if (attrs.is<NoAttrs>()) attrs = DefaultAttrs(op);
    Builder b(module_.AddComputation("test"));
    std::vector<Instruction*> parameters;
    for (size_t i = 0; i < operands.size(); ++i)
      parameters.push_back(b.Parameter(static_cast<int64_t>(i), operands[i].shape()));
    Instruction* instruction = b.Make(op, parameters, std::move(attrs), called, declared);
    STROP_TRY(b.status());
    return interpreter_.EvaluateInstruction(*instruction, operands);
  }

  // f(p0, p1) = op(p0, p1) over scalars.
  Computation* Binary(Op op, ElementType type) {
    Builder b(module_.AddComputation("binary"));
    Instruction* x = b.Parameter(0, Shape::Scalar(type));
    Instruction* y = b.Parameter(1, Shape::Scalar(type));
    b.Make(op, {x, y});
    EXPECT_TRUE(b.Finish().ok());
    return b.computation();
  }
  // f(p0, p1, ...) = p0 direction p1, with two parameters for each type.
  Computation* Comparator(CompareDirection direction, std::vector<ElementType> types) {
    Builder b(module_.AddComputation("compare"));
    std::vector<Instruction*> p;
    for (size_t i = 0; i < 2 * types.size(); ++i)
      p.push_back(b.Parameter(static_cast<int64_t>(i), Shape::Scalar(types[i / 2])));
    b.Compare(p[0], p[1], direction);
    EXPECT_TRUE(b.Finish().ok());
    return b.computation();
  }

  // An array of any type from numbers; complex ones get the numbers as real parts.
  static Literal Array(ElementType type, Int64Vector dims, std::vector<double> values) {
    Literal out = *Literal::Zeros(Shape::Array(type, dims));
    EXPECT_EQ(out.num_elements(), static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) out.SetDouble(static_cast<int64_t>(i), values[i]);
    return out;
  }
  static Literal Vector(ElementType type, std::vector<double> values) {
    const int64_t n = static_cast<int64_t>(values.size());
    return Array(type, {n}, std::move(values));
  }
  static Literal Integers(ElementType type, std::vector<int64_t> values) {
    Literal out = *Literal::Zeros(Shape::Array(type, {static_cast<int64_t>(values.size())}));
    for (size_t i = 0; i < values.size(); ++i) out.SetInt(static_cast<int64_t>(i), values[i]);
    return out;
  }
  static Literal ComplexVector(ElementType type, std::vector<std::complex<double>> values) {
    Literal out = *Literal::Zeros(Shape::Array(type, {static_cast<int64_t>(values.size())}));
    for (size_t i = 0; i < values.size(); ++i) out.SetComplex(static_cast<int64_t>(i), values[i]);
    return out;
  }
  static Literal Iota(ElementType type, Int64Vector dims) {
    Literal out = *Literal::Zeros(Shape::Array(type, dims));
    for (int64_t i = 0; i < out.num_elements(); ++i) out.SetDouble(i, static_cast<double>(i));
    return out;
  }

  Module module_{"test"};
  Interpreter interpreter_;
};

}  // namespace strop::interp
