#include "strop/rewrite/match.h"

#include <gtest/gtest.h>

#include "strop/ir/builder.h"
#include "strop/ir/verifier.h"

namespace strop::match {
namespace {

class MatchTest : public testing::Test {
 protected:
  MatchTest() : module_("m"), b_(module_.AddComputation("main")) {
    module_.set_entry(b_.computation());
    x_ = b_.Parameter(0, Shape::Array(ElementType::F32, {2, 3}), "x");
    c_ = b_.Scalar(ElementType::F32, 2);
    splat_ = b_.Broadcast(c_, {2, 3}, {});
    product_ = b_.Make(Op::Multiply, {splat_, x_});
  }

  Module module_;
  Builder b_;
  Instruction *x_, *c_, *splat_, *product_;
};

TEST_F(MatchTest, BindsInBothOrdersOfACommutativeOp) {
  Instruction *x = nullptr, *c = nullptr, *all = nullptr;
  ASSERT_TRUE(Match(product_, Multiply(Any(&x), Broadcast(Constant(&c)), &all)));
  EXPECT_EQ(x, x_);
  EXPECT_EQ(c, c_);
  EXPECT_EQ(all, product_);
  EXPECT_FALSE(Match(product_, Add(Any(), Any())));
  EXPECT_FALSE(Match(product_, Multiply(Any(), Negate())));
  Instruction* difference = b_.Make(Op::Subtract, {x_, splat_});
  EXPECT_FALSE(Match(difference, Subtract(Broadcast(), Any())));  // not commutative
}

TEST_F(MatchTest, Splat) {
  Instruction* c = nullptr;
  EXPECT_TRUE(Match(product_, Multiply(Splat(&c), Any())));
  EXPECT_EQ(c, c_);
  EXPECT_TRUE(Match(c_, Splat()));
  EXPECT_FALSE(Match(x_, Splat()));
}

TEST_F(MatchTest, AnyOfWhereOfType) {
  Instruction* which = nullptr;
  EXPECT_TRUE(Match(product_, AnyOf(Add(Any(), Any(), &which), Multiply(Any(), Any(), &which))));
  EXPECT_EQ(which, product_);
  EXPECT_FALSE(Match(x_, AnyOf(Add(), Multiply())));
  const auto used_once = [](const Instruction* i) { return i->use_count() == 1; };
  EXPECT_TRUE(Match(product_, Multiply(Where(Parameter(), used_once), Any())));
  EXPECT_FALSE(Match(product_, Where(Multiply(), used_once)));
  EXPECT_TRUE(Match(product_, OfType(ElementType::F32, Multiply())));
  EXPECT_FALSE(Match(product_, OfType(ElementType::S32, Multiply())));
}

TEST_F(MatchTest, CustomCallTo) {
  CustomCallAttrs attrs;
  attrs.target = "mine";
  Instruction* call = b_.MakeWithShape(Op::CustomCall, x_->shape(), {x_}, attrs);
  EXPECT_TRUE(Match(call, CustomCallTo("mine")));
  EXPECT_FALSE(Match(call, CustomCallTo("yours")));
  EXPECT_FALSE(Match(x_, CustomCallTo("mine")));
}

// PA-04: users, metadata and sharding go to the new instruction; what is dead goes away.
TEST_F(MatchTest, ReplaceWithNewInstruction) {
  OpMetadata metadata;
  metadata.op_name = "jit(f)/mul";
  metadata.source_line = 7;
  product_->set_metadata(metadata);
  product_->set_sharding(Sharding());
  Instruction* user = b_.Make(Op::Negate, {product_});
  Instruction* other = b_.Make(Op::Add, {product_, user});
  ASSERT_TRUE(b_.Finish(other).ok());
  Instruction* made = b_.computation()->ReplaceWithNew(product_, Op::Add, product_->shape(), {x_, x_});
  EXPECT_EQ(user->operand(0), made);
  EXPECT_EQ(other->operand(0), made);
  EXPECT_EQ(made->metadata().op_name, "jit(f)/mul");
  EXPECT_EQ(made->metadata().source_line, 7);
  ASSERT_NE(made->sharding(), nullptr);
  EXPECT_EQ(*made->sharding(), Sharding());
  EXPECT_EQ(module_.instruction_count(), 4);  // the constant and its broadcast are gone
  EXPECT_TRUE(VerifyModule(module_).ok());
}

}  // namespace
}  // namespace strop::match
