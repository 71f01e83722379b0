// Plans of small modules: what is copied, what shares memory, where outputs live.
#include "strop/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strop {
namespace {

const ElementType kF32 = ElementType::F32;

TargetInfo Target() {
  TargetInfo t;
  t.name = "test";
  return t;
}

int64_t Copies(const Plan& plan) {
  int64_t n = 0;
  for (const Program& p : plan.spec.programs)
    n += std::count_if(p.steps.begin(), p.steps.end(), [](const Step& s) { return s.kind() == StepKind::kCopy; });
  return n;
}

Plan MakePlan(Module& m) {
  Result<Plan> plan = BuildPlan(m, Target());
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  // Whatever the plan says must be accepted by the runtime.
  ExecutableSpec spec = plan->spec;
  for (const PlannedKernel& k : plan->kernels) {
    HostStep host;
    host.fn = [](const HostCall&) { return OkStatus(); };
    spec.programs[k.program].steps[k.step].body = host;
  }
  auto executable = Executable::Create(std::move(spec));
  EXPECT_TRUE(executable.ok()) << executable.status().ToString();
  return *std::move(plan);
}

struct LoopModule {
  Module m{"loop"};
  Computation* condition = m.AddComputation("condition");
  Computation* body = m.AddComputation("body");
  Computation* entry = m.AddComputation("main");
  Shape counter = Shape::Scalar(ElementType::S32);
  Shape array = Shape::Array(kF32, {100, 4});
  Shape row = Shape::Array(kF32, {1, 4});
  Shape state = Shape::Tuple({counter, array});
  LoopModule() {
    Instruction* p = condition->AddParameter(0, state);
    Instruction* i = Gte(condition, p, 0);
    Instruction* limit = condition->AddConstant(Literal::Scalar<int32_t>(100));
    condition->set_root(condition->Add(Op::Compare, Shape::Scalar(ElementType::Pred), {i, limit},
                                       CompareAttrs{CompareDirection::Lt, {}}));
    m.set_entry(entry);
  }
  static Instruction* Gte(Computation* c, Instruction* tuple, int64_t index) {
    return c->Add(Op::GetTupleElement, tuple->shape().element(index), {tuple}, GetTupleElementAttrs{index});
  }
  // while over (0, array parameter); result: the array
  enum class Gift { kNone, kToResult, kToAny };
  void Finish(bool donate) { Finish(donate ? Gift::kToResult : Gift::kNone); }
  void Finish(Gift gift) {
    Instruction* x = entry->AddParameter(0, array);
    Instruction* zero = entry->AddConstant(Literal::Scalar<int32_t>(0));
    Instruction* init = entry->Add(Op::Tuple, state, {zero, x});
    Instruction* loop = entry->Add(Op::While, state, {init});
    loop->set_called({condition, body});
    entry->set_root(Gte(entry, loop, 1));
    if (gift == Gift::kToResult) m.config().input_output_alias.push_back({{}, 0, {}, false});
    if (gift == Gift::kToAny) m.config().buffer_donors.push_back({0, {}});
  }
};

TEST(Plan, LoopUpdatesInPlace) {
  using Gift = LoopModule::Gift;
  for (Gift gift : {Gift::kNone, Gift::kToResult, Gift::kToAny}) {
    const bool donate = gift != Gift::kNone;
    LoopModule l;
    Instruction* p = l.body->AddParameter(0, l.state);
    Instruction* i = l.Gte(l.body, p, 0);
    Instruction* a = l.Gte(l.body, p, 1);
    Instruction* zero = l.body->AddConstant(Literal::Scalar<int32_t>(0));
    Instruction* r = l.body->Add(Op::DynamicSlice, l.row, {a, i, zero}, DynamicSliceAttrs{{1, 4}});
    Instruction* e = l.body->Add(Op::Exp, l.row, {r}, AccuracyAttrs{});
    Instruction* u = l.body->Add(Op::DynamicUpdateSlice, l.array, {a, e, i, zero});
    Instruction* one = l.body->AddConstant(Literal::Scalar<int32_t>(1));
    Instruction* next = l.body->Add(Op::Add, l.counter, {i, one});
    l.body->set_root(l.body->Add(Op::Tuple, l.state, {next, u}));
    l.Finish(gift);
    Plan plan = MakePlan(l.m);
    // The counter's start is a constant, and (not donated) the caller's array may not be written: one copy each, none
    // in the body.
    EXPECT_EQ(Copies(plan), donate ? 1 : 2) << plan.ToString();
    for (size_t n = 1; n < plan.spec.programs.size(); ++n)
      for (const Step& s : plan.spec.programs[n].steps) EXPECT_NE(s.kind(), StepKind::kCopy) << plan.ToString();
    if (donate) {
      EXPECT_EQ(plan.spec.outputs[0].source, OutputSource::kAliasParameter);
    }
  }
}

TEST(Plan, UpdateOfAValueThatIsReadLaterCopies) {
  LoopModule l;
  Instruction* p = l.body->AddParameter(0, l.state);
  Instruction* i = l.Gte(l.body, p, 0);
  Instruction* a = l.Gte(l.body, p, 1);
  Instruction* zero = l.body->AddConstant(Literal::Scalar<int32_t>(0));
  Instruction* r = l.body->Add(Op::DynamicSlice, l.row, {a, i, zero}, DynamicSliceAttrs{{1, 4}});
  Instruction* u = l.body->Add(Op::DynamicUpdateSlice, l.array, {a, r, i, zero});
  Instruction* sum = l.body->Add(Op::Add, l.array, {u, a});  // a is read after the update
  Instruction* one = l.body->AddConstant(Literal::Scalar<int32_t>(1));
  Instruction* next = l.body->Add(Op::Add, l.counter, {i, one});
  l.body->set_root(l.body->Add(Op::Tuple, l.state, {next, sum}));
  l.Finish(false);
  Plan plan = MakePlan(l.m);
  EXPECT_EQ(plan.copies.size(), static_cast<size_t>(Copies(plan)));
  const auto read_later = [](const PlannedCopy& c) {
    return c.why.find("updates it, and it is read later") != c.why.npos;
  };
  EXPECT_EQ(std::count_if(plan.copies.begin(), plan.copies.end(), read_later), 1) << plan.ToString();
}

TEST(Plan, SwappedCarriesGoThroughACopy) {
  LoopModule l;
  Shape pair = Shape::Tuple({l.array, l.array});
  Computation* condition = l.m.AddComputation("c2");
  condition->AddParameter(0, pair);
  condition->set_root(condition->AddConstant(Literal::Scalar(false)));
  Computation* body = l.m.AddComputation("b2");
  Instruction* p = body->AddParameter(0, pair);
  Instruction* a = l.Gte(body, p, 0);
  Instruction* b = l.Gte(body, p, 1);
  body->set_root(body->Add(Op::Tuple, pair, {b, a}));
  Instruction* x = l.entry->AddParameter(0, pair);
  Instruction* loop = l.entry->Add(Op::While, pair, {x});
  loop->set_called({condition, body});
  l.entry->set_root(loop);
  Plan plan = MakePlan(l.m);
  EXPECT_EQ(Copies(plan), 2 + 3) << plan.ToString();
}

TEST(Plan, ElementwiseChainReusesMemoryAndWritesTheOutputDirectly) {
  Module m("chain");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  Shape s = Shape::Array(kF32, {1000});
  Instruction* x = c->AddParameter(0, s);
  Instruction* at = x;
  for (int n = 0; n < 4; ++n) at = c->Add(Op::Exp, s, {at}, AccuracyAttrs{});
  c->set_root(at);
  Plan plan = MakePlan(m);
  EXPECT_EQ(plan.spec.temp_bytes, 0) << plan.ToString();
  EXPECT_EQ(Copies(plan), 0);
}

// A result that is an argument or another result is a copy of it; that of a donated argument is the argument.
TEST(Plan, OutputsThatAreInputsAreCopies) {
  Module m("forward");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  Shape s = Shape::Array(kF32, {8});
  Instruction* x = c->AddParameter(0, s);
  Instruction* e = c->Add(Op::Exp, s, {x}, AccuracyAttrs{});
  c->set_root(c->Add(Op::Tuple, Shape::Tuple({s, s, s}), {x, e, e}));
  Plan plan = MakePlan(m);
  for (const OutputSpec& output : plan.spec.outputs) EXPECT_EQ(output.source, OutputSource::kFresh);
  EXPECT_EQ(Copies(plan), 2) << plan.ToString();
  m.config().input_output_alias.push_back({{0}, 0, {}, false});
  Plan donated = MakePlan(m);
  EXPECT_EQ(donated.spec.outputs[0].source, OutputSource::kAliasParameter);
  EXPECT_EQ(Copies(donated), 1) << donated.ToString();
}

// Who is given away without a result chooses one of the same shape before others of as many bytes.
TEST(Plan, DonatedToAResultOfAnotherShape) {
  Module m("reshape");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  const Shape flat = Shape::Array(kF32, {8}), square = Shape::Array(kF32, {4, 2});
  Instruction* x = c->AddParameter(0, flat);
  Instruction* y = c->AddParameter(1, square);
  Instruction* turned = c->Add(Op::Reshape, square, {x});
  Instruction* other = c->Add(Op::Exp, square, {y}, AccuracyAttrs{});
  c->set_root(c->Add(Op::Tuple, Shape::Tuple({square, square}), {other, turned}));
  m.config().buffer_donors = {{0, {}}, {1, {}}};
  const Plan plan = MakePlan(m);
  EXPECT_EQ(plan.spec.outputs[0].source, OutputSource::kAliasParameter);
  EXPECT_EQ(plan.spec.outputs[0].index, 1);
  EXPECT_TRUE(plan.spec.parameters[0].given_away);
  EXPECT_TRUE(plan.spec.parameters[1].given_away);
  EXPECT_EQ(Copies(plan), 0) << plan.ToString();
}

// What is read to the end while the result is written has memory of its own, and goes all the same.
TEST(Plan, DonatedWithoutSharing) {
  Module m("turned");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  const Shape wide = Shape::Array(kF32, {2, 4}), tall = Shape::Array(kF32, {4, 2});
  Instruction* x = c->AddParameter(0, wide);
  c->set_root(c->Add(Op::Transpose, tall, {x}, DimensionsAttrs{Dims{1, 0}}));
  m.config().buffer_donors = {{0, {}}};
  const Plan plan = MakePlan(m);
  EXPECT_EQ(plan.spec.outputs[0].source, OutputSource::kFresh);
  EXPECT_TRUE(plan.spec.parameters[0].given_away);
}

TEST(Plan, BranchesWriteTheResultDirectly) {
  Module m("branches");
  Shape s = Shape::Array(kF32, {8});
  auto branch = [&](const char* name, Op op) {
    Computation* c = m.AddComputation(name);
    Instruction* p = c->AddParameter(0, s);
    c->set_root(c->Add(op, s, {p}, DefaultAttrs(op)));
    return c;
  };
  Computation* t = branch("t", Op::Exp);
  Computation* f = branch("f", Op::Negate);
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  Instruction* pred = c->AddParameter(0, Shape::Scalar(ElementType::Pred));
  Instruction* x = c->AddParameter(1, s);
  Instruction* r = c->Add(Op::Conditional, s, {pred, x, x}, ConditionalAttrs{});
  r->set_called({t, f});
  c->set_root(r);
  Plan plan = MakePlan(m);
  EXPECT_EQ(Copies(plan), 0) << plan.ToString();
  EXPECT_EQ(plan.spec.temp_bytes, 0);
}

TEST(Fusion, CheapIsRepeatedExpensiveIsNot) {
  Module m("fusion");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  Shape s = Shape::Array(kF32, {100});
  Instruction* x = c->AddParameter(0, s);
  Instruction* e = c->Add(Op::Exp, s, {x}, AccuracyAttrs{});
  Instruction* n = c->Add(Op::Negate, s, {e});
  Instruction* a = c->Add(Op::Sqrt, s, {n}, AccuracyAttrs{});
  Instruction* b = c->Add(Op::Sin, s, {n}, AccuracyAttrs{});
  c->set_root(c->Add(Op::Tuple, Shape::Tuple({s, s}), {a, b}));
  std::vector<FusionLimit> limits;
  ASSERT_TRUE(FuseModule(m, Target(), &limits).ok());
  std::vector<Op> ops;
  for (Instruction* i : c->instructions()) ops.push_back(i->op());
  // exp stays alone (two kernels need it), negate is computed in both.
  EXPECT_EQ(std::count(ops.begin(), ops.end(), Op::Fusion), 2);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), Op::Exp), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), Op::Negate), 0);
  ASSERT_EQ(limits.size(), 3u);
  EXPECT_EQ(limits[0].kernel, e);
  EXPECT_NE(limits[0].why.find("would both compute it, and it is expensive"), std::string::npos) << limits[0].why;
  EXPECT_EQ(limits[2].kernel->op(), Op::Fusion);
}

