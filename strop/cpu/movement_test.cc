// Data movement and indexing ops, alone and fused with elementwise users, over shapes that do and do not fill vectors.
#include <gtest/gtest.h>

#include <numeric>

#include "strop/cpu/testing/differential.h"
#include "strop/ir/builder.h"

namespace strop::cpu {
namespace {

constexpr ElementType kF32 = ElementType::F32;

class Case {
 public:
  Case() : module("m"), d(module), b(d.body()) {}
  Instruction* Input(ElementType type, Int64Vector dims) {
    return b.Parameter(next_++, Shape::Array(type, std::move(dims)));
  }
  Instruction* Input(Int64Vector dims) { return Input(kF32, std::move(dims)); }
  // A use that is elementwise, so that the op is inlined and is not the root.
  Instruction* Used(Instruction* i) {
    return IsFloat(i->shape().type()) ? b.Make(Op::Negate, {i}) : b.Make(Op::Not, {i});
  }
  void Check() {
    const Status s = b.Finish();
    ASSERT_TRUE(s.ok()) << s.ToString();
    EXPECT_EQ(d.Check(), "") << d.body()->ToString();
  }
  Module module;
  Differential d;
  Builder b;

 private:
  int64_t next_ = 0;
};

TEST(Movement, Broadcast) {
  struct {
    Int64Vector from, to;
    Dims dims;
  } cases[] = {
      {{}, {5, 7}, {}},
      {{7}, {5, 7}, {1}},
      {{5}, {5, 7}, {0}},
      {{3}, {512, 3}, {1}},
      {{64}, {9, 64}, {1}},
      {{9}, {9, 64}, {0}},
      {{4, 6}, {4, 5, 6}, {0, 2}},
      {{5, 6}, {4, 5, 6}, {1, 2}},
      {{100}, {3, 100, 2}, {1}},
      {{2, 100}, {2, 100, 17}, {0, 1}},
      {{1}, {33, 1}, {1}},
      {{9, 4, 13}, {2, 9, 1, 4, 1, 13}, {1, 3, 5}},
      {{9, 13}, {9, 1, 5, 1, 13, 1}, {0, 4}},
      {{13, 9}, {1, 13, 1, 3, 1, 9}, {1, 5}},
  };
  for (auto& c : cases) {
    Case t;
    Instruction* x = t.Input(c.from);
    Instruction* y = t.Input(c.to);
    t.b.Make(Op::Add, {t.b.Broadcast(x, c.to, c.dims), y});
    t.Check();
  }
}

// Blocks: sides that are and are no multiples of the lanes, users at the same position, two transposes in one kernel.
TEST(Movement, TransposeInBlocks) {
  for (ElementType type : {kF32, ElementType::Pred, ElementType::S8, ElementType::BF16, ElementType::F64,
                           ElementType::C64, ElementType::C128}) {
    Case t;
    t.b.Transpose(t.Input(type, {67, 3, 35}), {2, 1, 0});
    t.Check();
  }
  for (const Int64Vector& dims : {Int64Vector{64, 32}, Int64Vector{17, 300}, Int64Vector{5, 1000}, Int64Vector{4, 4},
                                  Int64Vector{333, 131}, Int64Vector{1, 40}, Int64Vector{40, 1}}) {
    Case t;
    Instruction* x = t.b.Transpose(t.Used(t.Input(dims)), {1, 0});
    Instruction* y = t.b.Transpose(t.Input(dims), {1, 0});
    Instruction* bias = t.b.Broadcast(t.Input({dims[0]}), {dims[1], dims[0]}, {1});
    t.b.Make(Op::Add, {t.b.Make(Op::Multiply, {x, t.Input({dims[1], dims[0]})}), t.b.Make(Op::Subtract, {y, bias})});
    t.Check();
  }
  Case t;  // a comparison's result, 5-dimensional, with another permutation beside it
  Instruction* less =
      t.b.Make(Op::Not, {t.b.Transpose(t.Input(ElementType::Pred, {3, 18, 2, 21, 2}), {3, 2, 0, 1, 4})});
  Instruction* other = t.b.Transpose(t.Input({2, 18, 21, 3, 2}), {2, 0, 3, 1, 4});
  t.b.Make(Op::Select, {less, other, t.Input({21, 2, 3, 18, 2})});
  t.Check();
}

TEST(Movement, ColumnsPickedFromRows) {  // which are fetched ahead
  for (ElementType type : {kF32, ElementType::U8, ElementType::C64}) {
    Case t;
    Instruction* index = t.Input(ElementType::S32, {40, 1});
    t.b.Make(Op::Gather, {t.Input(type, {75, 300}), index},
             GatherAttrs{.offset_dims = {0},
                         .collapsed_slice_dims = {1},
                         .start_index_map = {1},
                         .index_vector_dim = 1,
                         .slice_sizes = {75, 1}});
    t.Check();
  }
}

// Results that are stored past the caches: by whole lines, by rows that begin inside a line, and by parts of lines.
TEST(Movement, LargeResults) {
  for (const Int64Vector& dims : {Int64Vector{1088, 1856}, Int64Vector{2309, 1871}}) {
    Case t;
    t.b.Transpose(t.Input(dims), {1, 0});
    t.Check();
  }
  for (const int64_t row : {20, 45, 99, 333}) {  // rows of tiles are parts of lines, tiles a run of memory
    Case t;
    t.b.Transpose(t.Input({2500000 / (row * 301), row, 301}), {0, 2, 1});
    t.Check();
  }
  for (ElementType type : {ElementType::BF16, ElementType::C64, ElementType::F64}) {
    Case t;
    t.b.Transpose(t.Input(type, {type == ElementType::BF16 ? 2112 : 544, 1003}), {1, 0});
    t.Check();
  }
  {  // tiles that are cut off along both sides, of several matrices; two operands, one of them computed
    Case t;
    Instruction* y = t.b.Convert(t.Input(ElementType::BF16, {3, 560, 509}), kF32);
    t.b.Make(Op::Add, {t.b.Transpose(t.Input({3, 560, 509}), {0, 2, 1}), t.b.Transpose(y, {0, 2, 1})});
    t.Check();
  }
  for (const Int64Vector& dims : {Int64Vector{1201, 2310}, Int64Vector{680, 4096}}) {
    Case t;
    Instruction* x = t.b.Make(Op::Add, {t.Input(dims), t.b.Make(Op::Add, {t.Input(dims), t.Input(dims)})});
    Instruction* const results[] = {x, t.b.Convert(x, ElementType::BF16)};
    t.b.Tuple(results);
    t.Check();
  }
}

// Large results whose rows are walked as the operand has them: two digits that change places, more of them, digits of
// several dimensions, and users that read another operand.
TEST(Movement, RowsOfLargeTransposes) {
  struct {
    ElementType type;
    Int64Vector dims;
    Dims permutation;
  } cases[] = {
      {kF32, {7, 400, 15, 64}, {0, 2, 1, 3}},
      {kF32, {3, 5, 301, 9, 80}, {1, 3, 2, 0, 4}},
      {ElementType::BF16, {300, 18, 5, 2, 96}, {1, 2, 0, 3, 4}},
      {ElementType::U8, {61, 300, 11, 4, 16}, {2, 1, 0, 3, 4}},
      {ElementType::C64, {1000, 33, 1, 48}, {1, 2, 0, 3}},
  };
  for (auto& c : cases) {
    Case t;
    t.b.Transpose(t.Input(c.type, c.dims), c.permutation);
    t.Check();
    EXPECT_GT(t.d.num_tasks(), 4);
  }
  for (const bool both : {false, true}) {
    Case t;
    const Int64Vector from{600, 90, 64}, to{90, 600, 64};
    Instruction* x = t.b.Make(Op::Add, {t.Input(from), t.Input(from)});
    Instruction* y = both ? t.b.Transpose(t.Input(from), {1, 0, 2}) : t.Input(to);
    Instruction* bias = t.b.Broadcast(t.Input({90, 64}), to, {0, 2});
    t.b.Make(Op::Multiply, {t.b.Make(Op::Subtract, {t.b.Transpose(x, {1, 0, 2}), bias}), y});
    t.Check();
  }
}

// Less than a line stays together: tiles that are cut off along both sides, runs that are and are no powers of two,
// users that read other operands in the order of the result, two transposes of different types in one kernel.
TEST(Movement, RunsOfTransposes) {
  for (ElementType type : {kF32, ElementType::U8, ElementType::Pred, ElementType::BF16, ElementType::F64,
                           ElementType::C64, ElementType::S16}) {
    for (int64_t run : {2, 3, 5, 8, 13}) {
      Case t;
      t.b.Transpose(t.Input(type, {37, 141, run}), {1, 0, 2});
      t.Check();
      Case u;  // four-dimensional, the result of a use
      u.Used(u.b.Transpose(u.Input(type, {3, 150, 2, run}), {2, 0, 1, 3}));
      if (!IsComplex(type)) u.Check();
    }
  }
  for (const Int64Vector& dims : {Int64Vector{2, 700, 7}, Int64Vector{700, 2, 7}, Int64Vector{90, 1, 80, 3}}) {
    Case t;
    const bool unit = dims.size() == 4;
    const Dims permutation = unit ? Dims{2, 1, 0, 3} : Dims{1, 0, 2};
    Instruction* x = t.b.Transpose(t.Used(t.Input(dims)), permutation);
    const Int64Vector& to = x->shape().dims();
    Instruction* y = t.b.Convert(t.b.Transpose(t.Input(ElementType::U8, dims), permutation), kF32);
    Instruction* bias = t.b.Broadcast(t.Input({to.back()}), to, {static_cast<int64_t>(to.size()) - 1});
    Instruction* rows = t.b.Broadcast(t.Input({to[0]}), to, {0});
    t.b.Make(Op::Add,
             {t.b.Make(Op::Multiply, {x, t.Input(to)}), t.b.Make(Op::Multiply, {y, t.b.Make(Op::Add, {bias, rows})})});
    t.Check();
  }
  for (const Int64Vector& dims : {Int64Vector{9, 2, 112, 6}, Int64Vector{5, 3, 700, 3}, Int64Vector{40, 7, 30, 2}}) {
    for (ElementType type : {kF32, ElementType::U8, ElementType::C64}) {  // a few runs are a row, and rows a tile
      Case t;
      t.b.Transpose(t.Input(type, dims), {0, 2, 1, 3});
      t.Check();
    }
  }
  // The vector of a run is longer than it by more than a line.
  const std::pair<ElementType, int64_t> long_runs[] = {
      {kF32, 33}, {ElementType::BF16, 66}, {ElementType::BF16, 72}, {ElementType::U8, 130}};
  for (const auto& [type, run] : long_runs) {
    Case t;
    t.b.Transpose(t.Input(type, {8, 1030, 8, run}), {0, 2, 1, 3});
    t.Check();
  }
  {  // several tasks, stored past the caches
    Case t;
    t.b.Transpose(t.Input({640, 1100, 8}), {1, 0, 2});
    t.Check();
    EXPECT_GT(t.d.num_tasks(), 4);
  }
  Case t;  // two results
  Instruction* x = t.b.Transpose(t.Input({50, 60, 3}), {1, 0, 2});
  Instruction* const results[] = {t.Used(x), t.b.Convert(x, ElementType::BF16)};
  t.b.Tuple(results);
  t.Check();
}

// Bytes are turned in blocks of 16 rows, which overlap at the ends of both sides; in place too.
TEST(Movement, BytesInBlocks) {
  for (ElementType type : {ElementType::S8, ElementType::Pred, ElementType::S4}) {
    for (const Int64Vector& dims : {Int64Vector{300, 211}, Int64Vector{64, 16}, Int64Vector{16, 1000},
                                    Int64Vector{17, 65}, Int64Vector{129, 140}}) {
      Case t;
      t.b.Transpose(t.Input(type, dims), {1, 0});
      t.Check();
      Case u;
      Instruction* x = u.b.Transpose(u.Input(type, {3, dims[0], dims[1]}), {0, 2, 1});
      u.b.Make(Op::Xor, {x, u.Used(u.Input(type, {3, dims[1], dims[0]}))});
      if (type != ElementType::S4) u.Check();
    }
  }
  for (ElementType type : {kF32, ElementType::BF16, ElementType::U8, ElementType::F64}) {  // rows of few elements
    for (const Int64Vector& dims : {Int64Vector{24, 333}, Int64Vector{13, 5000}, Int64Vector{20, 16}}) {
      Case t;
      Instruction* x = t.b.Transpose(t.Input(type, dims), {1, 0});
      t.b.Make(Op::Select, {t.Input(ElementType::Pred, {dims[1], dims[0]}), x, t.Input(type, {dims[1], dims[0]})});
      t.Check();
      Case u;
      u.b.Transpose(u.Input(type, dims), {1, 0});
      u.Check();
    }
  }
  for (const Int64Vector& dims : {Int64Vector{2201, 1999}, Int64Vector{100, 21501}, Int64Vector{30001, 70}}) {
    Case t;
    Instruction* x = t.b.Transpose(t.Input(ElementType::U8, dims), {1, 0});
    t.b.Make(Op::Xor, {x, t.b.Broadcast(t.Input(ElementType::U8, {dims[0]}), {dims[1], dims[0]}, {1})});
    t.Check();
  }
  Case t;  // past the caches
  t.b.Transpose(t.Input(ElementType::U8, {4160, 2100}), {1, 0});
  t.Check();
}

// A few elements that are permuted among themselves are picked from the vectors that hold them.
TEST(Movement, PermutedTogether) {
  for (ElementType type : {kF32, ElementType::U8, ElementType::BF16, ElementType::F64, ElementType::C64}) {
    struct {
      Int64Vector dims;
      Dims permutation;
    } cases[] = {{{70, 2, 2}, {0, 2, 1}},
                 {{70, 3, 3}, {0, 2, 1}},
                 {{41, 4, 4}, {0, 2, 1}},
                 {{33, 10, 6}, {0, 2, 1}},
                 {{20, 2, 3, 4}, {0, 3, 1, 2}},
                 {{7, 5, 3, 2, 5}, {0, 1, 3, 2, 4}},
                 {{19, 1, 7, 2, 1}, {0, 3, 4, 2, 1}},
                 {{40, 5, 1, 2}, {0, 2, 3, 1}}};
    for (auto& c : cases) {
      Case t;
      t.b.Transpose(t.Input(type, c.dims), c.permutation);
      t.Check();
    }
  }
  Case t;
  Instruction* x = t.b.Transpose(t.Used(t.Input({90, 3, 4})), {0, 2, 1});
  t.b.Make(Op::Add, {x, t.b.Broadcast(t.Input({4, 3}), {90, 4, 3}, {1, 2})});
  t.Check();
}

// Padding between elements: steps that divide the lanes and that do not, in front and behind, along rows and in front
// of them, inside of another position.
TEST(Movement, PaddingBetweenElements) {
  for (ElementType type : {kF32, ElementType::U8, ElementType::BF16, ElementType::C64}) {
    for (const PaddingDim& last :
         {PaddingDim{0, 0, 1}, PaddingDim{0, 1, 1}, PaddingDim{1, 1, 1}, PaddingDim{3, 5, 1}, PaddingDim{2, 0, 2},
          PaddingDim{-3, 4, 2}, PaddingDim{1, -7, 4}, PaddingDim{0, 2, 19}})
      for (const PaddingDim& first : {PaddingDim{0, 0, 0}, PaddingDim{1, 2, 1}}) {
        Case t;
        t.b.Make(Op::Pad, {t.Input(type, {6, 75}), t.Input(type, {})}, PadAttrs{{first, last}});
        t.Check();
      }
    Case t;
    t.b.Make(Op::Pad, {t.Input(type, {12, 5, 3}), t.Input(type, {})}, PadAttrs{{{0, 0, 1}, {2, 1, 2}, {0, 0, 0}}});
    t.Check();
  }
  Case t;
  Instruction* x = t.b.Make(Op::Pad, {t.Input({9, 40}), t.Input({})}, PadAttrs{{{0, 0, 0}, {1, 0, 1}}});
  Instruction* y = t.b.Make(Op::Concatenate, {x, t.Input({9, 33})}, DimensionsAttrs{{1}});
  t.b.Make(Op::Multiply, {t.b.Make(Op::Reverse, {y}, DimensionsAttrs{{1}}), y});
  t.Check();
}

// Loops that are cut where a concatenation or padding changes sides: rows, columns, both, and pieces of long rows.
TEST(Movement, SplitsAlongEveryDigit) {
  for (int64_t dimension : {0, 1, 2}) {
    for (ElementType type : {kF32, ElementType::U8, ElementType::C64}) {
      Case t;
      const auto part = [&](int64_t n) {
        Int64Vector dims{5, 19, 37};
        dims[static_cast<size_t>(dimension)] = n;
        return t.Input(type, dims);
      };
      Instruction *x = part(1), *y = part(70), *z = part(3), *w = part(17);
      t.b.Make(Op::Concatenate, {x, y, z, w}, DimensionsAttrs{{dimension}});
      t.Check();
    }
  }
  {  // rolls, one inside the other
    Case t;
    Instruction* x = t.Input({45, 130});
    const auto roll = [&](Instruction* i, int64_t d, int64_t by) {
      const Dims zeros{0, 0}, dims{45, 130}, ones{1, 1};
      Dims from = zeros, to = dims;
      from[static_cast<size_t>(d)] = to[static_cast<size_t>(d)] = dims[static_cast<size_t>(d)] - by;
      Instruction *head = t.b.Slice(i, from, dims, ones), *tail = t.b.Slice(i, zeros, to, ones);
      return t.b.Make(Op::Concatenate, {head, tail}, DimensionsAttrs{{d}});
    };
    t.b.Make(Op::Add, {roll(roll(x, 0, 3), 1, 129), roll(roll(x, 1, 7), 0, 44)});
    t.Check();
  }
  Case t;  // one row of many tasks
  Instruction* y =
      t.b.Make(Op::Concatenate, {t.Input({333001}), t.Input({7}), t.Input({200000})}, DimensionsAttrs{{0}});
  t.b.Make(Op::Negate, {y});
  t.Check();
}

// Short innermost dimensions: interleaved stores, reads of every third element, tails; steps of slices.
TEST(Movement, ShortRows) {
  for (int64_t n : {2, 3, 4, 6, 7, 8, 9}) {
    for (ElementType type : {kF32, ElementType::U8, ElementType::Pred, ElementType::F64, ElementType::C64}) {
      Case t;
      t.b.Transpose(t.Input(type, {3, n, 75}), {0, 2, 1});
      t.Check();
      Case u;
      u.b.Transpose(u.Input(type, {2, 67, n}), {0, 2, 1});
      u.Check();
    }
    Case t;
    Instruction* x = t.b.Make(Op::Add, {t.Input({64, n}), t.b.Broadcast(t.Input({n}), {64, n}, {1})});
    t.b.Make(Op::Multiply, {x, t.b.Broadcast(t.Input({64}), {64, n}, {0})});
    t.Check();
    Case c;
    Instruction *p = c.Input({301, 1}), *q = c.Input({301, n});
    c.b.Make(Op::Concatenate, {p, q, p}, DimensionsAttrs{{1}});
    c.Check();
    for (ElementType type : {kF32, ElementType::U8, ElementType::BF16}) {
      Case s;
      s.b.Slice(s.Input(type, {7, 65 * n}), {1, n - 1}, {7, 65 * n}, {2, n});
      s.Check();
    }
  }
}

// Shorter than a vector, but not by much: vectors along each row, and its end.
TEST(Movement, RowsOfLessThanAVector) {
  for (ElementType type : {kF32, ElementType::U8, ElementType::Pred, ElementType::F16, ElementType::F64}) {
    for (int64_t n : {5, 9, 11, 13, 20, 25, 31, 37, 50, 63}) {
      Case pad;
      pad.b.Make(Op::Pad, {pad.Input(type, {33, n}), pad.Input(type, {})}, PadAttrs{{{0, 1, 0}, {2, 1, 0}}});
      pad.Check();
      Case both;
      Instruction *x = both.Input(type, {19, n}), *y = both.Input(type, {7, n});
      both.Used(both.b.Make(Op::Concatenate, {x, y, x}, DimensionsAttrs{{0}}));
      both.Check();
      Case rolled;
      x = rolled.Input(type, {4, 21, n});
      rolled.b.Make(
          Op::Concatenate,
          {rolled.b.Slice(x, {0, 0, 2}, {4, 21, n}, {1, 1, 1}), rolled.b.Slice(x, {0, 0, 0}, {4, 21, 2}, {1, 1, 1})},
          DimensionsAttrs{{2}});
      rolled.Check();
      Case rows;
      x = rows.b.Broadcast(rows.Input(type, {33}), {33, n}, {0});
      rows.b.Make(type == ElementType::Pred ? Op::And : Op::Add, {x, rows.Input(type, {33, n})});
      rows.Check();
    }
  }
}

TEST(Movement, TransposeReverseSlice) {
  for (const Dims& p : {Dims{1, 0, 2}, Dims{2, 1, 0}, Dims{0, 2, 1}, Dims{1, 2, 0}, Dims{2, 0, 1}}) {
    for (ElementType type : {kF32, ElementType::S8, ElementType::C64, ElementType::F64}) {
      Case t;
      t.b.Transpose(t.Input(type, {5, 18, 33}), p);
      t.Check();
    }
    Case t;
    t.Used(t.b.Transpose(t.Input({16, 7, 32}), p));
    t.Check();
  }
  for (const Dims& dims : {Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{1, 2}, Dims{0, 1, 2}}) {
    for (ElementType type : {kF32, ElementType::S16, ElementType::C128}) {
      Case t;
      t.Used(
          t.b.Make(Op::Reverse, {t.Input(type == ElementType::C128 ? kF32 : type, {3, 5, 37})}, DimensionsAttrs{dims}));
      t.Check();
      Case u;
      u.b.Make(Op::Reverse, {u.Input(type, {3, 5, 37})}, DimensionsAttrs{dims});
      u.Check();
    }
  }
  {
    Case t;
    t.Used(t.b.Slice(t.Input({10, 40}), {2, 0}, {9, 40}, {1, 1}));
    t.Check();
  }
  {
    Case t;
    t.b.Slice(t.Input({10, 100}), {1, 3}, {9, 98}, {2, 3});
    t.Check();
  }
  {
    Case t;
    t.b.Slice(t.Input(ElementType::U8, {4, 10, 64}), {0, 1, 16}, {4, 9, 64}, {1, 2, 1});
    t.Check();
  }
}

TEST(Movement, ReshapeAndIota) {
  {
    Case t;
    Instruction* x = t.Input({6, 35});
    t.b.Make(Op::Add, {t.b.Reshape(x, {7, 30}), t.b.Broadcast(t.Input({30}), {7, 30}, {1})});
    t.Check();
  }
  {
    Case t;
    Instruction* x = t.Input({4, 5, 6});
    t.b.Transpose(t.b.Reshape(t.b.Transpose(x, {2, 1, 0}), {10, 12}), {1, 0});
    t.Check();
  }
  for (ElementType type : {kF32, ElementType::S32, ElementType::U8, ElementType::BF16, ElementType::C64,
                           ElementType::F64, ElementType::S64}) {
    for (int64_t dim : {0, 1, 2}) {
      Case t;
      t.b.Iota(Shape::Array(type, {3, 20, 17}), dim);
      t.Check();
    }
  }
}

TEST(Movement, PadAndConcatenate) {
  for (const PaddingConfig& p : {PaddingConfig{{1, 2, 0}, {0, 0, 0}}, PaddingConfig{{0, 0, 0}, {3, 4, 0}},
                                 PaddingConfig{{-1, 1, 0}, {-2, -3, 0}}, PaddingConfig{{1, 0, 2}, {0, 1, 1}},
                                 PaddingConfig{{2, -3, 3}, {-1, 5, 2}}}) {
    for (ElementType type : {kF32, ElementType::S8, ElementType::C64}) {
      Case t;
      Instruction* x = t.Input(type, {9, 37});
      t.b.Make(Op::Pad, {x, t.Input(type, {})}, PadAttrs{p});
      t.Check();
    }
    Case t;
    Instruction* x = t.Input({9, 37});
    Instruction* y = t.Input({9, 37});
    t.Used(t.b.Make(Op::Pad, {t.b.Make(Op::Add, {x, y}), t.Input({})}, PadAttrs{p}));
    t.Check();
  }
  for (int64_t dim : {0, 1, 2}) {
    Case t;
    std::vector<Instruction*> parts;
    for (int64_t k = 0; k < 5; ++k) {
      Int64Vector dims{3, 4, 19};
      dims[static_cast<size_t>(dim)] = 1 + 3 * k;
      parts.push_back(t.Used(t.Input(dims)));
    }
    t.Used(t.b.Make(Op::Concatenate, parts, DimensionsAttrs{{dim}}, {}, nullptr));
    t.Check();
  }
}

TEST(Movement, DynamicSliceAndUpdate) {
  for (int64_t start : {-5, 0, 2, 100}) {
    for (ElementType index : {ElementType::S32, ElementType::S64, ElementType::U32}) {
      Case t;
      Instruction* x = t.Input({7, 40});
      std::vector<Instruction*> operands{x, t.Input(index, {}), t.Input(index, {})};
      t.Used(t.b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{{3, 33}}, {}, nullptr));
      t.d.SetInput(1, Literal::ScalarOfInt(index, start));
      t.d.SetInput(2, Literal::ScalarOfInt(index, start + 1));
      t.Check();
    }
    Case t;  // in a fusion where the result is a new value
    Instruction* x = t.Input({7, 40});
    Instruction* u = t.Input({7, 9});
    std::vector<Instruction*> operands{t.Used(x), u, t.Input(ElementType::S32, {}), t.Input(ElementType::S32, {})};
    t.Used(t.b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr));
    t.d.SetInput(2, Literal::ScalarOfInt(ElementType::S32, start));
    t.d.SetInput(3, Literal::ScalarOfInt(ElementType::S32, start));
    t.Check();
    for (Int64Vector window :
         {Int64Vector{2, 40}, Int64Vector{7, 9}, Int64Vector{1, 1}, Int64Vector{3, 33}, Int64Vector{7, 40}}) {
      Case p;  // in place
      Instruction* whole = p.Input({7, 40});
      Instruction* part = p.Input(window);
      std::vector<Instruction*> ops{whole, p.Used(part), p.Input(ElementType::S32, {}), p.Input(ElementType::S32, {})};
      p.b.Make(Op::DynamicUpdateSlice, ops, NoAttrs{}, {}, nullptr);
      p.d.SetInput(2, Literal::ScalarOfInt(ElementType::S32, start));
      p.d.SetInput(3, Literal::ScalarOfInt(ElementType::S32, start - 1));
      p.d.SetInPlace({0});
      p.Check();
    }
  }
}

