// Whole computations: loops, branches, in-place updates, limits, async forms, grids of processes.
#include "strop/interp/grid.h"
#include "strop/interp/ops/fixture.h"

namespace strop::interp {
namespace {

constexpr ElementType kS32 = ElementType::S32;
const Shape kScalar = Shape::Scalar(ElementType::S32);

class EvaluatorTest : public OpTest {
 protected:
  // while (i < bound) (i, x) = (i + 1, x with x[i] = i)
  Computation* CountingLoop(int64_t bound, int64_t size) {
    const Shape state = Shape::Tuple({kScalar, Shape::Array(kS32, {size})});
    Builder c(module_.AddComputation("condition"));
    c.Compare(c.GetTupleElement(c.Parameter(0, state), 0), c.Scalar(kS32, static_cast<double>(bound)),
              CompareDirection::Lt);
    EXPECT_TRUE(c.Finish().ok());
    Builder b(module_.AddComputation("body"));
    Instruction* p = b.Parameter(0, state);
    Instruction* i = b.GetTupleElement(p, 0);
    Instruction* x = b.GetTupleElement(p, 1);
    Instruction* updated = b.Make(Op::DynamicUpdateSlice, {x, b.Reshape(i, {1}), i});
    Instruction* next = b.Make(Op::Add, {i, b.Scalar(kS32, 1)});
    b.Make(Op::Tuple, {next, updated});
    EXPECT_TRUE(b.Finish().ok());
    Builder e(module_.AddComputation("main"));
    Instruction* init = e.Make(Op::Tuple, {e.Scalar(kS32, 0), e.Splat(kS32, -1, {size})});
    e.Make(Op::While, {init}, NoAttrs{}, {c.computation(), b.computation()});
    EXPECT_TRUE(e.Finish().ok()) << e.status().ToString();
    return e.computation();
  }
};

TEST_F(EvaluatorTest, LoopUpdatesInPlace) {
  // Quadratic copying would take minutes here.
  const int64_t n = 20000;
  const Result<Literal> result = interpreter_.Evaluate(*CountingLoop(n, n), {});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->element(0).GetInt(0), n);
  EXPECT_EQ(result->element(1).GetInt(n - 1), n - 1);
}

TEST_F(EvaluatorTest, LoopLimit) {
  Computation* loop = CountingLoop(3, 4);
  interpreter_.options().max_loop_iterations = 2;
  const Status status = interpreter_.Evaluate(*loop, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.ToString().find("more than 2 iterations"), std::string::npos) << status.ToString();
  interpreter_.options().leaves_long_loops = true;
  const Result<Literal> left = interpreter_.Evaluate(*loop, {});
  ASSERT_TRUE(left.ok()) << left.status().ToString();
  EXPECT_EQ(left->element(0).GetInt(0), 2);
  interpreter_.options().leaves_long_loops = false;
  interpreter_.options().max_loop_iterations = 3;
  EXPECT_TRUE(interpreter_.Evaluate(*loop, {}).ok());
}

TEST_F(EvaluatorTest, EndlessLoopIsCancelled) {
  Computation* loop = CountingLoop(INT32_MAX, 4);
  int polls = 0;
  interpreter_.options().cancelled = [&polls] { return ++polls > 1000; };
  EXPECT_EQ(interpreter_.Evaluate(*loop, {}).status().code(), StatusCode::kCancelled);
}

TEST_F(EvaluatorTest, DeepCallsAreRefused) {
  Builder leaf(module_.AddComputation("leaf"));
  leaf.Parameter(0, kScalar);
  ASSERT_TRUE(leaf.Finish().ok());
  Computation* callee = leaf.computation();
  for (int i = 0; i < 1000; ++i) {
    Builder b(module_.AddComputation("level"));
    b.Make(Op::Call, {b.Parameter(0, kScalar)}, CallAttrs{}, {callee});
    ASSERT_TRUE(b.Finish().ok());
    callee = b.computation();
  }
  EXPECT_EQ(interpreter_.Evaluate(*callee, {{Literal::Scalar<int32_t>(1)}}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST_F(EvaluatorTest, ConditionalTakesTheLastBranchForABadIndex) {
  std::vector<Computation*> branches;
  for (int k = 0; k < 3; ++k) {
    Builder b(module_.AddComputation("branch"));
    b.Make(Op::Add, {b.Parameter(0, kScalar), b.Scalar(kS32, k)});
    ASSERT_TRUE(b.Finish().ok());
    branches.push_back(b.computation());
  }
  const Literal x = Literal::Scalar<int32_t>(10);
  auto choose = [&](int32_t i) {
    return Eval(Op::Conditional, {Literal::Scalar<int32_t>(i), x, x, x}, NoAttrs{}, branches).GetInt(0);
  };
  EXPECT_EQ(choose(0), 10);
  EXPECT_EQ(choose(2), 12);
  EXPECT_EQ(choose(-1), 12);
  EXPECT_EQ(choose(3), 12);
  const std::vector<Computation*> two(branches.begin(), branches.begin() + 2);
  EXPECT_EQ(Eval(Op::Conditional, {Literal::Scalar<bool>(true), x, x}, NoAttrs{}, two).GetInt(0), 10);
}

TEST_F(EvaluatorTest, WrongArgumentsAreRefused) {
  Computation* add = Binary(Op::Add, kS32);
  EXPECT_EQ(interpreter_.Evaluate(*add, {}).status().code(), StatusCode::kInvalidArgument);
  const std::vector<Literal> wrong = {Literal::Scalar<float>(1), Literal::Scalar<int32_t>(1)};
  EXPECT_EQ(interpreter_.Evaluate(*add, wrong).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EvaluatorTest, StateOfTheGenerator) {
  const Shape shape = Shape::Array(ElementType::U64, {2});
  Builder b(module_.AddComputation("state"));
  b.MakeWithShape(Op::RngGetAndUpdateState, shape, {}, RngStateAttrs{5});
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  EXPECT_EQ(interpreter_.Evaluate(*b.computation(), {})->GetInt(0), 0x7012395);
  EXPECT_EQ(interpreter_.Evaluate(*b.computation(), {})->GetInt(0), 0x7012395 + 5);
}

// ---- grids

class GridTest : public OpTest {
 protected:
  Result<std::vector<Literal>> Run(Computation* program, int64_t replicas, int64_t partitions) {
    GridRun run{replicas, partitions, {}, {}, {}};
    for (int64_t i = 0; i < replicas * partitions; ++i) {
      run.programs.push_back(program);
      run.arguments.push_back({Vector(kS32, {static_cast<double>(10 * i), static_cast<double>(10 * i + 1)})});
    }
    return RunGrid({}, run);
  }
  Computation* Program(Op op, Attrs attrs, std::vector<Computation*> called, const Shape& result) {
    Builder b(module_.AddComputation("process"));
    Instruction* x = b.Parameter(0, Shape::Array(kS32, {2}));
    b.Make(op, std::vector<Instruction*>{x}, std::move(attrs), called, &result);
    EXPECT_TRUE(b.Finish().ok()) << b.status().ToString();
    return b.computation();
  }
  static CollectiveAttrs Groups(std::vector<std::vector<int64_t>> lists) {
    CollectiveAttrs a;
    a.replica_groups.lists = std::move(lists);
    return a;
  }
};

TEST_F(GridTest, AllReduceByGroup) {
  const auto r =
      Run(Program(Op::AllReduce, Groups({{0, 2}, {1, 3}}), {Binary(Op::Add, kS32)}, Shape::Array(kS32, {2})), 4, 1);
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  EXPECT_EQ((*r)[0], Vector(kS32, {20, 22}));
  EXPECT_EQ((*r)[3], Vector(kS32, {40, 42}));
}

TEST_F(GridTest, AllGatherReduceScatterAllToAll) {
  CollectiveAttrs a = Groups({{1, 0}});
  a.dimensions = {0};
  a.has_dimensions = true;
  auto r = Run(Program(Op::AllGather, a, {}, Shape::Array(kS32, {4})), 2, 1);
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  EXPECT_EQ((*r)[0], Vector(kS32, {10, 11, 0, 1}));
  r = Run(Program(Op::ReduceScatter, a, {Binary(Op::Add, kS32)}, Shape::Array(kS32, {1})), 2, 1);
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  EXPECT_EQ((*r)[1], Vector(kS32, {10}));
  EXPECT_EQ((*r)[0], Vector(kS32, {12}));
  r = Run(Program(Op::AllToAll, a, {}, Shape::Array(kS32, {2})), 2, 1);
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  EXPECT_EQ((*r)[1], Vector(kS32, {10, 0}));
}

TEST_F(GridTest, CollectivePermute) {
  PermuteAttrs a;
  a.source_target_pairs = {{0, 1}, {1, 2}};
  const auto r = Run(Program(Op::CollectivePermute, a, {}, Shape::Array(kS32, {2})), 3, 1);
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  EXPECT_EQ((*r)[0], Vector(kS32, {0, 0}));
  EXPECT_EQ((*r)[2], Vector(kS32, {10, 11}));
}

TEST_F(GridTest, WaitingForEachOtherIsAnError) {
  // Process 0 alone takes part: it waits for one that has ended.
  Computation* reduce = Program(Op::AllReduce, Groups({{0, 1}}), {Binary(Op::Add, kS32)}, Shape::Array(kS32, {2}));
  Builder b(module_.AddComputation("idle"));
  b.Parameter(0, Shape::Array(kS32, {2}));
  ASSERT_TRUE(b.Finish().ok());
  GridRun run{2, 1, {reduce, b.computation()}, {{Vector(kS32, {1, 2})}, {Vector(kS32, {1, 2})}}, {}};
  EXPECT_EQ(RunGrid({}, run).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace strop::interp
