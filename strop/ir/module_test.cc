#include "strop/ir/module.h"

#include <gtest/gtest.h>

#include "strop/ir/builder.h"
#include "strop/ir/verifier.h"

namespace strop {
namespace {

const Shape kScalar = Shape::Scalar(ElementType::F32);

struct Graph {
  Module module{"m"};
  Computation* entry = module.AddComputation("main");
  Builder b{entry};
  Instruction* p = nullptr;
  Graph() {
    module.set_entry(entry);
    p = b.Parameter(0, kScalar, "p");
  }
};

TEST(Instruction, UseEdgesMirrorOperands) {
  Graph g;
  Instruction* twice = g.b.Make(Op::Add, {g.p, g.p});
  Instruction* other = g.b.Make(Op::Negate, {g.p});
  EXPECT_EQ(g.p->use_count(), 3);
  EXPECT_EQ(g.p->users(), (std::vector<Instruction*>{twice, other}));
  twice->SetOperand(0, other);
  EXPECT_EQ(g.p->use_count(), 2);
  EXPECT_EQ(other->use_count(), 1);
  Instruction* tuple = g.b.Make(Op::Tuple, {g.p, other, g.p});
  tuple->RemoveOperand(0);
  EXPECT_EQ(tuple->operands(), (std::vector<Instruction*>{other, g.p}));
  for (Instruction* i : {g.p, other})
    for (const Use& u : i->uses()) EXPECT_EQ(u.user->operand(u.operand_number), i);
}

TEST(Instruction, ReplaceAllUsesKeepsUsesInTheReplacement) {
  Graph g;
  Instruction* user = g.b.Make(Op::Negate, {g.p});
  g.entry->set_root(g.p);
  Instruction* wrapped = g.b.Make(Op::Abs, {g.p});
  g.p->ReplaceAllUsesWith(wrapped);
  EXPECT_EQ(user->operand(0), wrapped);
  EXPECT_EQ(wrapped->operand(0), g.p);
  EXPECT_EQ(g.entry->root(), wrapped);
}

TEST(Computation, ReplaceRemovesWhatBecomesDead) {
  Graph g;
  Instruction* a = g.b.Make(Op::Negate, {g.p});
  Instruction* b = g.b.Make(Op::Abs, {a});
  Instruction* root = g.b.Make(Op::Exp, {b}, AccuracyAttrs{});
  g.entry->set_root(root);
  g.entry->Replace(b, g.p);
  EXPECT_EQ(root->operand(0), g.p);
  EXPECT_EQ(g.entry->instruction_count(), 2);
  EXPECT_EQ(VerifyModule(g.module).ToString(), "Ok");
}

TEST(Computation, RemoveJoinsControlEdges) {
  Graph g;
  Instruction* a = g.b.Make(Op::Negate, {g.p});
  Instruction* b = g.b.Make(Op::Negate, {g.p});
  Instruction* c = g.b.Make(Op::Negate, {g.p});
  g.entry->set_root(c);
  b->AddControlPredecessor(a);
  c->AddControlPredecessor(b);
  g.entry->Remove(b);
  EXPECT_EQ(c->control_predecessors(), std::vector<Instruction*>{a});
  EXPECT_EQ(a->control_successors(), std::vector<Instruction*>{c});
}

TEST(Computation, RemoveParameterRenumbers) {
  Graph g;
  Instruction* q = g.b.Parameter(1, kScalar, "q");
  Instruction* r = g.b.Parameter(2, kScalar, "r");
  g.entry->set_root(g.b.Make(Op::Add, {g.p, r}));
  g.entry->RemoveParameter(1);
  EXPECT_EQ(g.entry->parameter_count(), 2);
  EXPECT_EQ(r->parameter_number(), 1);
  EXPECT_EQ(VerifyModule(g.module).ToString(), "Ok");
  (void)q;
}

TEST(Module, NamesAreUnique) {
  Graph g;
  EXPECT_EQ(g.b.Make(Op::Negate, {g.p})->name(), "negate");
  EXPECT_EQ(g.b.Make(Op::Negate, {g.p})->name(), "negate.1");
  EXPECT_EQ(g.entry->Add(Op::Negate, kScalar, {g.p}, NoAttrs{}, "negate.1")->name(), "negate.2");
  EXPECT_EQ(g.module.AddComputation("main")->name(), "main.1");
}

TEST(Module, CloneIsDeepAndKeepsOrder) {
  Graph g;
  Computation* callee = g.module.AddComputation("callee");
  Builder cb(callee);
  cb.Make(Op::Negate, {cb.Parameter(0, kScalar)});
  ASSERT_TRUE(cb.Finish().ok());
  Instruction* call = g.b.Make(Op::Call, {g.p}, CallAttrs{}, {callee});
  Instruction* last = g.b.Make(Op::Abs, {g.p});
  last->AddControlPredecessor(call);
  g.entry->set_root(call);
  std::unique_ptr<Module> copy = g.module.Clone();
  EXPECT_EQ(VerifyModule(*copy).ToString(), "Ok");
  EXPECT_EQ(copy->instruction_count(), g.module.instruction_count());
  EXPECT_NE(copy->entry()->root()->to_apply(), callee);
  EXPECT_EQ(copy->entry()->root()->to_apply()->name(), "callee");
  EXPECT_EQ(copy->entry()->last()->control_predecessors().size(), 1u);
  Computation* within = g.module.CloneComputation(*g.entry, "again");
  EXPECT_EQ(within->name(), "again");
  EXPECT_NE(within->root()->to_apply(), callee);
}

TEST(Module, CallOrder) {
  Graph g;
  Computation* callee = g.module.AddComputation("callee");
  Builder cb(callee);
  cb.Parameter(0, kScalar);
  ASSERT_TRUE(cb.Finish().ok());
  g.b.Make(Op::Call, {g.p}, CallAttrs{}, {callee});
  ASSERT_TRUE(g.b.Finish().ok());
  EXPECT_EQ(g.module.PostOrder(), (std::vector<Computation*>{callee, g.entry}));
}

// A chain of 400,000 instructions: nothing may recurse along it.
TEST(Module, DeepGraphs) {
  Graph g;
  constexpr int kDepth = 400000;
  Instruction* at = g.p;
  for (int i = 0; i < kDepth; ++i) at = g.entry->Add(Op::Negate, kScalar, {at});
  g.entry->set_root(at);
  EXPECT_EQ(g.entry->PostOrder().size(), static_cast<size_t>(kDepth) + 1);
  EXPECT_EQ(VerifyModule(g.module).ToString(), "Ok");
  std::unique_ptr<Module> copy = g.module.Clone();
  EXPECT_EQ(copy->instruction_count(), kDepth + 1);
  g.entry->Replace(at, g.p);
  EXPECT_EQ(g.entry->instruction_count(), 1);
}

TEST(Module, DeepCallsAndBroadcasts) {
  Module m("deep");
  Computation* callee = nullptr;
  for (int i = 0; i < 100000; ++i) {
    Computation* c = m.AddComputation("c");
    Instruction* root = c->AddParameter(0, kScalar);
    if (callee) {
      root = c->Add(Op::Call, kScalar, {root}, CallAttrs{});
      root->set_called({callee});
    }
    c->set_root(root);
    callee = c;
  }
  m.set_entry(callee);
  EXPECT_FALSE(callee->root()->HasSideEffect());
  EXPECT_EQ(m.PostOrder().size(), 100000u);
  EXPECT_EQ(VerifyModule(m).ToString(), "Ok");

  Instruction* splat = callee->AddConstant(Literal::Scalar(1.0f));
  for (int i = 0; i < 100000; ++i) splat = callee->Add(Op::Broadcast, kScalar, {splat}, DimensionsAttrs{});
  EXPECT_TRUE(splat->IsSplat(1.0));
}

}  // namespace
}  // namespace strop