// The sum of windows of `shifts` slices of negate(x); slices of the same elements are one place.
int64_t NegatesInMemory(int shifts, bool same) {
  Module m("places");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  Shape s = Shape::Array(kF32, {100}), window = Shape::Array(kF32, {50});
  Instruction* n = c->Add(Op::Negate, s, {c->AddParameter(0, s)});
  Instruction* sum = nullptr;
  for (int k = 0; k < shifts; ++k) {
    const int64_t start = same ? 1 : k;
    Instruction* part = c->Add(Op::Slice, window, {n}, SliceAttrs{{{start, start + 50, 1}}});
    sum = sum ? c->Add(Op::Add, window, {sum, part}) : part;
  }
  c->set_root(sum);
  EXPECT_TRUE(FuseModule(m, Target()).ok());
  int64_t count = 0;
  for (Instruction* i : c->instructions()) count += i->op() == Op::Negate;
  return count;
}

TEST(Fusion, WhatManyPlacesNeedIsComputedOnce) {
  EXPECT_EQ(NegatesInMemory(3, false), 0);
  EXPECT_EQ(NegatesInMemory(7, false), 1);
  EXPECT_EQ(NegatesInMemory(7, true), 0);
}

// One broadcast constant serves many kernels: each makes its own, nobody reads it from memory.
TEST(Fusion, ConstantsAreNeverMaterialised) {
  Module m("constants");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  const Shape s = Shape::Array(kF32, {1000});
  Instruction* one = c->AddConstant(Literal::Scalar<float>(1));
  Instruction* ones = c->Add(Op::Broadcast, s, {one}, DimensionsAttrs{});
  std::vector<Instruction*> results;
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < 40; ++k) {
    Instruction* x = c->AddParameter(k, s);
    results.push_back(c->Add(Op::Add, s, {x, ones}));
    shapes.push_back(s);
  }
  c->set_root(c->Add(Op::Tuple, Shape::Tuple(shapes), results, NoAttrs{}));
  ASSERT_TRUE(FuseModule(m, Target()).ok());
  for (Instruction* i : c->instructions()) {
    EXPECT_NE(i->op(), Op::Broadcast);
    if (i->op() == Op::Fusion) {
      EXPECT_EQ(i->operand_count(), 1) << i->name();
    }
  }
}