TEST(Movement, Gather) {
  for (ElementType index : {ElementType::S32, ElementType::S64, ElementType::U8}) {
    Case rows;  // x[i] of whole rows
    Instruction* x = rows.Input({9, 50});
    Instruction* i = rows.Input(index, {13, 1});
    rows.Used(rows.b.Make(Op::Gather, {x, i},
                          GatherAttrs{.offset_dims = {1},
                                      .collapsed_slice_dims = {0},
                                      .start_index_map = {0},
                                      .index_vector_dim = 1,
                                      .slice_sizes = {1, 50}}));
    rows.Check();
    Case points;  // x[i, j]
    x = points.Input({9, 50});
    i = points.Input(index, {37, 2});
    points.b.Make(Op::Gather, {x, i},
                  GatherAttrs{.offset_dims = {},
                              .collapsed_slice_dims = {0, 1},
                              .start_index_map = {1, 0},
                              .index_vector_dim = 1,
                              .slice_sizes = {1, 1}});
    points.Check();
    Case batched;  // a batch dimension in both
    x = batched.Input({4, 9, 6});
    i = batched.Input(index, {4, 5});
    batched.b.Make(Op::Gather, {x, i},
                   GatherAttrs{.offset_dims = {2},
                               .collapsed_slice_dims = {1},
                               .start_index_map = {1},
                               .operand_batching_dims = {0},
                               .start_indices_batching_dims = {0},
                               .index_vector_dim = 2,
                               .slice_sizes = {1, 1, 6}});
    batched.Check();
    Case windows;
    x = windows.Input({9, 50});
    i = windows.Input(index, {2, 5});
    windows.b.Make(Op::Gather, {x, i},
                   GatherAttrs{.offset_dims = {0, 2},
                               .collapsed_slice_dims = {},
                               .start_index_map = {0, 1},
                               .index_vector_dim = 0,
                               .slice_sizes = {3, 20}});
    windows.Check();
  }
}

