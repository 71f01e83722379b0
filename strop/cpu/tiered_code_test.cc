// Code in two tiers, and what may happen between them.
#include "strop/cpu/tiered_code.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "strop/cpu/kernel_compiler.h"
#include "strop/ir/builder.h"
#include "strop/runtime/cancelled_scope.h"

namespace strop::cpu {
namespace {

constexpr int64_t kElements = 1000;

// x / (x + addend) of a vector, as a fusion.
class TieredKernel : public testing::Test {
 protected:
  KernelSpec Spec(double addend) {
    const Shape shape = Shape::Array(ElementType::F32, {kElements});
    Computation* entry = m_.AddComputation("main");
    Builder b(m_.AddComputation("body"));
    Instruction* x = b.Parameter(0, shape);
    b.Make(Op::Divide, {x, b.Make(Op::Add, {x, b.Splat(ElementType::F32, addend, shape.dims())})});
    EXPECT_TRUE(b.Finish().ok()) << b.status().ToString();
    Instruction* fusion = entry->Add(Op::Fusion, shape, {entry->AddParameter(0, shape)}, FusionAttrs{});
    fusion->set_called({b.computation()});
    return KernelSpec{fusion, {-1}};
  }
  GeneratedKernels Compile(double addend, Tier tier) {
    const KernelSpec spec = Spec(addend);
    Result<GeneratedKernels> compiled = compiler_.Compile({&spec, 1}, {.tier = tier});
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    return *std::move(compiled);
  }
  static const KernelStep& StepOf(const GeneratedKernels& kernels) {
    return std::get<KernelStep>(kernels.kernels[0].body);
  }
  static std::vector<float> Run(const KernelStep& step) {
    std::vector<float> in(kElements), out(kElements);
    for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k) / 100 - 5;
    void* args[] = {in.data(), out.data()};
    step.fn(args, 0, step.num_tasks, nullptr);
    return out;
  }

  Module m_{"m"};
  KernelCompiler compiler_;
};

TEST_F(TieredKernel, ReplacedWhileItRuns) {
  const GeneratedKernels kernels = Compile(1, Tier::kAuto);
  const std::vector<float> first = Run(StepOf(kernels));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread caller([&] {
    while (!stop) wrong += Run(StepOf(kernels)) != first;
  });
  TieredCode::WaitForAll();
  EXPECT_EQ(Run(StepOf(kernels)), first);
  stop = true;
  caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Run(StepOf(Compile(1, Tier::kOptimizing))), first);
  EXPECT_EQ(Run(StepOf(Compile(1, Tier::kBaseline))), first);
}

// What is written down, and what later programs find, is the better code, whether or not it was there yet.
TEST_F(TieredKernel, FinalIsTheBetterCode) {
  const KernelSpec spec = Spec(2);
  const auto object_of = [&](KernelCompiler& compiler, Tier tier) {
    const Result<GeneratedKernels> kernels = compiler.Compile({&spec, 1}, {.tier = tier});
    EXPECT_TRUE(kernels.ok()) << kernels.status().ToString();
    return kernels->objects[0];
  };
  const std::string best = *object_of(compiler_, Tier::kOptimizing)->Final();
  KernelCompiler other;
  const auto quick = object_of(other, Tier::kAuto), later = object_of(other, Tier::kOptimizing);
  EXPECT_TRUE(*later->Final() == best);
  EXPECT_TRUE(*quick->Final() == best);
  EXPECT_FALSE(*object_of(other, Tier::kBaseline)->Final() == best);
}

// A program that is being replaced serves another one with the same kernel.
TEST_F(TieredKernel, SharedBeforeItIsReplaced) {
  const GeneratedKernels one = Compile(3, Tier::kAuto), other = Compile(3, Tier::kAuto);
  const std::vector<float> first = Run(StepOf(one));
  EXPECT_EQ(Run(StepOf(other)), first);
  TieredCode::WaitForAll();
  EXPECT_EQ(Run(StepOf(other)), first);
}

