// Contractions, reductions, windows, sorting: small golden values worked out by hand.
#include <cmath>
#include <cstring>

#include "strop/interp/ops/fixture.h"

namespace strop::interp {
namespace {

constexpr ElementType kF32 = ElementType::F32;
constexpr ElementType kS32 = ElementType::S32;

class ReduceTest : public OpTest {};

TEST_F(ReduceTest, DotWithBatch) {
  DotAttrs matmul;
  matmul.lhs_contracting = {1};
  matmul.rhs_contracting = {0};
  EXPECT_EQ(EvalTo(Shape::Array(kF32, {2, 2}), Op::Dot, {Iota(kF32, {2, 3}), Iota(kF32, {3, 2})}, matmul),
            Array(kF32, {2, 2}, {10, 13, 28, 40}));
  DotAttrs batched;
  batched.lhs_batch = batched.rhs_batch = {0};
  batched.lhs_contracting = batched.rhs_contracting = {1};
  EXPECT_EQ(EvalTo(Shape::Array(kS32, {2}), Op::Dot, {Iota(kS32, {2, 2}), Iota(kS32, {2, 2})}, batched),
            Vector(kS32, {1, 13}));
  // Narrow operands, wide result; wrapping.
  DotAttrs inner;
  inner.lhs_contracting = inner.rhs_contracting = {0};
  EXPECT_EQ(EvalTo(Shape::Scalar(kS32), Op::Dot,
                   {Vector(ElementType::S8, {100, 100}), Vector(ElementType::S8, {100, 100})}, inner)
                .GetInt(0),
            20000);
  EXPECT_EQ(EvalTo(Shape::Scalar(ElementType::S8), Op::Dot,
                   {Vector(ElementType::S8, {100, 100}), Vector(ElementType::S8, {100, 100})}, inner)
                .GetInt(0),
            32);
  EXPECT_EQ(EvalTo(Shape::Scalar(ElementType::C64), Op::Dot,
                   {ComplexVector(ElementType::C64, {{0, 1}}), ComplexVector(ElementType::C64, {{0, 1}})}, inner)
                .GetComplex(0),
            std::complex<double>(-1, 0));
}

TEST_F(ReduceTest, ScaledDot) {
  DotAttrs inner;
  inner.lhs_contracting = inner.rhs_contracting = {0};
  // Two blocks of two: (1+2)*2 + (3+4)*10, times a rhs of ones.
  EXPECT_EQ(
      EvalTo(Shape::Scalar(kF32), Op::ScaledDot,
             {Vector(kF32, {1, 2, 3, 4}), Vector(kF32, {1, 1, 1, 1}), Vector(kF32, {2, 10}), Vector(kF32, {1})}, inner)
          .GetDouble(0),
      76);
  EXPECT_EQ(EvalTo(Shape::Scalar(kS32), Op::ScaledDot,
                   {Vector(kF32, {1.5, 2}), Vector(kF32, {1, 1}), Vector(kF32, {1}), Vector(kF32, {1})}, inner)
                .GetInt(0),
            3);
}

// Larger than a tile in every dimension: all products are met once.
TEST_F(ReduceTest, DotOfManyTiles) {
  constexpr int64_t kRows = 261, kInner = 67, kColumns = 259;
  DotAttrs inner;
  inner.lhs_contracting = {1};
  inner.rhs_contracting = {0};
  std::vector<double> lhs(kRows * kInner), rhs(kInner * kColumns);
  for (size_t i = 0; i < lhs.size(); ++i) lhs[i] = static_cast<double>(i % 7);
  for (size_t i = 0; i < rhs.size(); ++i) rhs[i] = static_cast<double>(i % 11);
  const Literal result =
      Eval(Op::Dot, {Array(kF32, {kRows, kInner}, lhs), Array(kF32, {kInner, kColumns}, rhs)}, inner);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kInner; ++k)
        sum += lhs[static_cast<size_t>(i * kInner + k)] * rhs[static_cast<size_t>(k * kColumns + j)];
      ASSERT_EQ(result.GetDouble(i * kColumns + j), sum) << i << ", " << j;
    }
}

TEST_F(ReduceTest, RaggedDot) {
  RaggedDotAttrs rows;  // ragged m: rows 0 and 1 use rhs 0, row 2 uses rhs 1, row 3 none
  rows.lhs_contracting = {1};
  rows.rhs_contracting = {1};
  rows.lhs_ragged = {0};
  rows.rhs_group = {0};
  EXPECT_EQ(Eval(Op::RaggedDot,
                 {Array(kF32, {4, 1}, {1, 2, 3, 4}), Array(kF32, {2, 1, 1}, {10, 100}), Integers(kS32, {2, 1})}, rows),
            Array(kF32, {4, 1}, {10, 20, 300, 0}));
  RaggedDotAttrs inner;  // ragged k
  inner.lhs_contracting = {1};
  inner.rhs_contracting = {0};
  inner.lhs_ragged = {1};
  EXPECT_EQ(Eval(Op::RaggedDot,
                 {Array(kF32, {1, 4}, {1, 2, 3, 4}), Array(kF32, {4, 1}, {1, 1, 1, 1}), Integers(kS32, {1, 2})}, inner),
            Array(kF32, {2, 1, 1}, {1, 5}));
}

