// Reductions, windows, maps and contractions.
#include <gtest/gtest.h>

#include "strop/cpu/testing/differential.h"
#include "strop/ir/builder.h"

namespace strop::cpu {
namespace {

Computation* BinaryCombiner(Module& m, Op op, ElementType type) {
  Builder b(m.AddComputation("combiner"));
  Instruction* x = b.Parameter(0, Shape::Scalar(type));
  b.Make(op, {x, b.Parameter(1, Shape::Scalar(type))});
  (void)b.Finish();
  return b.computation();
}

// (value, index) of the largest value, the smaller index if equal: as JAX writes argmax.
Computation* ArgMax(Module& m, ElementType type) {
  Builder b(m.AddComputation("argmax"));
  Instruction* x = b.Parameter(0, Shape::Scalar(type));
  Instruction* i = b.Parameter(1, Shape::Scalar(ElementType::S32));
  Instruction* y = b.Parameter(2, Shape::Scalar(type));
  Instruction* j = b.Parameter(3, Shape::Scalar(ElementType::S32));
  Instruction* better = b.Make(Op::Or, {b.Compare(x, y, CompareDirection::Gt), b.Compare(x, x, CompareDirection::Ne)});
  Instruction* tie = b.Make(Op::And, {b.Compare(x, y, CompareDirection::Eq), b.Compare(i, j, CompareDirection::Lt)});
  Instruction* pick = b.Make(Op::Or, {better, tie});
  b.Tuple(std::vector<Instruction*>{b.Make(Op::Select, {better, x, y}), b.Make(Op::Select, {pick, i, j})});
  (void)b.Finish();
  return b.computation();
}

struct ReduceCase {
  Int64Vector dims;
  Dims reduced;
};
const ReduceCase kReduceCases[] = {
    {{100}, {0}},       {{5, 70}, {1}},    {{70, 5}, {0}},   {{5, 70}, {0, 1}},       {{4, 6, 100}, {0, 2}},
    {{3, 200, 9}, {1}}, {{300, 130}, {0}}, {{7, 3}, {1}},    {{2, 3, 4}, {1, 2}},     {{2, 3, 40}, {0, 1}},
    {{6, 1}, {1}},      {{0, 5}, {0}},     {{3, 1000}, {1}}, {{2, 5, 2, 64}, {1, 3}},
};

TEST(Reduction, SumsOfAllAxes) {
  for (const ReduceCase& c : kReduceCases) {
    for (ElementType type : {ElementType::F32, ElementType::S32, ElementType::F64, ElementType::C64}) {
      Module m("m");
      Differential d(m);
      Builder b(d.body());
      Instruction* x = b.Parameter(0, Shape::Array(type, c.dims));
      b.Reduce(IsComplex(type) ? x : b.Make(Op::Abs, {x}), b.Parameter(1, Shape::Scalar(type)), c.reduced,
               BinaryCombiner(m, Op::Add, type));
      ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
      d.set_tame(true);
      d.set_ulps(IsInteger(type) ? 0 : IsComplex(type) ? 2000 : 40);  // another order of summation
      EXPECT_EQ(d.Check(), "") << d.body()->ToString();
    }
  }
}

TEST(Reduction, OrderlessCombiners) {
  for (Op op : {Op::Maximum, Op::Minimum, Op::And, Op::Or, Op::Xor, Op::Multiply}) {
    for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::S8, ElementType::U32, ElementType::Pred,
                             ElementType::F8E4M3FN}) {
      const bool bitwise = op == Op::And || op == Op::Or || op == Op::Xor;
      if (bitwise == IsFloat(type) || (op == Op::Multiply && type == ElementType::Pred)) continue;
      for (const ReduceCase& c : kReduceCases) {
        Module m("m");
        Differential d(m);
        Builder b(d.body());
        Instruction* x = b.Parameter(0, Shape::Array(type, c.dims));
        b.Reduce(x, b.Parameter(1, Shape::Scalar(type)), c.reduced, BinaryCombiner(m, op, type));
        ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
        d.set_tame(op == Op::Multiply);
        // Products of small floats round once here, at every step in the evaluator.
        d.set_ulps(op == Op::Multiply && IsFloat(type) ? 1e9 : 0);
        EXPECT_EQ(d.Check(), "") << Name(op) << " " << d.body()->ToString();
      }
    }
  }
}

