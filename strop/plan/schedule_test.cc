// The order of steps: legal, never with a higher peak than the written one, the same every time.
#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "strop/ir/verifier.h"
#include "strop/plan/plan.h"

namespace strop {
namespace {

const ElementType kF32 = ElementType::F32;

// Kernels of one to three operands among the last few, of sizes that differ by a factor of 1000.
std::unique_ptr<Module> RandomModule(uint32_t seed, int size) {
  auto m = std::make_unique<Module>("random");
  std::mt19937 random(seed);
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  std::vector<Instruction*> values = {c->AddParameter(0, Shape::Array(kF32, {1000}))};
  for (int n = 0; n < size; ++n) {
    const Shape shape = Shape::Array(kF32, {int64_t{1} << (random() % 10 + 4)});
    const int64_t operands = 1 + static_cast<int64_t>(random() % 3);
    std::vector<Instruction*> picked;
    for (int64_t k = 0; k < operands; ++k) picked.push_back(values[random() % values.size()]);
    CustomCallAttrs attrs;
    attrs.target = "f";
    attrs.has_side_effect = random() % 20 == 0;
    values.push_back(c->Add(Op::CustomCall, shape, picked, attrs));
    if (values.size() > 40) values.erase(values.begin() + static_cast<int64_t>(random() % values.size()));
  }
  Shape result = Shape::Tuple({values.back()->shape(), values.front()->shape()});
  c->set_root(c->Add(Op::Tuple, result, {values.back(), values.front()}));
  return m;
}

TEST(Schedule, IsLegalAndNeverWorse) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::unique_ptr<Module> m = RandomModule(seed, 200);
    std::vector<std::string> effects;
    for (Instruction* i : m->entry()->instructions())
      if (i->HasSideEffect()) effects.push_back(i->name());
    std::vector<ScheduleDecision> decisions;
    ASSERT_TRUE(ScheduleModule(*m, &decisions).ok());
    ASSERT_EQ(decisions.size(), 1u);
    EXPECT_LE(decisions[0].peak, decisions[0].written_peak);
    std::unordered_map<const Instruction*, bool> done;
    std::vector<std::string> ordered;
    for (Instruction* i : m->entry()->instructions()) {
      for (Instruction* o : i->operands()) EXPECT_TRUE(done[o]) << i->name();
      done[i] = true;
      if (i->HasSideEffect()) ordered.push_back(i->name());
    }
    EXPECT_EQ(ordered, effects);
    EXPECT_EQ(done.size(), static_cast<size_t>(m->entry()->instruction_count()));
    const Status verified = VerifyModule(*m);
    EXPECT_TRUE(verified.ok()) << verified.ToString();
    std::unique_ptr<Module> again = RandomModule(seed, 200);
    ASSERT_TRUE(ScheduleModule(*again).ok());
    EXPECT_EQ(again->ToString(), m->ToString());
    const int64_t peak = decisions[0].peak;
    decisions.clear();
    ASSERT_TRUE(ScheduleModule(*again, &decisions).ok());  // the order is the written one now
    EXPECT_EQ(decisions[0].written_peak, peak);
  }
}

// Of a loop over (x, y) with y' = sum(x) and x' = the negative of x: x is rewritten in place, without a copy, if y' is
// computed before.
TEST(Schedule, CarriesAreRewrittenWhenNobodyReadsThemAnyMore) {
  Module m("loop");
  Computation* condition = m.AddComputation("condition");
  Computation* body = m.AddComputation("body");
  Computation* entry = m.AddComputation("main");
  m.set_entry(entry);
  const Shape wide = Shape::Array(kF32, {100000}), other = Shape::Array(kF32, {2000});
  const Shape state = Shape::Tuple({wide, other});
  auto element = [](Computation* c, Instruction* tuple, int64_t k) {
    return c->Add(Op::GetTupleElement, tuple->shape().element(k), {tuple}, GetTupleElementAttrs{k});
  };
  CustomCallAttrs call;
  call.target = "f";
  Instruction* p = condition->AddParameter(0, state);
  condition->set_root(condition->Add(Op::CustomCall, Shape::Scalar(ElementType::Pred), {p}, call));
  p = body->AddParameter(0, state);
  Instruction* x = element(body, p, 0);
  Instruction* negated = body->Add(Op::Negate, wide, {x});
  Instruction* sum = body->Add(Op::CustomCall, other, {x}, call);
  body->set_root(body->Add(Op::Tuple, state, {negated, sum}));
  p = entry->AddParameter(0, state);
  Instruction* loop = entry->Add(Op::While, state, {p});
  loop->set_called({condition, body});
  entry->set_root(loop);
  ASSERT_TRUE(ScheduleModule(m).ok());
  std::vector<Instruction*> steps;
  for (Instruction* i : body->instructions())
    if (i == negated || i == sum) steps.push_back(i);
  EXPECT_EQ(steps, (std::vector<Instruction*>{sum, negated}));
}

}  // namespace
}  // namespace strop
