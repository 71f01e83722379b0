// Who meets whom in a collective, and what its operands are cut into.
#include "strop/plan/collective.h"

#include <gtest/gtest.h>

#include "strop/plan/plan.h"

namespace strop {
namespace {

class CollectiveTest : public testing::Test {
 protected:
  CollectiveTest() {
    add_ = m_.AddComputation("add");
    const Shape scalar = Shape::Scalar(ElementType::F32);
    Instruction* a = add_->AddParameter(0, scalar);
    Instruction* b = add_->AddParameter(1, scalar);
    add_->set_root(add_->Add(Op::Add, scalar, {a, b}));
    entry_ = m_.AddComputation("main");
    m_.set_entry(entry_);
    x_ = entry_->AddParameter(0, Shape::Array(ElementType::F32, {2, 12}));
    m_.config().replica_count = 2;
    m_.config().num_partitions = 2;
  }
  Instruction* Make(Op op, const Shape& shape, Attrs attrs) {
    Instruction* made = entry_->Add(op, shape, {x_}, std::move(attrs));
    if (op == Op::AllReduce || op == Op::ReduceScatter) made->set_called({add_});
    entry_->set_root(made);
    return made;
  }
  static CollectiveAttrs In(std::vector<std::vector<int64_t>> lists, int64_t channel = 0, bool global = false,
                            Dims dimensions = {}) {
    CollectiveAttrs attrs;
    attrs.replica_groups.lists = std::move(lists);
    attrs.channel_id = channel;
    attrs.use_global_device_ids = global;
    attrs.has_dimensions = !dimensions.empty();
    attrs.dimensions = std::move(dimensions);
    return attrs;
  }

  using Groups = std::vector<std::vector<int32_t>>;
  Module m_{"m"};
  Computation *add_, *entry_;
  Instruction* x_;
};

TEST_F(CollectiveTest, NumbersOfGroups) {
  const Shape same = x_->shape();
  auto groups = [&](Op op, CollectiveAttrs attrs) {
    Result<CollectiveStep> step = MakeCollectiveStep(*Make(op, same, std::move(attrs)), m_.config());
    EXPECT_TRUE(step.ok()) << step.status().ToString();
    return step.ok() ? step->groups : Groups();
  };
  EXPECT_EQ(groups(Op::AllReduce, In({})), (Groups{{0, 2}, {1, 3}}));         // replicas, a partition at a time
  EXPECT_EQ(groups(Op::AllReduce, In({{0, 1}}, 1)), (Groups{{0, 1, 2, 3}}));  // replicas with their partitions
  EXPECT_EQ(groups(Op::AllReduce, In({{3, 0}, {1, 2}}, 1, true)), (Groups{{3, 0}, {1, 2}}));
  EXPECT_EQ(groups(Op::AllToAll, In({{1, 0}}, 1, false, {1})), (Groups{{1, 0}, {3, 2}}));  // partitions
  Result<CollectiveStep> outside = MakeCollectiveStep(*Make(Op::AllReduce, same, In({{0, 2}})), m_.config());
  EXPECT_EQ(outside.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(CollectiveTest, PartsOfOperands) {
  auto operand = [&](Op op, const Shape& shape, CollectiveAttrs attrs) {
    Result<CollectiveStep> step = MakeCollectiveStep(*Make(op, shape, std::move(attrs)), m_.config());
    EXPECT_TRUE(step.ok()) << step.status().ToString();
    return std::pair(step->operands.at(0).outer, step->operands.at(0).block);
  };
  using Parts = std::pair<int64_t, int64_t>;
  const ElementType f32 = ElementType::F32;
  EXPECT_EQ(operand(Op::AllReduce, x_->shape(), In({})), Parts(1, 24));
  EXPECT_EQ(operand(Op::AllGather, Shape::Array(f32, {2, 24}), In({}, 0, false, {1})), Parts(2, 12));
  EXPECT_EQ(operand(Op::ReduceScatter, Shape::Array(f32, {2, 6}), In({}, 0, false, {1})), Parts(2, 6));
  EXPECT_EQ(operand(Op::AllToAll, x_->shape(), In({}, 0, false, {1})), Parts(2, 6));
}

TEST_F(CollectiveTest, Permutes) {
  PermuteAttrs attrs;
  attrs.source_target_pairs = {{0, 1}};
  Result<CollectiveStep> step = MakeCollectiveStep(*Make(Op::CollectivePermute, x_->shape(), attrs), m_.config());
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_EQ(step->source_target, (std::vector<std::pair<int32_t, int32_t>>{{0, 2}, {1, 3}}));
  attrs.channel_id = 1;
  step = MakeCollectiveStep(*Make(Op::CollectivePermute, x_->shape(), attrs), m_.config());
  EXPECT_EQ(step->source_target, (std::vector<std::pair<int32_t, int32_t>>{{0, 1}, {2, 3}}));
}

TEST_F(CollectiveTest, PlansAreAcceptedByTheRuntime) {
  Make(Op::AllReduce, x_->shape(), In({}));
  Result<Plan> plan = BuildPlan(m_, TargetInfo{.name = "test"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(plan->kernels.empty());
  Result<std::shared_ptr<const Executable>> executable = Executable::Create(plan->spec);
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  EXPECT_TRUE((*executable)->may_block());
}

TEST_F(CollectiveTest, OtherComputationsAreRefused) {
  const Shape scalar = Shape::Scalar(ElementType::F32);
  Computation* subtract = m_.AddComputation("subtract");
  Instruction* a = subtract->AddParameter(0, scalar);
  Instruction* b = subtract->AddParameter(1, scalar);
  subtract->set_root(subtract->Add(Op::Subtract, scalar, {a, b}));
  Instruction* reduce = Make(Op::AllReduce, x_->shape(), In({}));
  reduce->set_called({subtract});
  EXPECT_EQ(MakeCollectiveStep(*reduce, m_.config()).status().code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace strop