ConvolutionAttrs Conv1d(WindowDim w) {
  ConvolutionAttrs a;
  a.window.dims = {w};
  a.dim_labels.input_spatial = a.dim_labels.kernel_spatial = a.dim_labels.output_spatial = {2};
  a.dim_labels.kernel_output_feature = 0;
  a.dim_labels.kernel_input_feature = 1;
  return a;
}

TEST_F(ReduceTest, Convolution) {
  const Literal x = Array(kF32, {1, 1, 4}, {1, 2, 3, 4}), k = Array(kF32, {1, 1, 3}, {1, 10, 100});
  auto conv = [&](WindowDim w) { return Eval(Op::Convolution, {x, k}, Conv1d(w)); };
  EXPECT_EQ(conv({.size = 3}), Array(kF32, {1, 1, 2}, {321, 432}));
  EXPECT_EQ(conv({.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1}), Array(kF32, {1, 1, 2}, {210, 432}));
  EXPECT_EQ(conv({.size = 3, .pad_low = 1, .pad_high = 1, .window_dilation = 2}).num_elements(), 2);
  EXPECT_EQ(conv({.size = 3, .base_dilation = 2}), Array(kF32, {1, 1, 5}, {201, 20, 302, 30, 403}));
  EXPECT_EQ(conv({.size = 3, .reversal = true}), Array(kF32, {1, 1, 2}, {123, 234}));
  // Two feature groups: each output sees its own input feature.
  ConvolutionAttrs grouped = Conv1d({.size = 1});
  grouped.feature_group_count = 2;
  EXPECT_EQ(Eval(Op::Convolution, {Array(kF32, {1, 2, 1}, {3, 5}), Array(kF32, {2, 1, 1}, {10, 100})}, grouped),
            Array(kF32, {1, 2, 1}, {30, 500}));
  ConvolutionAttrs batches = Conv1d({.size = 1});
  batches.batch_group_count = 2;
  EXPECT_EQ(Eval(Op::Convolution, {Array(kF32, {2, 1, 1}, {3, 5}), Array(kF32, {2, 1, 1}, {10, 100})}, batches),
            Array(kF32, {1, 2, 1}, {30, 500}));
}

TEST_F(ReduceTest, ReduceKeepsOneRounding) {
  EXPECT_EQ(Eval(Op::Reduce, {Iota(kS32, {2, 3}), Literal::Scalar<int32_t>(100)}, DimensionsAttrs{{1}},
                 {Binary(Op::Add, kS32)}),
            Vector(kS32, {103, 112}));
  EXPECT_EQ(Eval(Op::Reduce, {Iota(kS32, {2, 3}), Literal::Scalar<int32_t>(0)}, DimensionsAttrs{{0}},
                 {Binary(Op::Maximum, kS32)}),
            Vector(kS32, {3, 4, 5}));
  // 2048 ones in bf16: summed in bf16 they would stop at 256.
  EXPECT_EQ(
      Eval(Op::Reduce, {Vector(ElementType::BF16, std::vector<double>(2048, 1)), Array(ElementType::BF16, {}, {0})},
           DimensionsAttrs{{0}}, {Binary(Op::Add, ElementType::BF16)})
          .GetDouble(0),
      2048);
}

TEST_F(ReduceTest, VariadicReduceFindsArgmax) {
  Builder b(module_.AddComputation("argmax"));
  Instruction* v0 = b.Parameter(0, Shape::Scalar(kF32));
  Instruction* i0 = b.Parameter(1, Shape::Scalar(kS32));
  Instruction* v1 = b.Parameter(2, Shape::Scalar(kF32));
  Instruction* i1 = b.Parameter(3, Shape::Scalar(kS32));
  Instruction* keep = b.Compare(v0, v1, CompareDirection::Ge);
  Instruction* value = b.Make(Op::Select, {keep, v0, v1});
  Instruction* index = b.Make(Op::Select, {keep, i0, i1});
  b.Make(Op::Tuple, {value, index});
  ASSERT_TRUE(b.Finish().ok());
  const Literal result = Eval(
      Op::Reduce,
      {Vector(kF32, {3, 9, 2, 9}), Iota(kS32, {4}), Literal::Scalar<float>(-INFINITY), Literal::Scalar<int32_t>(-1)},
      DimensionsAttrs{{0}}, {b.computation()});
  EXPECT_EQ(result.element(0).GetDouble(0), 9);
  EXPECT_EQ(result.element(1).GetInt(0), 1);
}

