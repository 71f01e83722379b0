// scatter, select-and-scatter, sort with any comparator: kernels by themselves, against the evaluator.
#include <gtest/gtest.h>

#include "strop/cpu/testing/differential.h"
#include "strop/ir/builder.h"

namespace strop::cpu {
namespace {

Computation* Combine(Module& m, Op op, ElementType type) {
  Builder b(m.AddComputation("combine"));
  Instruction* x = b.Parameter(0, Shape::Scalar(type));
  Instruction* y = b.Parameter(1, Shape::Scalar(type));
  if (op == Op::Parameter)
    b.Make(Op::Copy, {y}, CopyAttrs{});  // the update alone
  else if (op == Op::Compare)
    b.Compare(x, y, CompareDirection::Ge);
  else
    b.Make(op, {x, y});
  EXPECT_TRUE(b.Finish().ok()) << b.status().ToString();
  return b.computation();
}

struct ScatterCase {
  Int64Vector operand, indices, updates;
  ScatterAttrs attrs;
};
const ScatterCase kScatterCases[] = {
    // rows of an embedding, repeated
    {{9, 50},
     {40, 1},
     {40, 50},
     {.update_window_dims = {1},
      .inserted_window_dims = {0},
      .scatter_dims_to_operand_dims = {0},
      .index_vector_dim = 1}},
    // single elements
    {{9, 50},
     {37, 2},
     {37},
     {.update_window_dims = {},
      .inserted_window_dims = {0, 1},
      .scatter_dims_to_operand_dims = {1, 0},
      .index_vector_dim = 1}},
    // windows that may hang over
    {{9, 50},
     {2, 6},
     {3, 6, 20},
     {.update_window_dims = {0, 2},
      .inserted_window_dims = {},
      .scatter_dims_to_operand_dims = {0, 1},
      .index_vector_dim = 0}},
    // a batch dimension
    {{4, 9, 6},
     {4, 5},
     {4, 5, 6},
     {.update_window_dims = {2},
      .inserted_window_dims = {1},
      .scatter_dims_to_operand_dims = {1},
      .input_batching_dims = {0},
      .scatter_indices_batching_dims = {0},
      .index_vector_dim = 2}},
    // windows that are contiguous, of rows and from an index on; the last index fits where it is 0
    {{9, 5, 11},
     {40, 1},
     {40, 5, 11},
     {.update_window_dims = {1, 2},
      .inserted_window_dims = {0},
      .scatter_dims_to_operand_dims = {0},
      .index_vector_dim = 1}},
    {{7, 9, 5, 3},
     {40, 3},
     {2, 5, 3, 40},
     {.update_window_dims = {0, 1, 2},
      .inserted_window_dims = {0},
      .scatter_dims_to_operand_dims = {0, 3, 1},
      .index_vector_dim = 1}},
    // that are whole, but not contiguous, in the operand and in the updates
    {{3, 9, 7},
     {20, 1},
     {3, 20, 7},
     {.update_window_dims = {0, 2},
      .inserted_window_dims = {1},
      .scatter_dims_to_operand_dims = {1},
      .index_vector_dim = 1}},
    {{9, 5, 7},
     {20, 1},
     {5, 20, 7},
     {.update_window_dims = {0, 2},
      .inserted_window_dims = {0},
      .scatter_dims_to_operand_dims = {0},
      .index_vector_dim = 1}},
    // with a batch dimension
    {{4, 9, 2, 7},
     {4, 5, 2},
     {4, 5, 2, 7},
     {.update_window_dims = {2, 3},
      .inserted_window_dims = {1},
      .scatter_dims_to_operand_dims = {1, 2},
      .input_batching_dims = {0},
      .scatter_indices_batching_dims = {0},
      .index_vector_dim = 2}},
    // one position, a large window
    {{300, 200},
     {1},
     {7, 200},
     {.update_window_dims = {0, 1},
      .inserted_window_dims = {},
      .scatter_dims_to_operand_dims = {0},
      .index_vector_dim = 0}},
};

// `spread`: indices reach beyond both ends of the operand's first dimension.
void CheckScatter(const ScatterCase& c, Op op, ElementType type, bool spread = false) {
  Module m("m");
  Differential d(m, Differential::kNotFused);
  if (spread) {
    Literal indices = *Literal::Zeros(Shape::Array(ElementType::S32, c.indices));
    for (int64_t i = 0; i < indices.num_elements(); ++i) indices.SetInt(i, i * 7919 % (c.operand[0] + 4) - 2);
    d.SetInput(1, std::move(indices));
  }
  Builder b(d.body());
  std::vector<Instruction*> operands{b.Parameter(0, Shape::Array(type, c.operand)),
                                     b.Parameter(1, Shape::Array(ElementType::S32, c.indices)),
                                     b.Parameter(2, Shape::Array(type, c.updates))};
  std::vector<Computation*> called{Combine(m, op, type)};
  b.Make(Op::Scatter, operands, c.attrs, called, nullptr);
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  d.set_tame(true);
  d.SetInPlace({0});
  EXPECT_EQ(d.Check(), "") << Name(op) << " " << d.body()->ToString();
  if (spread) EXPECT_GT(d.num_tasks(), 1);
}

// Short windows, repeated: tasks are parts of the operand. Of rows, also of narrow ones of a large operand; from two
// indices on; of several rows, whole and not; of updates in two dimensions.
TEST(Scatter, TasksOfPlaces) {
  const ScatterAttrs rows{.update_window_dims = {1},
                          .inserted_window_dims = {0},
                          .scatter_dims_to_operand_dims = {0},
                          .index_vector_dim = 1};
  const ScatterCase cases[] = {
      {{40, 50}, {900, 1}, {900, 50}, rows},
      {{60, 300}, {700, 1}, {700, 300}, rows},
      {{20000, 16}, {3000, 1}, {3000, 16}, rows},
      {{40, 7, 30},
       {1300, 2},
       {1300, 30},
       {.update_window_dims = {1},
        .inserted_window_dims = {0, 1},
        .scatter_dims_to_operand_dims = {0, 1},
        .index_vector_dim = 1}},
      {{40, 9, 16},
       {600, 2},
       {600, 5, 16},
       {.update_window_dims = {1, 2},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0, 1},
        .index_vector_dim = 1}},
      {{40, 12, 19},
       {500, 1},
       {500, 9, 13},
       {.update_window_dims = {1, 2},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0},
        .index_vector_dim = 1}},
      {{40, 72},
       {30, 25, 1},
       {30, 25, 72},
       {.update_window_dims = {2},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0},
        .index_vector_dim = 2}},
  };
  for (const ScatterCase& c : cases) {
    CheckScatter(c, Op::Add, ElementType::F32, /*spread=*/true);
    CheckScatter(c, Op::Parameter, ElementType::S32, /*spread=*/true);
  }
}

