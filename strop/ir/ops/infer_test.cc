#include <gtest/gtest.h>

#include "strop/ir/builder.h"

namespace strop {
namespace {

Shape S(std::string_view text) {
  Result<Shape> shape = ParseShape(text);
  EXPECT_TRUE(shape.ok()) << text << ": " << shape.status().ToString();
  return shape.ok() ? *shape : Shape();
}

// Infers from shapes written as text; "" for `declared` means none.
std::string Infer(Op op, std::vector<std::string> operands, Attrs attrs, std::string declared = "",
                  std::vector<Computation*> called = {}) {
  std::vector<Shape> shapes;
  for (const std::string& o : operands) shapes.push_back(S(o));
  std::vector<const Shape*> pointers;
  for (const Shape& s : shapes) pointers.push_back(&s);
  Shape wanted = declared.empty() ? Shape() : S(declared);
  Result<Shape> result = InferShape(op, pointers, attrs, called, declared.empty() ? nullptr : &wanted);
  return result.ok() ? result->ToString() : result.status().message();
}

#define EXPECT_REFUSED(expr, part)                                                               \
  do {                                                                                           \
    std::string said = (expr);                                                                   \
    EXPECT_NE(said.find(part), std::string::npos) << "said: " << said << "\nexpected: " << part; \
  } while (false)

// A module with the scalar functions that reductions and friends call.
struct Callees {
  Module module{"callees"};
  Computation* Function(std::string name, std::vector<std::string> parameters, std::string result) {
    Computation* c = module.AddComputation(std::move(name));
    Builder b(c);
    for (size_t i = 0; i < parameters.size(); ++i) b.Parameter(static_cast<int64_t>(i), S(parameters[i]));
    CustomCallAttrs any;
    any.target = "any";
    b.MakeWithShape(Op::CustomCall, S(result), {}, any);
    EXPECT_TRUE(b.Finish().ok()) << b.status().ToString();
    return c;
  }
};

TEST(InferElementwise, TypesAndDims) {
  EXPECT_EQ(Infer(Op::Add, {"f32[2,3]", "f32[2,3]"}, NoAttrs{}), "f32[2,3]");
  EXPECT_EQ(Infer(Op::Abs, {"c64[2]"}, NoAttrs{}), "f32[2]");
  EXPECT_EQ(Infer(Op::IsFinite, {"f32[2]"}, NoAttrs{}), "pred[2]");
  EXPECT_EQ(Infer(Op::Complex, {"f64[2]", "f64[2]"}, NoAttrs{}), "c128[2]");
  EXPECT_EQ(Infer(Op::Compare, {"s32[2]", "s32[2]"}, CompareAttrs{}), "pred[2]");
  EXPECT_EQ(Infer(Op::Convert, {"s32[2]"}, NoAttrs{}, "f32[2]"), "f32[2]");
  EXPECT_EQ(Infer(Op::Clamp, {"f32[]", "f32[4]", "f32[4]"}, NoAttrs{}), "f32[4]");
  EXPECT_EQ(Infer(Op::Select, {"pred[]", "f32[4]", "f32[4]"}, NoAttrs{}), "f32[4]");
  EXPECT_REFUSED(Infer(Op::Add, {"f32[2]", "f32[3]"}, NoAttrs{}), "(add_c1)");
  EXPECT_REFUSED(Infer(Op::Add, {"f32[2]", "f64[2]"}, NoAttrs{}), "same element type");
  EXPECT_REFUSED(Infer(Op::Cos, {"s32[2]"}, AccuracyAttrs{}), "must be floating-point, complex");
  EXPECT_REFUSED(Infer(Op::Select, {"pred[3]", "f32[4]", "f32[4]"}, NoAttrs{}), "(select_c1)");
  EXPECT_REFUSED(Infer(Op::Compare, {"c64[2]", "c64[2]"}, CompareAttrs{CompareDirection::Lt}), "no order");
  EXPECT_REFUSED(Infer(Op::Add, {"f32[2]"}, NoAttrs{}), "expected 2 operands, but got 1");
  EXPECT_REFUSED(Infer(Op::ReducePrecision, {"f32[2]"}, ReducePrecisionAttrs{0, 1}), "(reduce_precision_c2)");
}

TEST(InferElementwise, DynamicSizesMeet) {
  EXPECT_EQ(Infer(Op::Add, {"f32[<=4]", "f32[<=4]"}, NoAttrs{}), "f32[<=4]");
  EXPECT_EQ(Infer(Op::Add, {"f32[?]", "f32[4]"}, NoAttrs{}), "f32[4]");
  EXPECT_EQ(Infer(Op::Add, {"f32[?]", "f32[<=4]"}, NoAttrs{}), "f32[<=4]");
  EXPECT_EQ(Infer(Op::Add, {"f32[<=4]", "f32[3]"}, NoAttrs{}), "f32[3]");
  EXPECT_REFUSED(Infer(Op::Add, {"f32[<=4]", "f32[5]"}, NoAttrs{}), "(add_c1)");
}

TEST(InferDataMovement, Shapes) {
  EXPECT_EQ(Infer(Op::Broadcast, {"f32[3]"}, DimensionsAttrs{{1}}, "f32[2,3]"), "f32[2,3]");
  EXPECT_EQ(Infer(Op::Transpose, {"f32[2,3,4]"}, DimensionsAttrs{{2, 0, 1}}), "f32[4,2,3]");
  EXPECT_EQ(Infer(Op::Reshape, {"f32[2,3]"}, ReshapeAttrs{}, "f32[6]"), "f32[6]");
  EXPECT_EQ(Infer(Op::Concatenate, {"f32[2,3]", "f32[4,3]"}, DimensionsAttrs{{0}}), "f32[6,3]");
  EXPECT_EQ(Infer(Op::Slice, {"f32[10]"}, SliceAttrs{{{1, 8, 3}}}), "f32[3]");
  EXPECT_EQ(Infer(Op::Pad, {"f32[3]", "f32[]"}, PadAttrs{{{1, -1, 2}}}), "f32[7]");
  EXPECT_EQ(Infer(Op::DynamicSlice, {"f32[4,5]", "s32[]", "s32[]"}, DynamicSliceAttrs{{2, 5}}), "f32[2,5]");
  EXPECT_EQ(Infer(Op::DynamicSlice, {"f32[4,5]", "s32[2]"}, DynamicSliceAttrs{{2, 5}}), "f32[2,5]");
  EXPECT_EQ(Infer(Op::BitcastConvert, {"f32[3]"}, NoAttrs{}, "u8[3,4]"), "u8[3,4]");
  EXPECT_EQ(Infer(Op::Iota, {}, IotaAttrs{1}, "s32[2,3]"), "s32[2,3]");
  EXPECT_REFUSED(Infer(Op::Iota, {}, IotaAttrs{2}, "s32[2,3]"), "(iota_c1)");
  EXPECT_REFUSED(Infer(Op::Reshape, {"f32[2,3]"}, ReshapeAttrs{}, "f32[7]"), "(reshape_c2)");
  EXPECT_REFUSED(Infer(Op::Reshape, {"f32[2,3]"}, ReshapeAttrs{}), "must be given");
  EXPECT_REFUSED(Infer(Op::Broadcast, {"f32[3]"}, DimensionsAttrs{{0}}, "f32[2,3]"), "(broadcast_in_dim_c5)");
  EXPECT_REFUSED(Infer(Op::Transpose, {"f32[2,3]"}, DimensionsAttrs{{1, 1}}), "(transpose_c2)");
  EXPECT_REFUSED(Infer(Op::Slice, {"f32[10]"}, SliceAttrs{{{1, 11, 1}}}), "(slice_c3)");
  EXPECT_REFUSED(Infer(Op::Slice, {"f32[10]"}, SliceAttrs{{{1, 8, 0}}}), "(slice_c4)");
  EXPECT_REFUSED(Infer(Op::Pad, {"f32[3]", "f32[]"}, PadAttrs{{{-9, 0, 0}}}), "(pad_c4)");
  EXPECT_REFUSED(Infer(Op::Pad, {"f32[3]", "f32[]"}, PadAttrs{{{INT64_MAX, INT64_MAX, 0}}}), "(pad_c4)");
  EXPECT_REFUSED(Infer(Op::Concatenate, {"f32[2,3]", "f32[2,4]"}, DimensionsAttrs{{0}}), "(concatenate_c2)");
  EXPECT_REFUSED(Infer(Op::BitcastConvert, {"f32[3]"}, NoAttrs{}, "u8[3,5]"), "(bitcast_convert_c1)");
  EXPECT_REFUSED(Infer(Op::DynamicUpdateSlice, {"f32[4]", "f32[5]", "s32[]"}, NoAttrs{}), "(dynamic_update_slice_c6)");
}

TEST(InferContraction, Dot) {
  DotAttrs a;
  a.lhs_batch = {0};
  a.rhs_batch = {0};
  a.lhs_contracting = {2};
  a.rhs_contracting = {1};
  EXPECT_EQ(Infer(Op::Dot, {"f32[5,2,3]", "f32[5,3,4]"}, a), "f32[5,2,4]");
  EXPECT_EQ(Infer(Op::Dot, {"bf16[5,2,3]", "bf16[5,3,4]"}, a, "f32[5,2,4]"), "f32[5,2,4]");
  EXPECT_EQ(Infer(Op::Dot, {"s8[5,2,3]", "s8[5,3,4]"}, a, "s32[5,2,4]"), "s32[5,2,4]");
  EXPECT_EQ(Infer(Op::Dot, {"f32[?,2,3]", "f32[5,3,4]"}, a), "f32[5,2,4]");
  EXPECT_REFUSED(Infer(Op::Dot, {"f32[5,2,3]", "f32[5,2,4]"}, a), "(dot_general_c10)");
  EXPECT_REFUSED(Infer(Op::Dot, {"f32[5,2,3]", "f32[6,3,4]"}, a), "(dot_general_c9)");
  EXPECT_REFUSED(Infer(Op::Dot, {"f32[5,2,3]", "pred[5,3,4]"}, a), "cannot combine");
  EXPECT_EQ(Infer(Op::Dot, {"bf16[5,2,3]", "s4[5,3,4]"}, a), "bf16[5,2,4]");
  a.lhs_contracting = {7};
  EXPECT_REFUSED(Infer(Op::Dot, {"f32[5,2,3]", "f32[5,3,4]"}, a), "(dot_general_c6)");
}

TEST(InferContraction, RaggedDotModes) {
  RaggedDotAttrs a;
  a.lhs_contracting = {1};
  a.rhs_contracting = {1};
  a.lhs_ragged = {0};
  a.rhs_group = {0};
  EXPECT_EQ(Infer(Op::RaggedDot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"}, a), "f32[11,7]");
  EXPECT_REFUSED(Infer(Op::RaggedDot, {"f32[11,5]", "f32[4,5,7]", "s32[3]"}, a), "count the same groups");
  a.lhs_contracting = {0};
  a.rhs_contracting = {0};
  a.rhs_group = {};
  EXPECT_EQ(Infer(Op::RaggedDot, {"f32[5,11]", "f32[5,7]", "s32[3]"}, a), "f32[3,11,7]");
}

ConvolutionAttrs Conv2D(int64_t window) {
  ConvolutionAttrs a;
  a.window.dims.resize(2);
  for (WindowDim& d : a.window.dims) d.size = window;
  a.dim_labels.input_batch = 0;
  a.dim_labels.input_spatial = {1, 2};
  a.dim_labels.input_feature = 3;
  a.dim_labels.kernel_spatial = {0, 1};
  a.dim_labels.kernel_input_feature = 2;
  a.dim_labels.kernel_output_feature = 3;
  a.dim_labels.output_batch = 0;
  a.dim_labels.output_spatial = {1, 2};
  a.dim_labels.output_feature = 3;
  return a;
}

TEST(InferWindow, Convolution) {
  ConvolutionAttrs a = Conv2D(3);
  EXPECT_EQ(Infer(Op::Convolution, {"f32[8,28,28,16]", "f32[3,3,16,32]"}, a), "f32[8,26,26,32]");
  a.window.dims[0].stride = 2;
  a.window.dims[1].pad_low = a.window.dims[1].pad_high = 1;
  EXPECT_EQ(Infer(Op::Convolution, {"f32[8,28,28,16]", "f32[3,3,16,32]"}, a), "f32[8,13,28,32]");
  EXPECT_REFUSED(Infer(Op::Convolution, {"f32[8,28,28,16]", "f32[3,3,8,32]"}, a), "(convolution_c14)");
  EXPECT_REFUSED(Infer(Op::Convolution, {"f32[8,28,28,16]", "f32[5,3,16,32]"}, a), "(convolution_c25)");
  a.feature_group_count = 3;
  EXPECT_REFUSED(Infer(Op::Convolution, {"f32[8,28,28,16]", "f32[3,3,16,32]"}, a), "(convolution_c11)");
  a.feature_group_count = 0;
  EXPECT_REFUSED(Infer(Op::Convolution, {"f32[8,28,28,16]", "f32[3,3,16,32]"}, a), "(convolution_c21)");
}

TEST(InferReduction, Reducers) {
  Callees f;
  Computation* add = f.Function("add", {"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(Infer(Op::Reduce, {"f32[2,3]", "f32[]"}, DimensionsAttrs{{1}}, "", {add}), "f32[2]");
  Computation* two = f.Function("two", {"f32[]", "s32[]", "f32[]", "s32[]"}, "(f32[], s32[])");
  EXPECT_EQ(Infer(Op::Reduce, {"f32[2,3]", "s32[2,3]", "f32[]", "s32[]"}, DimensionsAttrs{{0}}, "", {two}),
            "(f32[3], s32[3])");
  EXPECT_REFUSED(Infer(Op::Reduce, {"f32[2,3]", "f32[]"}, DimensionsAttrs{{2}}, "", {add}), "(reduce_c4)");
  EXPECT_REFUSED(Infer(Op::Reduce, {"f32[2,3]", "f32[]"}, DimensionsAttrs{{1, 1}}, "", {add}), "(reduce_c5)");
  EXPECT_REFUSED(Infer(Op::Reduce, {"s32[2,3]", "s32[]"}, DimensionsAttrs{{1}}, "", {add}), "(reduce_c6)");
  EXPECT_REFUSED(Infer(Op::Reduce, {"f32[2,3]", "f32[]"}, DimensionsAttrs{{1}}), "needs the computations to_apply");

  WindowAttrs w;
  w.window.dims.resize(1);
  w.window.dims[0].size = 2;
  w.window.dims[0].stride = 2;
  EXPECT_EQ(Infer(Op::ReduceWindow, {"f32[7]", "f32[]"}, w, "", {add}), "f32[3]");
  w.window.dims[0].stride = 0;
  EXPECT_REFUSED(Infer(Op::ReduceWindow, {"f32[7]", "f32[]"}, w, "", {add}), "(reduce_window_c7)");

  Computation* less = f.Function("less", {"f32[]", "f32[]"}, "pred[]");
  EXPECT_EQ(Infer(Op::Sort, {"f32[7]"}, SortAttrs{{0}, false}, "", {less}), "f32[7]");
  EXPECT_REFUSED(Infer(Op::Sort, {"f32[7]"}, SortAttrs{{0}, false}, "", {add}), "(sort_c5)");
  w.window.dims[0].stride = 2;
  EXPECT_EQ(Infer(Op::SelectAndScatter, {"f32[6]", "f32[3]", "f32[]"}, w, "", {less, add}), "f32[6]");
  EXPECT_REFUSED(Infer(Op::SelectAndScatter, {"f32[6]", "f32[2]", "f32[]"}, w, "", {less, add}),
                 "(select_and_scatter_c2)");
}

TEST(InferGatherScatter, Gather) {
  GatherAttrs a;
  a.offset_dims = {1};
  a.collapsed_slice_dims = {0};
  a.start_index_map = {0};
  a.index_vector_dim = 1;
  a.slice_sizes = {1, 5};
  EXPECT_EQ(Infer(Op::Gather, {"f32[9,5]", "s32[4,1]"}, a), "f32[4,5]");
  EXPECT_REFUSED(Infer(Op::Gather, {"f32[9,5]", "f32[4,1]"}, a), "must be integers");
  EXPECT_REFUSED(Infer(Op::Gather, {"f32[9,5]", "s32[4,2]"}, a), "(gather_c3)");
  a.slice_sizes = {1, 6};
  EXPECT_REFUSED(Infer(Op::Gather, {"f32[9,5]", "s32[4,1]"}, a), "(gather_c21)");
  a.slice_sizes = {1, 5};
  a.offset_dims = {7};
  EXPECT_REFUSED(Infer(Op::Gather, {"f32[9,5]", "s32[4,1]"}, a), "(gather_c5)");
}

TEST(InferGatherScatter, Scatter) {
  Callees f;
  Computation* add = f.Function("add", {"f32[]", "f32[]"}, "f32[]");
  ScatterAttrs a;
  a.update_window_dims = {1};
  a.inserted_window_dims = {0};
  a.scatter_dims_to_operand_dims = {0};
  a.index_vector_dim = 1;
  EXPECT_EQ(Infer(Op::Scatter, {"f32[9,5]", "s32[4,1]", "f32[4,5]"}, a, "", {add}), "f32[9,5]");
  EXPECT_REFUSED(Infer(Op::Scatter, {"f32[9,5]", "s32[4,1]", "f32[4,6]"}, a, "", {add}), "(scatter_c4)");
  EXPECT_REFUSED(Infer(Op::Scatter, {"f32[9,5]", "s32[4,1]", "s32[4,5]"}, a, "", {add}), "(scatter_c6)");
}

TEST(InferControlFlow, WhileAndConditional) {
  Callees f;
  Computation* condition = f.Function("condition", {"(s32[], f32[2])"}, "pred[]");
  Computation* body = f.Function("body", {"(s32[], f32[2])"}, "(s32[], f32[2])");
  Computation* other = f.Function("other", {"(s32[], f32[3])"}, "(s32[], f32[3])");
  EXPECT_EQ(Infer(Op::While, {"(s32[], f32[2])"}, NoAttrs{}, "", {condition, body}), "(s32[], f32[2])");
  EXPECT_REFUSED(Infer(Op::While, {"(s32[], f32[2])"}, NoAttrs{}, "", {condition, other}), "(while_c2)");
  EXPECT_REFUSED(Infer(Op::While, {"(s32[], f32[2])"}, NoAttrs{}, "", {body, body}), "(while_c1)");
  Computation* yes = f.Function("yes", {"f32[2]"}, "f32[]");
  Computation* no = f.Function("no", {"f32[3]"}, "f32[]");
  EXPECT_EQ(Infer(Op::Conditional, {"pred[]", "f32[2]", "f32[3]"}, ConditionalAttrs{}, "", {yes, no}), "f32[]");
  EXPECT_REFUSED(Infer(Op::Conditional, {"pred[]", "f32[3]", "f32[2]"}, ConditionalAttrs{}, "", {yes, no}),
                 "branch %yes");
  EXPECT_REFUSED(Infer(Op::GetTupleElement, {"(f32[])"}, GetTupleElementAttrs{1}), "(get_tuple_element_c1)");
}

TEST(InferLinalg, Shapes) {
  EXPECT_EQ(Infer(Op::Cholesky, {"f32[2,4,4]"}, CholeskyAttrs{}), "f32[2,4,4]");
  EXPECT_REFUSED(Infer(Op::Cholesky, {"f32[2,4,5]"}, CholeskyAttrs{}), "(cholesky_c3)");
  EXPECT_EQ(Infer(Op::Fft, {"f32[2,8]"}, FftAttrs{FftType::Rfft, {8}}), "c64[2,5]");
  EXPECT_EQ(Infer(Op::Fft, {"c64[2,5]"}, FftAttrs{FftType::Irfft, {8}}), "f32[2,8]");
  EXPECT_REFUSED(Infer(Op::Fft, {"c64[2,4]"}, FftAttrs{FftType::Irfft, {8}}), "(fft_c5)");
  TriangularSolveAttrs t;
  t.left_side = true;
  EXPECT_EQ(Infer(Op::TriangularSolve, {"f32[4,4]", "f32[4,7]"}, t), "f32[4,7]");
  t.left_side = false;
  EXPECT_REFUSED(Infer(Op::TriangularSolve, {"f32[4,4]", "f32[4,7]"}, t), "on the right");
  EXPECT_EQ(Infer(Op::BatchNormTraining, {"f32[2,3]", "f32[3]", "f32[3]"}, BatchNormAttrs{0, 1}),
            "(f32[2,3], f32[3], f32[3])");
}

TEST(InferCollective, Shapes) {
  Callees f;
  Computation* add = f.Function("add", {"f32[]", "f32[]"}, "f32[]");
  CollectiveAttrs a;
  a.dimensions = {0};
  a.has_dimensions = true;
  a.replica_groups.lists = {{0, 1}};
  EXPECT_EQ(Infer(Op::AllGather, {"f32[4]"}, a), "f32[8]");
  EXPECT_EQ(Infer(Op::ReduceScatter, {"f32[4]"}, a, "", {add}), "f32[2]");
  EXPECT_EQ(Infer(Op::AllToAll, {"f32[4]"}, a), "f32[4]");
  EXPECT_EQ(Infer(Op::AllReduce, {"f32[4]", "f32[5]"}, a, "", {add}), "(f32[4], f32[5])");
  EXPECT_REFUSED(Infer(Op::AllGather, {"f32[4]"}, a, "f32[12]"), "(all_gather_c6)");
  a.replica_groups.lists = {{0, 0}};
  EXPECT_REFUSED(Infer(Op::AllReduce, {"f32[4]"}, a, "", {add}), "(all_reduce_c1)");
}

TEST(InferShape, RefusesHugeResults) {
  const std::string half = "u8[4611686018427387904]";
  EXPECT_REFUSED(Infer(Op::Concatenate, {half, half}, DimensionsAttrs{{0}}), "is not valid");
  DotAttrs outer;
  EXPECT_REFUSED(Infer(Op::Dot, {"f32[4000000000]", "f32[4000000000]"}, outer), "is not valid");
}

}  // namespace
}  // namespace strop