TEST(Reduction, NoncommutativeCombinersKeepTheOrder) {
  for (const ReduceCase& c : kReduceCases) {
    Module m("m");
    Builder f(m.AddComputation("combiner"));  // 2 a - b
    Instruction* a = f.Parameter(0, Shape::Scalar(ElementType::S32));
    f.Make(Op::Subtract, {f.Make(Op::Add, {a, a}), f.Parameter(1, Shape::Scalar(ElementType::S32))});
    ASSERT_TRUE(f.Finish().ok());
    Differential d(m);
    Builder b(d.body());
    Instruction* x = b.Parameter(0, Shape::Array(ElementType::S32, c.dims));
    b.Reduce(x, b.Parameter(1, Shape::Scalar(ElementType::S32)), c.reduced, f.computation());
    ASSERT_TRUE(b.Finish().ok());
    EXPECT_EQ(d.Check(), "") << d.body()->ToString();
  }
}

TEST(Reduction, Variadic) {
  for (const ReduceCase& c : kReduceCases) {
    for (ElementType type : {ElementType::F32, ElementType::S16}) {
      Module m("m");
      Differential d(m);
      Builder b(d.body());
      Instruction* x = b.Parameter(0, Shape::Array(type, c.dims));
      Instruction* i = b.Iota(Shape::Array(ElementType::S32, c.dims), c.reduced.back());
      std::vector<Instruction*> operands{x, i, b.Scalar(type, IsFloat(type) ? -INFINITY : -32768),
                                         b.Scalar(ElementType::S32, 0)};
      std::vector<Computation*> called{ArgMax(m, type)};
      Instruction* reduce = b.Make(Op::Reduce, operands, DimensionsAttrs{c.reduced}, called, nullptr);
      b.Tuple(std::vector<Instruction*>{b.GetTupleElement(reduce, 0), b.GetTupleElement(reduce, 1)});
      ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
      EXPECT_EQ(d.Check(), "") << d.body()->ToString();
    }
  }
}

// Rows of every short length are dealt out to lanes by halves, or turned by quarters of registers; more rows than fill
// vectors, and some that are left.
TEST(Reduction, ShortRowsOfEveryLength) {
  for (int64_t size = 2; size <= 34; ++size) {
    for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::F16, ElementType::BF16, ElementType::S32,
                             ElementType::S16, ElementType::U8, ElementType::Pred}) {
      Module m("m");
      Differential d(m);
      Builder b(d.body());
      const Int64Vector dims{type == ElementType::U8 || type == ElementType::Pred ? 3 * 64 + 5 : 5 * 16 + 3, size};
      Instruction* x = b.Parameter(0, Shape::Array(type, dims));
      std::vector<Instruction*> results;
      if (IsPred(type)) {
        results.push_back(b.Reduce(x, b.Scalar(type, 0), Dims{1}, BinaryCombiner(m, Op::Or, type)));
      } else {
        const double lowest = IsFloat(type) ? -INFINITY : type == ElementType::U8 ? 0 : -32768;
        Instruction* init = b.Scalar(type, lowest);
        results.push_back(b.Reduce(x, init, Dims{1}, BinaryCombiner(m, Op::Maximum, type)));
        Instruction* place = b.Iota(Shape::Array(ElementType::S32, dims), 1);
        const std::vector<Instruction*> operands{x, place, init, b.Scalar(ElementType::S32, 0)};
        const std::vector<Computation*> called{ArgMax(m, type)};
        Instruction* both = b.Make(Op::Reduce, operands, DimensionsAttrs{Dims{1}}, called, nullptr);
        results.push_back(b.GetTupleElement(both, 0));
        results.push_back(b.GetTupleElement(both, 1));
      }
      b.Tuple(results);
      ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
      EXPECT_EQ(d.Check(), "") << d.body()->ToString();
    }
  }
}

TEST(Reduction, InsideAnElementwiseKernel) {
  // softmax without its exponential: x - max(row), the maximum hoisted to the row loop.
  for (Int64Vector dims : {Int64Vector{9, 100}, Int64Vector{9, 5}, Int64Vector{2, 3, 64}}) {
    Module m("m");
    Differential d(m);
    Builder b(d.body());
    Instruction* x = b.Parameter(0, Shape::Array(ElementType::F32, dims));
    const int64_t last = static_cast<int64_t>(dims.size()) - 1;
    Instruction* most =
        b.Reduce(x, b.Scalar(ElementType::F32, -INFINITY), {last}, BinaryCombiner(m, Op::Maximum, ElementType::F32));
    Dims kept;
    for (int64_t k = 0; k < last; ++k) kept.push_back(k);
    b.Make(Op::Subtract, {x, b.Broadcast(most, dims, kept)});
    ASSERT_TRUE(b.Finish().ok());
    EXPECT_EQ(d.Check(), "") << d.body()->ToString();
  }
}