// Rows of large operands, which are fetched ahead, in pieces: as many updates as there are rows, and hardly more than
// are fetched ahead; of one element; with a batch dimension, of rows and of elements; not along the rows.
TEST(Scatter, LargeOperands) {
  const ScatterCase cases[] = {
      {{9000, 72},
       {500, 1},
       {500, 72},
       {.update_window_dims = {1},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0},
        .index_vector_dim = 1}},
      {{700, 1000},
       {17, 2},
       {17, 1, 900},
       {.update_window_dims = {1, 2},
        .inserted_window_dims = {},
        .scatter_dims_to_operand_dims = {0, 1},
        .index_vector_dim = 1}},
      {{600000},
       {3000, 1},
       {3000},
       {.update_window_dims = {},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0},
        .index_vector_dim = 1}},
      {{40, 300, 64},
       {40, 30},
       {40, 30, 64},
       {.update_window_dims = {2},
        .inserted_window_dims = {1},
        .scatter_dims_to_operand_dims = {1},
        .input_batching_dims = {0},
        .scatter_indices_batching_dims = {0},
        .index_vector_dim = 2}},
      {{3, 700},
       {3, 9000, 1},
       {3, 9000},
       {.update_window_dims = {},
        .inserted_window_dims = {1},
        .scatter_dims_to_operand_dims = {1},
        .input_batching_dims = {0},
        .scatter_indices_batching_dims = {0},
        .index_vector_dim = 2}},
      {{90, 60, 70},
       {50, 1},
       {50, 60, 70},
       {.update_window_dims = {1, 2},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0},
        .index_vector_dim = 1}},
      {{600, 1000},
       {50, 1},
       {50, 600},
       {.update_window_dims = {1},
        .inserted_window_dims = {1},
        .scatter_dims_to_operand_dims = {1},
        .index_vector_dim = 1}},
  };
  for (const ScatterCase& c : cases) CheckScatter(c, Op::Add, ElementType::F32);
}