TEST(Fusion, PaddingDoesNotNest) {
  Module m("pads");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  int64_t n = 4;
  Instruction* x = c->AddParameter(0, Shape::Array(kF32, {n}));
  Instruction* zero = c->AddConstant(Literal::Scalar<float>(0));
  for (int k = 0; k < 4; ++k) {
    x = c->Add(Op::Negate, x->shape(), {x});
    x = c->Add(Op::Pad, Shape::Array(kF32, {2 * n}), {x, zero}, PadAttrs{{{0, 1, 1}}});
    n *= 2;
  }
  c->set_root(x);
  ASSERT_TRUE(FuseModule(m, Target()).ok());
  int64_t fusions = 0;
  for (Instruction* i : c->instructions()) fusions += i->op() == Op::Fusion;
  EXPECT_GT(fusions, 1);
}

TEST(Fusion, UpdateThatReadsItsBufferElsewhereGetsItTwice) {
  Module m("dus");
  Computation* c = m.AddComputation("main");
  m.set_entry(c);
  Shape s = Shape::Array(kF32, {100}), one = Shape::Array(kF32, {1});
  Instruction* x = c->AddParameter(0, s);
  Instruction* i = c->AddParameter(1, Shape::Scalar(ElementType::S32));
  Instruction* j = c->AddParameter(2, Shape::Scalar(ElementType::S32));
  Instruction* r = c->Add(Op::DynamicSlice, one, {x, j}, DynamicSliceAttrs{{1}});
  Instruction* n = c->Add(Op::Negate, one, {r});
  c->set_root(c->Add(Op::DynamicUpdateSlice, s, {x, n, i}));
  ASSERT_TRUE(FuseModule(m, Target()).ok());
  Instruction* fusion = c->root();
  ASSERT_EQ(fusion->op(), Op::Fusion);
  int64_t buffers = 0;
  for (Instruction* o : fusion->operands()) buffers += o == x;
  EXPECT_EQ(buffers, 2);
  ASSERT_TRUE(ScheduleModule(m).ok());
  Plan plan = MakePlan(m);
  EXPECT_EQ(Copies(plan), 1);
}

}  // namespace
}  // namespace strop