TEST(Reduction, Window) {
  struct {
    Int64Vector dims;
    std::vector<WindowDim> window;
  } cases[] = {
      {{3, 40}, {{}, {.size = 3}}},
      {{3, 40}, {{.size = 2, .stride = 2, .pad_low = 1}, {.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1}}},
      {{50}, {{.size = 50, .pad_low = 49}}},
      {{4, 33}, {{.size = 2, .window_dilation = 2}, {.size = 3, .pad_low = 2, .pad_high = 3, .base_dilation = 2}}},
      {{4, 33}, {{.size = 1}, {.size = 4, .stride = 3, .pad_low = -1, .pad_high = -2, .window_dilation = 2}}},
  };
  for (auto& c : cases) {
    for (Op op : {Op::Add, Op::Maximum, Op::Minimum}) {
      for (ElementType type : {ElementType::F32, ElementType::S32, ElementType::BF16}) {
        Module m("m");
        Differential d(m);
        Builder b(d.body());
        Instruction* x = b.Parameter(0, Shape::Array(type, c.dims));
        std::vector<Instruction*> operands{x, b.Parameter(1, Shape::Scalar(type))};
        std::vector<Computation*> called{BinaryCombiner(m, op, type)};
        b.Make(Op::ReduceWindow, operands, WindowAttrs{Window{c.window}}, called, nullptr);
        ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
        d.set_tame(true);
        d.set_ulps(op == Op::Add && type == ElementType::BF16  ? 1e6
                   : op == Op::Add && type == ElementType::F32 ? 100
                                                               : 0);
        EXPECT_EQ(d.Check(), "") << d.body()->ToString();
      }
    }
  }
}

TEST(Reduction, MapInlinesItsBody) {
  Module m("m");
  Differential d(m);
  Builder b(d.body());
  const Shape shape = Shape::Array(ElementType::F32, {5, 21});
  Instruction* x = b.Parameter(0, shape);
  Instruction* y = b.Parameter(1, shape);
  std::vector<Instruction*> operands{x, y};
  std::vector<Computation*> called{BinaryCombiner(m, Op::Divide, ElementType::F32)};
  b.Make(Op::Map, operands, DimensionsAttrs{{0, 1}}, called, nullptr);
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  EXPECT_EQ(d.Check(), "");
}

TEST(Reduction, Dot) {
  struct {
    Int64Vector lhs, rhs;
    DotAttrs attrs;
  } cases[] = {
      {{5, 7}, {7, 33}, {.lhs_contracting = {1}, .rhs_contracting = {0}}},
      {{5, 7}, {33, 7}, {.lhs_contracting = {1}, .rhs_contracting = {1}}},
      {{2, 5, 7}, {2, 7, 9}, {.lhs_batch = {0}, .lhs_contracting = {2}, .rhs_batch = {0}, .rhs_contracting = {1}}},
      {{5, 3, 4}, {4, 3, 6}, {.lhs_contracting = {1, 2}, .rhs_contracting = {1, 0}}},
      {{2, 5, 3, 7},
       {2, 9, 3, 7},
       {.lhs_batch = {0, 2}, .lhs_contracting = {3}, .rhs_batch = {0, 2}, .rhs_contracting = {3}}},
  };
  for (auto& c : cases) {
    for (ElementType type :
         {ElementType::F32, ElementType::S32, ElementType::S8, ElementType::C64, ElementType::BF16}) {
      Module m("m");
      Differential d(m);
      Builder b(d.body());
      Instruction* x = b.Parameter(0, Shape::Array(type, c.lhs));
      b.Dot(x, b.Parameter(1, Shape::Array(type, c.rhs)), c.attrs, type == ElementType::S8 ? ElementType::S32 : type);
      ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
      d.set_tame(true);
      d.set_ulps(IsInteger(type) ? 0 : 200);
      EXPECT_EQ(d.Check(), "") << d.body()->ToString();
    }
  }
}