// Windows that overlap: an element of one update's goes where another element of the next one's does, in their order.
TEST(Scatter, WindowsThatOverlap) {
  const ScatterCase cases[] = {
      // frames of a signal; blocks of an image; pieces of columns, and of rows
      {{700},
       {300, 1},
       {300, 200},
       {.update_window_dims = {1},
        .inserted_window_dims = {},
        .scatter_dims_to_operand_dims = {0},
        .index_vector_dim = 1}},
      {{60, 60},
       {300, 2},
       {300, 24, 24},
       {.update_window_dims = {1, 2},
        .inserted_window_dims = {},
        .scatter_dims_to_operand_dims = {0, 1},
        .index_vector_dim = 1}},
      {{200, 15},
       {900, 2},
       {900, 100},
       {.update_window_dims = {1},
        .inserted_window_dims = {1},
        .scatter_dims_to_operand_dims = {0, 1},
        .index_vector_dim = 1}},
      {{40, 900},
       {200, 2},
       {200, 700},
       {.update_window_dims = {1},
        .inserted_window_dims = {0},
        .scatter_dims_to_operand_dims = {0, 1},
        .index_vector_dim = 1}},
  };
  for (const ScatterCase& c : cases)
    for (Op op : {Op::Add, Op::Parameter, Op::Subtract}) CheckScatter(c, op, ElementType::F32);
}

TEST(Scatter, CombinersAndShapes) {
  for (const ScatterCase& c : kScatterCases) {
    for (Op op : {Op::Add, Op::Maximum, Op::Parameter, Op::Subtract}) {
      for (ElementType type :
           {ElementType::F32, ElementType::S32, ElementType::BF16, ElementType::C64, ElementType::U8}) {
        if (op == Op::Maximum && IsComplex(type)) continue;
        CheckScatter(c, op, type);
      }
    }
  }
}

TEST(Scatter, SeveralOperandsAtOnce) {
  Module m("m");
  Builder f(m.AddComputation("combine"));  // (a, b, x, y) -> (a + y, b * x)
  Instruction* p[4];
  for (int64_t k = 0; k < 4; ++k) p[k] = f.Parameter(k, Shape::Scalar(ElementType::S32));
  f.Tuple(std::vector<Instruction*>{f.Make(Op::Add, {p[0], p[3]}), f.Make(Op::Multiply, {p[1], p[2]})});
  ASSERT_TRUE(f.Finish().ok());
  Differential d(m, Differential::kNotFused);
  Builder b(d.body());
  const Shape whole = Shape::Array(ElementType::S32, {9, 50}), part = Shape::Array(ElementType::S32, {13, 50});
  std::vector<Instruction*> operands{b.Parameter(0, whole), b.Parameter(1, whole),
                                     b.Parameter(2, Shape::Array(ElementType::S64, {13, 1})), b.Parameter(3, part),
                                     b.Parameter(4, part)};
  std::vector<Computation*> called{f.computation()};
  b.Make(Op::Scatter, operands, kScatterCases[0].attrs, called, nullptr);
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  d.SetInPlace({0, 1});
  EXPECT_EQ(d.Check(), "");
}