TEST(Movement, BitcastConvert) {
  struct {
    ElementType from, to;
    Int64Vector dims, result;
  } cases[] = {
      {kF32, ElementType::S32, {5, 7}, {5, 7}},
      {ElementType::F16, ElementType::U16, {5, 7}, {5, 7}},
      {ElementType::BF16, ElementType::F16, {5, 7}, {5, 7}},
      {ElementType::U32, ElementType::U8, {5, 7}, {5, 7, 4}},
      {ElementType::F64, ElementType::S32, {5, 7}, {5, 7, 2}},
      {ElementType::U8, ElementType::U32, {5, 7, 4}, {5, 7}},
      {ElementType::S16, ElementType::F64, {5, 4}, {5}},
      {ElementType::S4, ElementType::S8, {5, 2}, {5}},
      {ElementType::U32, ElementType::U4, {5}, {5, 8}},
  };
  for (auto& c : cases) {
    Case t;
    const Shape declared = Shape::Array(c.to, c.result);
    t.b.Make(Op::BitcastConvert, std::vector<Instruction*>{t.Input(c.from, c.dims)}, NoAttrs{}, {}, &declared);
    t.Check();
  }
}

TEST(Movement, LargeEnoughForManyTasks) {
  Case t;
  Instruction* x = t.Input({300, 2001});
  t.b.Make(Op::Add, {t.b.Transpose(t.Input({2001, 300}), {1, 0}), x});
  t.Check();
  EXPECT_GT(t.d.num_tasks(), 4);
  Case u;
  u.b.Make(Op::Add, {u.Input({1000003}), u.Input({1000003})});
  u.Check();
  EXPECT_GT(u.d.num_tasks(), 4);
}