TEST_F(TieredKernel, ProgramsThatAreGoneAreLeftOut) {
  for (int n = 0; n < 20; ++n) (void)Compile(100 + n, Tier::kAuto);
  TieredCode::WaitForAll();
  const GeneratedKernels kernels = Compile(100, Tier::kAuto);
  EXPECT_EQ(Run(StepOf(kernels)).size(), static_cast<size_t>(kElements));
}

// A child has no thread that makes code, until it needs one.
// A loop that goes on as long as any element is asked to, here for ever.
TEST_F(TieredKernel, EndlessLoopsAreCancelled) {
  const Shape shape = Shape::Array(ElementType::Pred, {kElements}), state = Shape::Tuple({shape});
  Builder condition(m_.AddComputation("any"));
  Builder either(m_.AddComputation("or"));
  const Shape scalar = Shape::Array(ElementType::Pred, {});
  Instruction* one = either.Parameter(0, scalar);
  Instruction* other = either.Parameter(1, scalar);
  either.Make(Op::Or, {one, other});
  Instruction* on = condition.GetTupleElement(condition.Parameter(0, state), 0);
  Instruction* const reduced[] = {on, condition.Scalar(ElementType::Pred, 0)};
  Computation* const combiner[] = {either.computation()};
  ASSERT_TRUE(either.Finish().ok()) << either.status().ToString();
  condition.Make(Op::Reduce, reduced, DimensionsAttrs{{0}}, combiner, nullptr);
  Builder body(m_.AddComputation("trip"));
  Instruction* p = body.GetTupleElement(body.Parameter(0, state), 0);
  Instruction* const next[] = {body.Make(Op::And, {p, p})};
  body.Tuple(next);
  Builder fused(m_.AddComputation("fused"));
  Instruction* const first[] = {fused.Parameter(0, shape)};
  Instruction* init = fused.Tuple(first);
  for (Builder* b : {&condition, &body}) ASSERT_TRUE(b->Finish().ok()) << b->status().ToString();
  Computation* const called[] = {condition.computation(), body.computation()};
  fused.GetTupleElement(fused.Make(Op::While, std::span<Instruction* const>(&init, 1), NoAttrs{}, called, nullptr), 0);
  ASSERT_TRUE(fused.Finish().ok()) << fused.status().ToString();
  Computation* entry = m_.AddComputation("main");
  Instruction* fusion = entry->Add(Op::Fusion, shape, {entry->AddParameter(0, shape)}, FusionAttrs{});
  fusion->set_called({fused.computation()});
  const KernelSpec spec{fusion, {-1}};
  Result<GeneratedKernels> compiled = compiler_.Compile({&spec, 1}, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  std::vector<uint8_t> in(kElements, 1), out(kElements);
  void* args[] = {in.data(), out.data()};
  std::atomic<bool> cancelled{false};
  std::thread later([&] { cancelled = true; });
  const CancelledScope scope(&cancelled);
  const KernelStep& step = StepOf(*compiled);
  step.fn(args, 0, step.num_tasks, nullptr);
  later.join();
}

TEST_F(TieredKernel, AfterAFork) {
  const GeneratedKernels kernels = Compile(4, Tier::kAuto);
  const std::vector<float> first = Run(StepOf(kernels));
  const pid_t child = fork();
  if (child == 0) {
    const GeneratedKernels own = Compile(4, Tier::kAuto), fresh = Compile(5, Tier::kAuto);
    TieredCode::WaitForAll();
    const bool right = Run(StepOf(kernels)) == first && Run(StepOf(own)) == first && Run(StepOf(fresh)) != first;
    _exit(right && kernels.objects[0]->Final() ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  TieredCode::WaitForAll();
  EXPECT_EQ(Run(StepOf(kernels)), first);
}

}  // namespace
}  // namespace strop::cpu