TEST(Scatter, SelectAndScatter) {
  struct {
    Int64Vector operand, source;
    std::vector<WindowDim> window;
  } cases[] = {
      {{2, 8, 9, 20}, {2, 4, 4, 20}, {{}, {.size = 2, .stride = 2}, {.size = 2, .stride = 2}, {}}},  // channels last
      {{2, 3, 8, 9}, {2, 3, 4, 4}, {{}, {}, {.size = 2, .stride = 2}, {.size = 3, .stride = 2}}},    // channels first
      {{40, 7}, {42, 5}, {{.size = 2, .pad_low = 2, .pad_high = 1}, {.size = 3}}},                   // overlap, padding
      {{33}, {17}, {{.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1}}},
      {{7}, {7}, {{}}},  // windows of one element
      {{9, 20}, {8, 20}, {{.size = 4, .stride = 2, .pad_low = 1, .base_dilation = 2, .reversal = true}, {}}},
      // Windows side by side, some of them partly outside.
      {{3, 9, 83},
       {3, 5, 42},
       {{},
        {.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1},
        {.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1}}},
      {{2, 250}, {2, 25}, {{}, {.size = 20, .stride = 10, .pad_low = 7, .pad_high = 3, .reversal = true}}},
      {{2, 70}, {2, 22}, {{}, {.size = 3, .stride = 3, .window_dilation = 3}}},
      {{2, 6, 40}, {2, 1, 20}, {{}, {.size = 5, .stride = 9, .pad_low = 1}, {.size = 2, .stride = 2}}},
      {{6, 7, 20}, {4, 5, 20}, {{.size = 5, .pad_low = 1, .pad_high = 1}, {.size = 5, .pad_low = 2}, {}}},
  };
  for (auto& c : cases) {
    for (ElementType type : {ElementType::F32, ElementType::S16}) {
      Module m("m");
      Differential d(m, Differential::kNotFused);
      Builder b(d.body());
      std::vector<Instruction*> operands{b.Parameter(0, Shape::Array(type, c.operand)),
                                         b.Parameter(1, Shape::Array(type, c.source)),
                                         b.Parameter(2, Shape::Scalar(type))};
      std::vector<Computation*> called{Combine(m, Op::Compare, type), Combine(m, Op::Add, type)};
      b.Make(Op::SelectAndScatter, operands, WindowAttrs{Window{c.window}}, called, nullptr);
      ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
      d.set_tame(true);
      d.set_ulps(64);  // the evaluator sums in f64
      EXPECT_EQ(d.Check(), "") << d.body()->ToString();
    }
  }
}

TEST(Sort, ByTwoKeys) {
  for (int64_t dimension : {0, 1}) {
    Module m("m");
    Builder f(m.AddComputation("less"));  // by the first operand, then descending by the second
    Instruction* a = f.Parameter(0, Shape::Scalar(ElementType::S8));
    Instruction* a2 = f.Parameter(1, Shape::Scalar(ElementType::S8));
    Instruction* c = f.Parameter(2, Shape::Scalar(ElementType::F32));
    Instruction* c2 = f.Parameter(3, Shape::Scalar(ElementType::F32));
    Instruction* tie =
        f.Make(Op::And, {f.Compare(a, a2, CompareDirection::Eq), f.Compare(c, c2, CompareDirection::Gt)});
    f.Make(Op::Or, {f.Compare(a, a2, CompareDirection::Lt), tie});
    ASSERT_TRUE(f.Finish().ok());
    Differential d(m, Differential::kNotFused);
    Builder b(d.body());
    std::vector<Instruction*> operands{b.Parameter(0, Shape::Array(ElementType::S8, {60, 70})),
                                       b.Parameter(1, Shape::Array(ElementType::F32, {60, 70}))};
    std::vector<Computation*> called{f.computation()};
    b.Make(Op::Sort, operands, SortAttrs{{dimension}, true}, called, nullptr);
    ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
    d.set_tame(true);
    EXPECT_EQ(d.Check(), "");
  }
}

}  // namespace
}  // namespace strop::cpu