TEST_F(ReduceTest, WindowsAndSelectAndScatter) {
  WindowAttrs pairs{{{{.size = 2, .stride = 2}}}};
  EXPECT_EQ(Eval(Op::ReduceWindow, {Iota(kS32, {6}), Literal::Scalar<int32_t>(0)}, pairs, {Binary(Op::Add, kS32)}),
            Vector(kS32, {1, 5, 9}));
  WindowAttrs running{{{{.size = 4, .pad_low = 3}}}};
  EXPECT_EQ(Eval(Op::ReduceWindow, {Iota(kS32, {4}), Literal::Scalar<int32_t>(0)}, running, {Binary(Op::Add, kS32)}),
            Vector(kS32, {0, 1, 3, 6}));
  WindowAttrs holes{{{{.size = 2, .base_dilation = 2}}}};
  EXPECT_EQ(Eval(Op::ReduceWindow, {Vector(kS32, {5, 7}), Literal::Scalar<int32_t>(0)}, holes, {Binary(Op::Add, kS32)}),
            Vector(kS32, {5, 7}));
  EXPECT_EQ(Eval(Op::SelectAndScatter, {Vector(kF32, {1, 3, 3, 2}), Vector(kF32, {10, 20}), Literal::Scalar<float>(0)},
                 pairs, {Comparator(CompareDirection::Ge, {kF32}), Binary(Op::Add, kF32)}),
            Vector(kF32, {0, 10, 20, 0}));
}

TEST_F(ReduceTest, SortIsStableAndTakesCompanions) {
  const Literal result = Eval(Op::Sort, {Vector(kS32, {3, 1, 3, 2}), Vector(kS32, {0, 1, 2, 3})}, SortAttrs{{0}, true},
                              {Comparator(CompareDirection::Lt, {kS32, kS32})});
  EXPECT_EQ(result.element(0), Vector(kS32, {1, 2, 3, 3}));
  EXPECT_EQ(result.element(1), Vector(kS32, {1, 3, 0, 2}));
  // Along the first dimension, and with a comparator that is no order.
  EXPECT_EQ(Eval(Op::Sort, {Array(kS32, {3, 2}, {5, 1, 3, 2, 4, 3})}, SortAttrs{{0}},
                 {Comparator(CompareDirection::Gt, {kS32})}),
            Array(kS32, {3, 2}, {5, 3, 4, 2, 3, 1}));
  EXPECT_EQ(Eval(Op::Sort, {Vector(kS32, {2, 2, 2})}, SortAttrs{{0}}, {Comparator(CompareDirection::Le, {kS32})}),
            Vector(kS32, {2, 2, 2}));
}

TEST_F(ReduceTest, TopK) {
  Shape shape = Shape::Tuple({Shape::Array(kF32, {2}), Shape::Array(kS32, {2})});
  const Literal result = EvalTo(shape, Op::TopK, {Vector(kF32, {1, 5, 5, NAN})}, TopKAttrs{2, true},
                                {Comparator(CompareDirection::Gt, {kF32})});
  EXPECT_TRUE(std::isnan(result.element(0).GetDouble(0)));
  EXPECT_EQ(result.element(1), Vector(kS32, {3, 1}));
}

TEST_F(ReduceTest, TopKOrdersNansByTheirBits) {
  Literal values = Vector(kF32, {0, 0, 1, 0, 0});
  const uint32_t codes[] = {0x7fc00001, 0x7fc00003, 0x3f800000, 0x7fc00002, 0xffc00009};
  std::memcpy(values.mutable_bytes().data(), codes, sizeof codes);
  for (const bool largest : {true, false}) {
    const Shape shape = Shape::Tuple({Shape::Array(kF32, {5}), Shape::Array(kS32, {5})});
    const Literal result = EvalTo(shape, Op::TopK, {values}, TopKAttrs{5, largest},
                                  {Comparator(largest ? CompareDirection::Gt : CompareDirection::Lt, {kF32})});
    EXPECT_EQ(result.element(1), largest ? Vector(kS32, {1, 3, 0, 2, 4}) : Vector(kS32, {4, 2, 0, 3, 1}));
  }
}

TEST_F(ReduceTest, Map) {
  EXPECT_EQ(Eval(Op::Map, {Iota(kS32, {3}), Iota(kS32, {3})}, DimensionsAttrs{{0}}, {Binary(Op::Multiply, kS32)}),
            Vector(kS32, {0, 1, 4}));
}

TEST_F(ReduceTest, Scan) {  // (output, carry) = (x + c, x + c): running sums along the second dimension, from its end
  Builder b(module_.AddComputation("step"));
  Instruction* x = b.Parameter(0, Shape::Array(kS32, {2}));
  Instruction* c = b.Parameter(1, Shape::Array(kS32, {2}));
  Instruction* sum = b.Make(Op::Add, {x, c});
  b.Make(Op::Tuple, {sum, sum});
  ASSERT_TRUE(b.Finish().ok());
  ScanAttrs a;
  a.dimensions = {1};
  a.is_reverse = true;
  a.num_carries = 1;
  const Shape shape = Shape::Tuple({Shape::Array(kS32, {2, 3}), Shape::Array(kS32, {2})});
  const Literal result = EvalTo(shape, Op::Scan, {Iota(kS32, {2, 3}), Vector(kS32, {100, 0})}, a, {b.computation()});
  EXPECT_EQ(result.element(0), Array(kS32, {2, 3}, {103, 103, 102, 12, 9, 5}));
  EXPECT_EQ(result.element(1), Vector(kS32, {103, 12}));
}

}  // namespace
}  // namespace strop::interp