// Vectors lie in one half of the concatenation; where they do not lie in the gather, the position of its index is far
// outside, and one element for all lanes is no masked load.
TEST(Movement, ConcatenateOfAGatherThatIsNotMeant) {
  Case t;
  Instruction* x = t.Input({64, 32});
  Instruction* table = t.Input({100, 16});
  Instruction* indices = t.Input(ElementType::S32, {64, 8, 1});
  GatherAttrs a;
  a.offset_dims = {2};
  a.collapsed_slice_dims = {0};
  a.start_index_map = {0};
  a.index_vector_dim = 2;
  a.slice_sizes = {1, 16};
  Instruction* rows = t.b.Make(Op::Gather, {table, indices}, a);
  Instruction* parts[] = {x, t.b.Reshape(rows, {64, 128})};
  t.Used(t.b.Make(Op::Concatenate, parts, DimensionsAttrs{{1}}, {}, nullptr));
  t.Check();
}

// What only moves them holds their codes in registers; a computation in the same kernel holds their values.
TEST(Movement, SmallFloats) {
  for (ElementType type : {ElementType::BF16, ElementType::F16, ElementType::F8E4M3FN}) {
    for (bool computed : {false, true}) {
      for (int64_t n : {5, 40, 70}) {
        Case t;
        Instruction* x = t.Input(type, {n, 33});
        Instruction* y = t.Input(type, {n, 33});
        Instruction* turned = t.b.Transpose(x, {1, 0});
        Instruction* part = t.b.Slice(y, {1, 2}, {n, 32}, {1, 1});
        Instruction* padded = t.b.Make(Op::Pad, {part, t.b.Scalar(type, 1.5)}, PadAttrs{{{1, 0, 0}, {1, 2, 0}}});
        if (computed) padded = t.Used(padded);
        Instruction* reversed = t.b.Make(Op::Reverse, {padded}, DimensionsAttrs{{1}});
        Instruction* chosen = t.b.Make(
            Op::Select, {t.b.Compare(t.b.Iota(Shape::Array(ElementType::S32, {n, 33}), 1),
                                     t.b.Iota(Shape::Array(ElementType::S32, {n, 33}), 0), CompareDirection::Lt),
                         reversed, x});
        Instruction* both[] = {turned, t.b.Transpose(chosen, {1, 0})};
        t.b.Make(Op::Concatenate, both, DimensionsAttrs{{1}}, {}, nullptr);
        t.Check();
      }
    }
  }
}

}  // namespace
}  // namespace strop::cpu
