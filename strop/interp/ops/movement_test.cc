// Ops that move elements: placement by index, negative and interior padding, clamping, gather and scatter corner cases.
#include "strop/interp/ops/fixture.h"

namespace strop::interp {
namespace {

constexpr ElementType kF32 = ElementType::F32;
constexpr ElementType kS32 = ElementType::S32;

class MovementTest : public OpTest {};

TEST_F(MovementTest, IotaBroadcastTranspose) {
  const Shape s23 = Shape::Array(kS32, {2, 3});
  EXPECT_EQ(EvalTo(s23, Op::Iota, {}, IotaAttrs{0}), Array(kS32, {2, 3}, {0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(EvalTo(s23, Op::Iota, {}, IotaAttrs{1}), Array(kS32, {2, 3}, {0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(EvalTo(Shape::Array(ElementType::C64, {2}), Op::Iota, {}, IotaAttrs{0}), Vector(ElementType::C64, {0, 1}));
  EXPECT_EQ(EvalTo(s23, Op::Broadcast, {Vector(kS32, {7, 8})}, DimensionsAttrs{{0}}),
            Array(kS32, {2, 3}, {7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(EvalTo(s23, Op::Broadcast, {Vector(kS32, {7, 8, 9})}, DimensionsAttrs{{1}}),
            Array(kS32, {2, 3}, {7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(Eval(Op::Transpose, {Iota(kS32, {2, 3})}, DimensionsAttrs{{1, 0}}),
            Array(kS32, {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(EvalTo(Shape::Array(kS32, {3, 2}), Op::Reshape, {Iota(kS32, {2, 3})}), Iota(kS32, {3, 2}));
}

TEST_F(MovementTest, SliceReverseConcatenate) {
  EXPECT_EQ(Eval(Op::Slice, {Iota(kS32, {8})}, SliceAttrs{{{1, 8, 3}}}), Vector(kS32, {1, 4, 7}));
  EXPECT_EQ(Eval(Op::Slice, {Iota(kS32, {2, 3})}, SliceAttrs{{{1, 2, 1}, {0, 3, 2}}}), Array(kS32, {1, 2}, {3, 5}));
  EXPECT_EQ(Eval(Op::Reverse, {Iota(kS32, {2, 3})}, DimensionsAttrs{{0, 1}}), Array(kS32, {2, 3}, {5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(Eval(Op::Concatenate, {Iota(kS32, {2, 1}), Iota(kS32, {2, 2})}, DimensionsAttrs{{1}}),
            Array(kS32, {2, 3}, {0, 0, 1, 1, 2, 3}));
}

TEST_F(MovementTest, Pad) {
  auto pad = [&](Literal x, PaddingConfig config) {
    return Eval(Op::Pad, {std::move(x), Literal::Scalar<int32_t>(9)}, PadAttrs{std::move(config)});
  };
  EXPECT_EQ(pad(Iota(kS32, {3}), {{1, 2, 1}}), Vector(kS32, {9, 0, 9, 1, 9, 2, 9, 9}));
  EXPECT_EQ(pad(Iota(kS32, {5}), {{-1, -2, 0}}), Vector(kS32, {1, 2}));
  EXPECT_EQ(pad(Iota(kS32, {3}), {{-1, 0, 1}}), Vector(kS32, {9, 1, 9, 2}));  // cuts element 0 only
  EXPECT_EQ(pad(Iota(kS32, {3}), {{0, -1, 1}}), Vector(kS32, {0, 9, 1, 9}));
  EXPECT_EQ(pad(Iota(kS32, {3}), {{-2, -2, 1}}), Vector(kS32, {1}));
  EXPECT_EQ(pad(Iota(kS32, {3}), {{-3, 5, 0}}), Vector(kS32, {9, 9, 9, 9, 9}));  // nothing is left
  EXPECT_EQ(pad(Iota(kS32, {0}), {{1, 1, 3}}), Vector(kS32, {9, 9}));
  EXPECT_EQ(pad(Iota(kS32, {2, 2}), {{0, 1, 0}, {1, 0, 0}}), Array(kS32, {3, 3}, {9, 0, 1, 9, 2, 3, 9, 9, 9}));
}

TEST_F(MovementTest, BitcastConvert) {
  EXPECT_EQ(EvalTo(Shape::Array(kS32, {1}), Op::BitcastConvert, {Vector(kF32, {1})}), Integers(kS32, {0x3F800000}));
  EXPECT_EQ(EvalTo(Shape::Array(ElementType::U8, {1, 4}), Op::BitcastConvert, {Integers(kS32, {0x04030201})}),
            Array(ElementType::U8, {1, 4}, {1, 2, 3, 4}));
  EXPECT_EQ(EvalTo(Shape::Array(kS32, {1}), Op::BitcastConvert, {Array(ElementType::U8, {1, 4}, {1, 2, 3, 4})}),
            Integers(kS32, {0x04030201}));
  EXPECT_EQ(EvalTo(Shape::Array(ElementType::S4, {1, 2}), Op::BitcastConvert, {Integers(ElementType::U8, {0xF1})}),
            Array(ElementType::S4, {1, 2}, {1, -1}));
  EXPECT_EQ(EvalTo(Shape::Array(ElementType::U8, {1}), Op::BitcastConvert, {Array(ElementType::S4, {1, 2}, {1, -1})}),
            Integers(ElementType::U8, {0xF1}));
}

TEST_F(MovementTest, DynamicSlicesClampTheirStart) {
  auto at = [](int64_t i) { return Literal::Scalar<int32_t>(static_cast<int32_t>(i)); };
  const Literal x = Iota(kS32, {5});
  EXPECT_EQ(Eval(Op::DynamicSlice, {x, at(1)}, DynamicSliceAttrs{{2}}), Vector(kS32, {1, 2}));
  EXPECT_EQ(Eval(Op::DynamicSlice, {x, at(100)}, DynamicSliceAttrs{{2}}), Vector(kS32, {3, 4}));
  EXPECT_EQ(Eval(Op::DynamicSlice, {x, at(-100)}, DynamicSliceAttrs{{2}}), Vector(kS32, {0, 1}));
  const Literal huge = *Literal::FromBytes(Shape::Scalar(ElementType::U64), std::vector<uint8_t>(8, 0xFF));
  EXPECT_EQ(Eval(Op::DynamicSlice, {x, huge}, DynamicSliceAttrs{{2}}), Vector(kS32, {3, 4}));
  EXPECT_EQ(Eval(Op::DynamicUpdateSlice, {x, Vector(kS32, {8, 9}), at(4)}), Vector(kS32, {0, 1, 2, 8, 9}));
  EXPECT_EQ(x, Iota(kS32, {5})) << "the operand of the caller must not change";
}

TEST_F(MovementTest, GatherClampsAndBatches) {
  GatherAttrs rows;  // rows of a matrix
  rows.offset_dims = {1};
  rows.collapsed_slice_dims = {0};
  rows.start_index_map = {0};
  rows.index_vector_dim = 1;
  rows.slice_sizes = {1, 2};
  EXPECT_EQ(Eval(Op::Gather, {Iota(kS32, {3, 2}), Integers(kS32, {2, 0, 7, -7})}, rows),
            Array(kS32, {4, 2}, {4, 5, 0, 1, 4, 5, 0, 1}));
  GatherAttrs batched;  // x[b, index[b]]
  batched.operand_batching_dims = {0};
  batched.start_indices_batching_dims = {0};
  batched.collapsed_slice_dims = {1};
  batched.start_index_map = {1};
  batched.index_vector_dim = 1;
  batched.slice_sizes = {1, 1};
  EXPECT_EQ(Eval(Op::Gather, {Iota(kS32, {2, 3}), Array(kS32, {2, 1}, {2, 0})}, batched), Vector(kS32, {2, 3}));
}

TEST_F(MovementTest, ScatterSkipsWhatDoesNotFit) {
  ScatterAttrs a;
  a.inserted_window_dims = {0};
  a.scatter_dims_to_operand_dims = {0};
  a.index_vector_dim = 1;
  EXPECT_EQ(
      Eval(Op::Scatter, {Vector(kS32, {0, 0, 0}), Integers(kS32, {1, 1, 3, -1, 2}), Vector(kS32, {1, 2, 4, 8, 16})}, a,
           {Binary(Op::Add, kS32)}),
      Vector(kS32, {0, 3, 16}));
  ScatterAttrs window;  // a window of two: the whole update is skipped if it hangs over
  window.update_window_dims = {1};
  window.scatter_dims_to_operand_dims = {0};
  window.index_vector_dim = 1;
  EXPECT_EQ(Eval(Op::Scatter, {Vector(kS32, {0, 0, 0}), Integers(kS32, {2, 1}), Array(kS32, {2, 2}, {1, 2, 3, 4})},
                 window, {Binary(Op::Add, kS32)}),
            Vector(kS32, {0, 3, 4}));
}

TEST_F(MovementTest, AnOpWithoutSemanticsIsRefused) {
  const Result<Literal> shuffled = TryEval(Op::Shuffle, {Iota(kS32, {4})}, DimensionsAttrs{{0}});
  EXPECT_EQ(shuffled.status().code(), StatusCode::kUnimplemented) << shuffled.status().ToString();
}

TEST_F(MovementTest, BoundedSizes) {
  Shape bounded = Shape::Array(kS32, {5});
  bounded.set_dynamic(0, true);
  const Literal cut =
      EvalTo(bounded, Op::SetDimensionSize, {Iota(kS32, {5}), Literal::Scalar<int32_t>(3)}, DimensionsAttrs{{0}});
  EXPECT_EQ(cut, Iota(kS32, {3}));
  EXPECT_EQ(*PadToBounds(cut, bounded), Vector(kS32, {0, 1, 2, 0, 0}));
  // Sizes are moved into their range.
  EXPECT_EQ(EvalTo(bounded, Op::SetDimensionSize, {Iota(kS32, {5}), Literal::Scalar<int32_t>(6)}, DimensionsAttrs{{0}}),
            Iota(kS32, {5}));
  EXPECT_EQ(
      EvalTo(bounded, Op::SetDimensionSize, {Iota(kS32, {5}), Literal::Scalar<int32_t>(-2)}, DimensionsAttrs{{0}}),
      Iota(kS32, {0}));
  // Sizes that do not belong together take the elements in order.
  EXPECT_EQ(EvalTo(bounded, Op::DynamicReshape, {Iota(kS32, {2, 2}), Literal::Scalar<int32_t>(5)}, NoAttrs{}),
            Vector(kS32, {0, 1, 2, 3, 0}));

  // The sum of a bounded array is that of its actual elements.
  Builder b(module_.AddComputation("bounded"));
  Instruction* x = b.Parameter(0, Shape::Array(kS32, {5}));
  Instruction* n = b.Parameter(1, Shape::Scalar(kS32));
  Instruction* part = b.Make(Op::SetDimensionSize, std::vector<Instruction*>{x, n}, DimensionsAttrs{{0}}, {}, &bounded);
  b.Reduce(b.Make(Op::Add, {part, part}), b.Scalar(kS32, 0), {0}, Binary(Op::Add, kS32));
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  const Result<Literal> sum =
      interpreter_.Evaluate(*b.computation(), std::vector<Literal>{Iota(kS32, {5}), Literal::Scalar<int32_t>(3)});
  ASSERT_TRUE(sum.ok()) << sum.status().ToString();
  EXPECT_EQ(sum->GetInt(0), 6);

  // A result of a fixed size keeps it.
  part->set_shape(Shape::Array(kS32, {5}));
  const Result<Literal> whole =
      interpreter_.EvaluateInstruction(*part, std::vector<Literal>{Iota(kS32, {5}), Literal::Scalar<int32_t>(3)});
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  EXPECT_EQ(*whole, Iota(kS32, {5}));
}

}  // namespace
}  // namespace strop::interp