// (x, y) -> y x + y + x with a constant: associative, none of the library's combiners.
TEST(Reduction, ScanByAnyCombiner) {
  struct {
    Int64Vector dims;
    int64_t along;
  } cases[] = {{{37}, 0}, {{5, 33}, 1}, {{33, 5}, 0}, {{40, 21}, 1}, {{21, 40}, 0}, {{3, 9, 130}, 1}, {{7, 4, 3}, 1}};
  for (const auto& c : cases) {
    for (bool backward : {false, true}) {
      for (ElementType type : {ElementType::S32, ElementType::U8}) {
        Module m("m");
        Differential d(m);
        Builder inner(m.AddComputation("combiner"));
        Instruction* x = inner.Parameter(0, Shape::Scalar(type));
        Instruction* y = inner.Parameter(1, Shape::Scalar(type));
        inner.Make(Op::Add, {inner.Make(Op::Add, {x, y}), inner.Make(Op::Multiply, {x, y})});
        ASSERT_TRUE(inner.Finish().ok());
        Builder b(d.body());
        Window window;
        for (int64_t k = 0; k < static_cast<int64_t>(c.dims.size()); ++k) {
          WindowDim w;
          if (k == c.along) {
            w.size = c.dims[static_cast<size_t>(k)];
            (backward ? w.pad_high : w.pad_low) = w.size - 1;
          }
          window.dims.push_back(w);
        }
        Instruction* operands[] = {b.Parameter(0, Shape::Array(type, c.dims)), b.Scalar(type, 0)};
        Computation* called[] = {inner.computation()};
        b.Make(Op::ReduceWindow, operands, WindowAttrs{window}, called, nullptr);
        const Status s = b.Finish();
        ASSERT_TRUE(s.ok()) << s.ToString();
        EXPECT_EQ(d.Check(), "") << d.body()->ToString();
      }
    }
  }
}

// Reductions of a row where the row is read: a normalization, of few long and many short rows, and of a transpose.
TEST(Reduction, OnceARow) {
  for (const Int64Vector& dims : {Int64Vector{3, 64}, Int64Vector{130, 65}, Int64Vector{2, 5, 131},
                                  Int64Vector{1, 9000}, Int64Vector{70, 2048}}) {
    for (bool transposed : {false, true}) {
      if (transposed && dims.size() != 2) continue;
      Module m("m");
      Differential d(m);
      Builder b(d.body());
      const Shape shape = Shape::Array(ElementType::F32, dims);
      const int64_t last = shape.rank() - 1;
      Dims rows;
      Int64Vector rows_dims;
      for (int64_t k = 0; k < last; ++k) {
        rows.push_back(k);
        rows_dims.push_back(shape.dim(k));
      }
      const Shape rows_shape = Shape::Array(ElementType::F32, rows_dims);
      const auto reduce = [&](Instruction* x, Op op) {
        std::vector<Instruction*> operands{x, b.Scalar(ElementType::F32, 0)};
        std::vector<Computation*> called{BinaryCombiner(m, op, ElementType::F32)};
        return b.Make(Op::Reduce, operands, DimensionsAttrs{{last}}, called, &rows_shape);
      };
      Instruction* x = b.Parameter(0, shape);
      Instruction* highest = b.Broadcast(reduce(x, Op::Maximum), dims, rows);
      Instruction* e = b.Make(Op::Exp, {b.Make(Op::Subtract, {x, highest})}, AccuracyAttrs{});
      if (!transposed) {  // a roll: the first segment of a row is all mask
        Dims from(dims.size(), 0), to(dims.begin(), dims.end()), one(dims.size(), 1), cut = from, end = to;
        cut.back() = end.back() = dims.back() - 3;
        Instruction *head = b.Slice(x, cut, to, one), *tail = b.Slice(x, from, end, one);
        e = b.Make(Op::Subtract, {b.Make(Op::Concatenate, {head, tail}, DimensionsAttrs{{last}}), highest});
      }
      Instruction* result = b.Make(Op::Divide, {e, b.Broadcast(reduce(e, Op::Add), dims, rows)});
      if (transposed) {
        const Shape turned = Shape::Array(ElementType::F32, {dims[1], dims[0]});
        b.Make(Op::Add, {result, b.Transpose(b.Parameter(1, turned), {1, 0})});
      }
      const Status s = b.Finish();
      ASSERT_TRUE(s.ok()) << s.ToString();
      d.set_tame(true);
      d.set_ulps(200);
      EXPECT_EQ(d.Check(), "") << d.body()->ToString();
    }
  }
}

}  // namespace
}  // namespace strop::cpu
