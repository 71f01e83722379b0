#include "strop/runtime/executable.h"

#include <gtest/gtest.h>

#include <numeric>

#include "strop/runtime/test_program.h"

namespace strop {
namespace {

using namespace test_program;

class ExecutableTest : public ::testing::Test {
 protected:
  std::vector<int32_t> Iota(int32_t first = 0) {
    std::vector<int32_t> v(kLength);
    std::iota(v.begin(), v.end(), first);
    return v;
  }
  Status Run(const ExecutableSpec& spec, std::vector<void*> inputs, std::vector<void*> outputs) {
    Result<std::shared_ptr<const Executable>> executable = Executable::Create(spec);
    if (!executable.ok()) return executable.status();
    stats_ = {};
    args_.inputs = inputs;
    args_.outputs = outputs;
    args_.device = &devices_.device(0);
    args_.stats = &stats_;
    return (*executable)->Run(args_);
  }
  static std::string Refusal(ExecutableSpec spec) { return Executable::Create(std::move(spec)).status().ToString(); }

  ThreadPool pool_{3};
  DeviceSet devices_{1, pool_};
  RunStats stats_;
  RunArgs args_;
};

TEST_F(ExecutableTest, KernelsRunWithAndWithoutAPool) {
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
    args_.pool = pool;
    std::vector<int32_t> a = Iota(), b = Iota(100), out(kLength);
    ASSERT_TRUE(Run(AddSpec(), {a.data(), b.data()}, {out.data()}).ok());
    for (int i = 0; i < kLength; ++i) EXPECT_EQ(out[i], 2 * i + 100);
    EXPECT_EQ(stats_.steps, 1);
  }
}

TEST_F(ExecutableTest, ScratchBelongsToTheThread) {
  ExecutableSpec spec = AddSpec();
  spec.parameters.resize(1);
  spec.slots = {{SlotKind::kParameter, 0, 0, kBytes}, {SlotKind::kOutput, 0, 0, kBytes}};
  spec.programs[0].steps = {Kernel("square", SquareThroughScratch, {In(0), Out(1)}, 8, 1000)};
  args_.pool = &pool_;
  for (int round = 0; round < 20; ++round) {
    std::vector<int32_t> a = Iota(), out(kLength);
    ASSERT_TRUE(Run(spec, {a.data()}, {out.data()}).ok());
    for (int i = 0; i < kLength; ++i) EXPECT_EQ(out[i], i * i);
  }
}

// In a gap if it is large enough for all threads, else behind what is in use; one task needs the memory of one thread.
TEST_F(ExecutableTest, ScratchLiesWhereNothingIsAlive) {
  ExecutableSpec spec = AddSpec();
  spec.parameters.resize(1);
  spec.temp_bytes = 8192;
  spec.slots = {{SlotKind::kParameter, 0, 0, kBytes},
                {SlotKind::kOutput, 0, 0, kBytes},
                {SlotKind::kTemp, 0, 0, kBytes},
                {SlotKind::kTemp, 0, 8192 - kBytes, kBytes}};
  Step increment = Kernel("increment", Increment, {InOut(3)});
  Step square = Kernel("square", SquareThroughScratch, {In(2), Out(3)}, 8, 1000);
  square.scratch = {8192, 256, 8192 - 2 * kBytes};
  Step again = Kernel("again", SquareThroughScratch, {In(3), Out(1)}, 8, 2000);
  again.scratch = {8192, 0, 3000};
  spec.programs[0].steps = {Step{CopyStep{}, {In(0), Out(2)}, {.name = "copy"}}, square, increment, again};
  const std::shared_ptr<const Executable> executable = *Executable::Create(spec);
  EXPECT_EQ(executable->arena_bytes(1), 8192);
  EXPECT_EQ(executable->arena_bytes(2), 8192 + 2 * 2048);
  EXPECT_EQ(executable->arena_bytes(1000), 8192 + 8 * 2048);
  args_.pool = &pool_;
  for (int round = 0; round < 20; ++round) {
    std::vector<int32_t> a = Iota(), out(kLength);
    ASSERT_TRUE(Run(spec, {a.data()}, {out.data()}).ok());
    for (int i = 0; i < kLength; ++i) EXPECT_EQ(out[i], (i * i + 1) * (i * i + 1));
  }
  std::get<KernelStep>(spec.programs[0].steps[3].body).num_tasks = 1;
  EXPECT_EQ((*Executable::Create(spec))->arena_bytes(4), 8192);
  spec.programs[0].steps[3].scratch = {8193, 0, 0};
  EXPECT_EQ(Executable::Create(spec).status().code(), StatusCode::kInvalidArgument);
  spec.programs[0].steps[3].scratch = {0, 8000, 256};
  EXPECT_EQ(Executable::Create(spec).status().code(), StatusCode::kInvalidArgument);
}

// Copied by all threads, for a kernel and for a loop of kernels: the length is no multiple of a piece.
TEST_F(ExecutableTest, LargeCopies) {
  constexpr int64_t kInts = (1 << 18) + 13;
  const Shape shape = Shape::Array(ElementType::S32, {kInts});
  args_.pool = &pool_;
  for (const bool loop : {false, true}) {
    ExecutableSpec spec = LoopSpec();
    spec.parameters = {{shape}};
    spec.outputs = {{shape}};
    spec.slots = {
        {SlotKind::kParameter, 0, 0, 4 * kInts}, {SlotKind::kTemp, 0, 0, 1}, {SlotKind::kOutput, 0, 0, 4 * kInts}};
    const Step copy{CopyStep{}, {In(0), Out(2)}, {.name = "copy"}};
    spec.programs[1].steps = {Kernel("compare", FirstBelow10, {In(2), Out(1)}, 1)};
    const Step count{WhileStep{1, 2}, {In(1)}, {.name = "while"}};
    spec.programs[0].steps = {copy, loop ? count : Kernel("increment", Increment, {InOut(2)})};
    std::vector<int32_t> x(kInts), out(kInts);
    std::iota(x.begin(), x.end(), 0);
    ASSERT_TRUE(Run(spec, {x.data()}, {out.data()}).ok());
    EXPECT_EQ(stats_.bytes_copied, 4 * kInts);
    for (int64_t i = 0; i < kInts; ++i) ASSERT_EQ(out[i], i + (i >= kLength ? 0 : loop ? 10 : 1)) << i;
  }
}

TEST_F(ExecutableTest, LoopsUpdateInPlace) {
  std::vector<int32_t> x = Iota();
  ASSERT_TRUE(Run(LoopSpec(), {x.data()}, {x.data()}).ok());  // donated
  EXPECT_EQ(x[0], 10);
  EXPECT_EQ(x[63], 73);
  EXPECT_EQ(stats_.trips, 10);
  EXPECT_EQ(stats_.bytes_copied, 0);
}

TEST_F(ExecutableTest, AliasWithoutDonationCopiesOnce) {
  std::vector<int32_t> x = Iota(), out(kLength);
  ASSERT_TRUE(Run(LoopSpec(), {x.data()}, {out.data()}).ok());
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(out[0], 10);
  EXPECT_EQ(stats_.bytes_copied, kBytes);
}

TEST_F(ExecutableTest, KnownTripCountNeedsNoCondition) {
  ExecutableSpec spec = LoopSpec();
  spec.programs[0].steps[0].body = WhileStep{.body = 2, .trip_count = 3};
  spec.programs[0].steps[0].args = {};
  std::vector<int32_t> x = Iota();
  ASSERT_TRUE(Run(spec, {x.data()}, {x.data()}).ok());
  EXPECT_EQ(x[0], 3);
}

// Slots 2 (output), 3 and 4 hold x, x + 1 and x + 2, each of which becomes the next one in a trip; x + 3 is computed in
// slot 5. The result is the sum of the three.
ExecutableSpec RingSpec(int64_t trips) {
  ExecutableSpec spec = LoopSpec();
  const Slot temp = spec.slots[1];
  for (int k = 0; k < 3; ++k) spec.slots.push_back({.kind = temp.kind, .offset = 64 + k * kBytes, .size = kBytes});
  spec.temp_bytes = 64 + 3 * kBytes;
  const auto fill = [](int32_t slot, int32_t by) {
    return Step{HostStep{[by](const HostCall& call) {
                  for (int64_t i = 0; i < kLength; ++i)
                    static_cast<int32_t*>(call.args[1])[i] = static_cast<const int32_t*>(call.args[0])[i] + by;
                  return OkStatus();
                }},
                {In(2), Out(slot)},
                {.name = "fill"}};
  };
  const Step sum{HostStep{[](const HostCall& call) {
                   for (int64_t i = 0; i < kLength; ++i)
                     static_cast<int32_t*>(call.args[2])[i] +=
                         static_cast<const int32_t*>(call.args[0])[i] + static_cast<const int32_t*>(call.args[1])[i];
                   return OkStatus();
                 }},
                 {In(3), In(4), {2, Access::kReadWrite}},
                 {.name = "sum"}};
  spec.programs[2].steps = {fill(5, 3)};
  Step loop{WhileStep{.body = 2, .trip_count = trips, .rings = {4}}, {}, {.name = "while"}};
  for (int32_t slot : {2, 3, 4, 5}) loop.args.push_back({slot, Access::kReadWrite});
  spec.programs[0].steps = {fill(3, 1), fill(4, 2), loop, sum};
  return spec;
}

TEST_F(ExecutableTest, SlotsOfARingChangePlaces) {
  for (int32_t trips = 0; trips < 10; ++trips) {
    std::vector<int32_t> x = Iota();
    stats_ = {};
    ASSERT_TRUE(Run(RingSpec(trips), {x.data()}, {x.data()}).ok());
    EXPECT_EQ(x[0], 3 * trips + 3);
    EXPECT_EQ(x[kLength - 1], 3 * (kLength - 1 + trips) + 3);
    EXPECT_LE(stats_.bytes_copied, trips % 4 == 0 ? 0 : 5 * kBytes) << trips;
  }
}

TEST_F(ExecutableTest, BadRingsAreRefused) {
  ExecutableSpec spec = RingSpec(3);
  std::get<WhileStep>(spec.programs[0].steps[2].body).rings = {3};
  EXPECT_NE(Refusal(spec).find("a loop has 4 arguments"), std::string::npos);
  std::get<WhileStep>(spec.programs[0].steps[2].body).rings = {17};
  EXPECT_NE(Refusal(spec).find("a ring of 17 slots"), std::string::npos);
  spec = RingSpec(3);
  spec.programs[0].steps[2].args[3].slot = 2;
  EXPECT_NE(Refusal(spec).find("slot 2 is twice in rings"), std::string::npos);
  spec.programs[0].steps[2].args[3].slot = 1;
  EXPECT_NE(Refusal(spec).find("slots of a ring differ in size"), std::string::npos);
  spec.programs[0].steps[2].args[3] = In(0);
  EXPECT_NE(Refusal(spec).find("slot 0 cannot be in a ring"), std::string::npos);
}

// A region as a backend would compile it: args[0] (vector) is squared by a call of the library in each of 3 trips.
bool SquareThreeTimes(void* const* args, RegionContext* context) {
  for (; context->trips < 3; ++context->trips) {
    if (context->cancelled->load()) return false;
    const KernelStep& square = context->calls[0];
    void* both[] = {args[0], args[0]};
    square.library->Run({both}, 0, square.num_tasks, context->scratch);
  }
  return true;
}

class Square final : public TaskKernel {
 public:
  void Run(const TaskCall& call, int64_t begin, int64_t end, void* scratch) const override {
    SquareThroughScratch(call.args, begin, end, scratch);
  }
};

ExecutableSpec RegionSpec() {
  ExecutableSpec spec = LoopSpec();
  RegionStep region{.fn = SquareThreeTimes};
  region.calls.push_back({.num_tasks = 8, .scratch_bytes = 1024, .library = std::make_shared<Square>()});
  spec.programs = {{"main", {Step{region, {InOut(2)}, {.name = "region"}}}}};
  return spec;
}

// out[i] += x[i] + round, by way of memory that Prepare fills.
class AddRounds final : public TaskKernel {
 public:
  void Prepare(const TaskCall& call, int64_t begin, int64_t end) const override {
    const auto* x = static_cast<const int32_t*>(call.args[0]);
    for (int64_t i = begin; i < end; ++i) static_cast<int64_t*>(call.shared)[i] = x[i] + call.round;
  }
  // Reads what other tasks prepared.
  void Run(const TaskCall& call, int64_t begin, int64_t end, void*) const override {
    const auto* shared = static_cast<const int64_t*>(call.shared);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& out = static_cast<int32_t*>(call.args[1])[i];
      out = static_cast<int32_t>((call.round > 0 ? out : 0) + shared[kLength - 1 - i]);
    }
  }
};

TEST_F(ExecutableTest, LibraryKernelsPrepareInEachRound) {
  KernelStep kernel{.num_tasks = kLength,
                    .library = std::make_shared<AddRounds>(),
                    .rounds = 3,
                    .prepare_tasks = kLength,
                    .shared_bytes = kLength * static_cast<int64_t>(sizeof(int64_t))};
  ExecutableSpec spec = AddSpec();
  spec.parameters.resize(1);
  spec.slots = {{SlotKind::kParameter, 0, 0, kBytes}, {SlotKind::kOutput, 0, 0, kBytes}};
  spec.programs = {{"main", {Step{kernel, {In(0), Out(1)}, {.name = "rounds"}}}}};
  std::vector<int32_t> x = Iota(), out(kLength);
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
    args_.pool = pool;
    ASSERT_TRUE(Run(spec, {x.data()}, {out.data()}).ok());
    for (int32_t i = 0; i < kLength; ++i) EXPECT_EQ(out[i], 3 * (kLength - 1 - i) + 3);
  }
  std::get<KernelStep>(spec.programs[0].steps[0].body).rounds = 0;
  EXPECT_EQ(Run(spec, {x.data()}, {out.data()}).code(), StatusCode::kInvalidArgument);
}

TEST_F(ExecutableTest, RegionsCallTheLibraryAndCountTrips) {
  std::vector<int32_t> x(kLength, 3);
  ASSERT_TRUE(Run(RegionSpec(), {x.data()}, {x.data()}).ok());
  EXPECT_EQ(x[0], 6561);
  EXPECT_EQ(x[63], 6561);
  EXPECT_EQ(stats_.trips, 3);
  EXPECT_EQ(stats_.steps, 1);
}

TEST_F(ExecutableTest, RegionsAreCancelled) {
  const std::atomic<bool> cancelled{true};
  RunArgs args = args_;
  std::vector<int32_t> x(kLength, 3);
  std::vector<void*> buffers = {x.data()};
  args.inputs = args.outputs = buffers;
  args.device = &devices_.device(0);
  args.cancelled = &cancelled;
  Result<std::shared_ptr<const Executable>> executable = Executable::Create(RegionSpec());
  ASSERT_TRUE(executable.ok());
  EXPECT_EQ((*executable)->Run(args).code(), StatusCode::kCancelled);
  EXPECT_EQ(x[0], 3);
}

// Adds what args[0] was when the region's first call of it began.
class AddKept final : public TaskKernel {
 public:
  void Keep(const TaskCall& call) const override { std::memcpy(call.kept, call.args[0], kBytes); }
  void Run(const TaskCall& call, int64_t, int64_t, void*) const override {
    for (int64_t i = 0; i < kLength; ++i)
      static_cast<int32_t*>(call.args[0])[i] += static_cast<const int32_t*>(call.kept)[i];
  }
};
bool AddTwoKept(void* const* args, RegionContext* context) {
  for (; context->trips < 3; ++context->trips) {
    for (int64_t k = 0; k < 2; ++k) {
      const KernelStep& call = context->calls[k];
      const TaskCall task{args, 0, context->shared, context->kept + call.kept_at};
      char& is_there = context->kept[call.kept_at - KernelStep::kKeptHead];
      EXPECT_EQ(is_there != 0, context->trips > 0);
      if (is_there == 0) call.library->Keep(task);
      is_there = 1;
      call.library->Run(task, 0, 1, context->scratch);
    }
  }
  return true;
}

TEST_F(ExecutableTest, CallsOfARegionKeepWhatTheyWant) {
  ExecutableSpec spec = LoopSpec();
  RegionStep region{.fn = AddTwoKept};
  constexpr int64_t kHead = KernelStep::kKeptHead, kSecond = 2 * kHead + (kBytes + 63) / 64 * 64;
  for (int64_t at : {kHead, kSecond})
    region.calls.push_back(
        {.library = std::make_shared<AddKept>(), .shared_bytes = 128, .kept_bytes = kBytes, .kept_at = at});
  spec.programs = {{"main", {Step{region, {InOut(2)}, {.name = "region"}}}}};
  for (int run = 0; run < 2; ++run) {
    std::vector<int32_t> x = Iota();
    ASSERT_TRUE(Run(spec, {x.data()}, {x.data()}).ok());
    for (int32_t i = 0; i < kLength; ++i) EXPECT_EQ(x[static_cast<size_t>(i)], 10 * i);
  }
  std::get<RegionStep>(spec.programs[0].steps[0].body).calls[1].kept_at = 0;
  EXPECT_NE(Refusal(spec).find("what a call keeps"), std::string::npos);
}

// A task as a backend would compile it: squares its eighth of args[0], by way of memory of its own, in two trips.
bool SquareAPart(void* const* args, RegionContext* context) {
  context->trips = 0;
  if (context->cancelled->load()) return false;
  int32_t* part = static_cast<int32_t*>(args[0]) + context->task * (kLength / 8);
  auto* own = static_cast<int32_t*>(context->locals);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(own) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(context->scratch) % 64, 0u);
  EXPECT_GE(static_cast<char*>(context->shared) - static_cast<char*>(context->locals), 64);
  EXPECT_GE(static_cast<char*>(context->scratch) - static_cast<char*>(context->shared), 128);
  for (int64_t i = 0; i < kLength / 8; ++i) own[i] = part[i];
  for (int64_t i = 0; i < kLength / 8; ++i) part[i] = own[i] * own[i];
  std::memset(context->shared, context->task, 128);  // as kernels that it calls would
  std::memset(context->scratch, context->task, 64);
  context->trips = 2;
  return true;
}

TEST_F(ExecutableTest, TasksOfARegionHaveMemoryOfTheirOwn) {
  ExecutableSpec spec = LoopSpec();
  RegionStep region{.fn = SquareAPart, .num_tasks = 8, .local_bytes = kLength / 8 * 4};
  region.calls.push_back({.scratch_bytes = 64, .library = std::make_shared<Square>(), .shared_bytes = 128});
  spec.programs = {{"main", {Step{region, {InOut(2)}, {.name = "region"}}}}};
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
    args_.pool = pool;
    stats_ = {};
    std::vector<int32_t> x = Iota();
    ASSERT_TRUE(Run(spec, {x.data()}, {x.data()}).ok());
    for (int32_t i = 0; i < kLength; ++i) EXPECT_EQ(x[static_cast<size_t>(i)], i * i);
    EXPECT_EQ(stats_.trips, 16);
  }
  const std::atomic<bool> cancelled{true};
  RunArgs args = args_;
  std::vector<int32_t> x = Iota();
  std::vector<void*> buffers = {x.data()};
  args.inputs = args.outputs = buffers;
  args.device = &devices_.device(0);
  args.cancelled = &cancelled;
  EXPECT_EQ((*Executable::Create(spec))->Run(args).code(), StatusCode::kCancelled);
  std::get<RegionStep>(spec.programs[0].steps[0].body).num_tasks = 0;
  EXPECT_NE(Refusal(spec).find("bad task count"), std::string::npos);
}

TEST_F(ExecutableTest, RegionsNeedCode) {
  ExecutableSpec spec = RegionSpec();
  std::get<RegionStep>(spec.programs[0].steps[0].body).calls[0].library = nullptr;
  EXPECT_NE(Refusal(spec).find("kernel without code"), std::string::npos);
  spec = RegionSpec();
  std::get<RegionStep>(spec.programs[0].steps[0].body).fn = nullptr;
  EXPECT_NE(Refusal(spec).find("region without code"), std::string::npos);
}

// Slots: 0 selector, 1 output. Branch n writes n to output[0].
ExecutableSpec BranchSpec(bool by_index) {
  ExecutableSpec spec;
  spec.name = "branch";
  spec.parameters = {{Shape::Scalar(by_index ? ElementType::S32 : ElementType::Pred)}};
  spec.outputs = {{Vector()}};
  spec.slots = {{SlotKind::kParameter, 0, 0, by_index ? 4 : 1}, {SlotKind::kOutput, 0, 0, kBytes}};
  spec.programs = {{"main", {}}};
  ConditionalStep conditional{.by_index = by_index};
  for (int branch = 0; branch < (by_index ? 3 : 2); ++branch) {
    HostStep set{[branch](const HostCall& call) {
      *Ints(call.args[0]) = branch;
      return OkStatus();
    }};
    set.interpreted = true;
    spec.programs.push_back({"branch", {Step{set, {Out(1)}, {.name = "set"}}}});
    conditional.branches.push_back(branch + 1);
  }
  spec.programs[0].steps = {Step{conditional, {In(0)}, {.name = "conditional"}}};
  return spec;
}

TEST_F(ExecutableTest, ConditionalsChoose) {
  int32_t out[kLength];
  for (auto [index, branch] : {std::pair{0, 0}, {2, 2}, {3, 2}, {-1, 2}, {1, 1}}) {
    ASSERT_TRUE(Run(BranchSpec(true), {&index}, {out}).ok());
    EXPECT_EQ(out[0], branch);
    EXPECT_EQ(stats_.interpreted, 1);
  }
  for (bool pred : {true, false}) {
    ASSERT_TRUE(Run(BranchSpec(false), {&pred}, {out}).ok());
    EXPECT_EQ(out[0], pred ? 0 : 1);
  }
  EXPECT_EQ((*Executable::Create(BranchSpec(true)))->num_interpreted(), 3);
}

TEST_F(ExecutableTest, CopiesCallsConstantsAndBigTables) {
  static const std::vector<int32_t> constant(kLength, 5);
  ExecutableSpec spec;
  spec.name = "chain";
  spec.outputs = {{Vector()}};
  spec.constants = {{constant.data(), kBytes}};
  spec.slots = {
      {SlotKind::kConstant, 0, 0, kBytes}, {SlotKind::kTemp, 0, 0, kBytes}, {SlotKind::kOutput, 0, 0, kBytes}};
  spec.temp_bytes = kBytes;
  spec.programs = {{"main", {Step{CopyStep{}, {In(0), Out(1)}, {.name = "copy"}}}}, {"callee", {}}};
  for (int i = 0; i < 100; ++i) spec.programs[1].steps.push_back(Kernel("increment", Increment, {InOut(1)}));
  spec.programs[0].steps.push_back(Step{CallStep{1}, {}, {.name = "call"}});
  spec.programs[0].steps.push_back(Step{CallStep{1}, {}, {.name = "call"}});
  spec.programs[0].steps.push_back(Kernel("add", Add, {In(0), In(1), Out(2)}));
  spec.programs[0].steps.push_back(Step{CopyStep{}, {In(2), Out(2)}, {.name = "self"}});
  std::vector<int32_t> out(kLength);
  ASSERT_TRUE(Run(spec, {}, {out.data()}).ok());
  EXPECT_EQ(out[63], 210);
  EXPECT_EQ(stats_.bytes_copied, kBytes);  // the copy onto itself is free
  EXPECT_EQ(constant[0], 5);
}

// Rows of a matrix, without a copy: out = m[start] + m[start], the start clamped.
ExecutableSpec ViewSpec() {
  ExecutableSpec spec;
  spec.name = "rows";
  spec.parameters = {{Shape::Array(ElementType::S32, {3, kLength})}, {Shape::Array(ElementType::S32, {})}};
  spec.outputs = {{Vector()}};
  spec.slots = {{SlotKind::kParameter, 0, 0, 3 * kBytes},
                {SlotKind::kParameter, 1, 0, 4},
                {SlotKind::kView, 0, 0, kBytes},
                {SlotKind::kOutput, 0, 0, kBytes}};
  const ViewStep row{0, {{ElementType::S32, 2, kBytes}}};
  spec.programs = {
      {"main", {Step{row, {In(0), In(1), Out(2)}, {.name = "row"}}, Kernel("add", Add, {In(2), In(2), Out(3)})}}};
  return spec;
}

TEST_F(ExecutableTest, ViewsAreReadWhereTheyLie) {
  std::vector<int32_t> matrix(3 * kLength), out(kLength);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<int32_t>(i / kLength) + 10;
  for (auto [start, row] : {std::pair(0, 0), {1, 1}, {2, 2}, {7, 2}, {-1, 0}, {INT32_MAX, 2}, {INT32_MIN, 0}}) {
    ASSERT_TRUE(Run(ViewSpec(), {matrix.data(), &start}, {out.data()}).ok());
    EXPECT_EQ(out[5], 2 * (row + 10)) << start;
    EXPECT_EQ(stats_.bytes_copied, 0);
  }
}

TEST_F(ExecutableTest, RefusesViewsOfOtherMemory) {
  const auto refuses = [](ExecutableSpec spec) { return !Executable::Create(std::move(spec)).ok(); };
  EXPECT_FALSE(refuses(ViewSpec()));
  ExecutableSpec spec = ViewSpec();
  std::get<ViewStep>(spec.programs[0].steps[0].body).dims[0].limit = 3;  // the row behind the last
  EXPECT_TRUE(refuses(spec));
  spec = ViewSpec();
  std::get<ViewStep>(spec.programs[0].steps[0].body).dims[0].stride = -kBytes;
  EXPECT_TRUE(refuses(spec));
  spec = ViewSpec();
  std::get<ViewStep>(spec.programs[0].steps[0].body).offset = INT64_MAX;
  EXPECT_TRUE(refuses(spec));
  spec = ViewSpec();
  spec.slots[2].index = 2;  // of itself
  EXPECT_TRUE(refuses(spec));
  spec = ViewSpec();
  spec.slots[2].index = 1;  // too small
  EXPECT_TRUE(refuses(spec));
  spec = ViewSpec();
  spec.programs[0].steps[1].args[2] = Out(2);  // a kernel that writes to it
  EXPECT_TRUE(refuses(spec));
  spec = ViewSpec();
  std::get<ViewStep>(spec.programs[0].steps[0].body).dims[0].type = ElementType::S64;  // of four bytes
  EXPECT_TRUE(refuses(spec));
}

TEST_F(ExecutableTest, RandomStateAdvances) {
  ExecutableSpec spec;
  spec.name = "rng";
  spec.outputs = {{Shape::Array(ElementType::U64, {2})}};
  spec.slots = {{SlotKind::kOutput, 0, 0, 16}};
  spec.rng_seed[0] = UINT64_MAX - 1;
  spec.programs = {{"main", {Step{RngStateStep{3}, {Out(0)}, {.name = "state"}}}}};
  std::shared_ptr<const Executable> executable = *Executable::Create(spec);
  uint64_t state[2];
  void* out = state;
  RunArgs args{.outputs = {&out, 1}, .device = &devices_.device(0)};
  ASSERT_TRUE(executable->Run(args).ok());
  EXPECT_EQ(state[0], UINT64_MAX - 1);
  EXPECT_EQ(state[1], 0u);
  ASSERT_TRUE(executable->Run(args).ok());
  EXPECT_EQ(state[0], 1u);
  EXPECT_EQ(state[1], 1u);
}

TEST_F(ExecutableTest, InfeedAndOutfeed) {
  ExecutableSpec spec;
  spec.name = "feeds";
  spec.slots = {{SlotKind::kTemp, 0, 0, 8}};
  spec.temp_bytes = 8;
  spec.programs = {
      {"main", {Step{InfeedStep{}, {Out(0)}, {.name = "infeed"}}, Step{OutfeedStep{}, {In(0)}, {.name = "outfeed"}}}}};
  EXPECT_TRUE((*Executable::Create(spec))->may_block());
  Device& device = devices_.device(0);
  ASSERT_TRUE(device.infeed().Push({1, 2, 3, 4, 5, 6, 7, 8}).ok());
  ASSERT_TRUE(Run(spec, {}, {}).ok());
  EXPECT_EQ((*device.outfeed().PopAny())[7], 8);
  ASSERT_TRUE(device.infeed().Push({1}).ok());
  EXPECT_EQ(Run(spec, {}, {}).code(), StatusCode::kInvalidArgument);
}

TEST_F(ExecutableTest, DynamicSizesAreReadAndClamped) {
  ExecutableSpec spec = BranchSpec(true);
  spec.outputs[0].dynamic_dims = {{0, 0}};
  std::vector<Int64Vector> dims;
  args_.output_dims = &dims;
  int32_t out[kLength];
  for (auto [size, expected] : {std::pair{7, 7}, {-3, 0}, {1000, 64}}) {
    ASSERT_TRUE(Run(spec, {&size}, {out}).ok());
    EXPECT_EQ(dims[0][0], expected);
  }
}

TEST_F(ExecutableTest, ErrorsNameStepAndSource) {
  ExecutableSpec spec = AddSpec();
  Step fail{HostStep{[](const HostCall&) { return InvalidArgument("matrix is singular"); }}, {}, {}};
  fail.info = {.name = "cholesky.3", .op = "cholesky", .op_name = "jit(f)/cholesky", .source = "model.py:12"};
  spec.programs[0].steps = {Step{CallStep{1}, {}, {.name = "call"}}};
  spec.programs.push_back({"callee", {fail}});
  std::vector<int32_t> a(kLength);
  EXPECT_EQ(Run(spec, {a.data(), a.data()}, {a.data()}).ToString(),
            "InvalidArgument: matrix is singular [at model.py:12]\n  note: while running cholesky.3 (jit(f)/cholesky)");
  EXPECT_EQ(Run(spec, {a.data()}, {a.data()}).message(), "add takes 2 inputs and 1 outputs, got 1 and 1");
}

TEST_F(ExecutableTest, CancellationStopsLoops) {
  std::atomic<bool> cancelled{false};
  args_.cancelled = &cancelled;
  ExecutableSpec spec = LoopSpec();
  spec.programs[1].steps = {Step{HostStep{[&](const HostCall& call) {
                                   *static_cast<uint8_t*>(call.args[0]) = 1;  // for ever
                                   cancelled = true;
                                   return OkStatus();
                                 }},
                                 {Out(1)},
                                 {.name = "true"}}};
  std::vector<int32_t> x = Iota();
  EXPECT_EQ(Run(spec, {x.data()}, {x.data()}).code(), StatusCode::kCancelled);
}

TEST_F(ExecutableTest, ObserverSeesEveryStep) {
  struct Names : StepObserver {
    std::string seen;
    void OnBegin(const Step& step) override { seen += "<" + step.info.name; }
    void OnEnd(const Step& step) override { seen += ">"; }
  } names;
  args_.observer = &names;
  std::vector<int32_t> x(kLength, 9);
  ASSERT_TRUE(Run(LoopSpec(), {x.data()}, {x.data()}).ok());
  EXPECT_EQ(names.seen, "<while<compare><increment><compare>>");
}

TEST_F(ExecutableTest, InconsistentSpecsAreRefused) {
  ExecutableSpec spec = AddSpec();
  spec.programs[0].steps[0].args[0].slot = 9;
  EXPECT_EQ(Refusal(spec),
            "InvalidArgument: slot 9 does not exist\n  note: step add of program main\n  note: executable add");
  spec = AddSpec();
  spec.slots[0].size += 1;
  EXPECT_NE(Refusal(spec).find("slot 0: bytes [0, +257) lie outside of its 256 bytes"), std::string::npos);
  spec = AddSpec();
  spec.slots[0].offset = INT64_MAX;
  EXPECT_NE(Refusal(spec).find("lie outside"), std::string::npos);
  spec = AddSpec();
  spec.programs[0].steps[0].args[0].access = Access::kWrite;
  EXPECT_NE(Refusal(spec).find("writes parameter 0, which no output aliases"), std::string::npos);
  spec = AddSpec();
  spec.programs[0].steps[0].body = KernelStep{};
  EXPECT_NE(Refusal(spec).find("kernel without code"), std::string::npos);
  spec = AddSpec();
  spec.programs[0].steps = {Step{CallStep{0}, {}, {.name = "self"}}};
  EXPECT_NE(Refusal(spec).find("program main calls itself"), std::string::npos);
  spec = AddSpec();
  spec.entry = 1;
  EXPECT_NE(Refusal(spec).find("entry program 1 does not exist"), std::string::npos);
  spec = AddSpec();
  spec.outputs[0].source = OutputSource::kForwardParameter;
  spec.outputs[0].index = 0;
  EXPECT_NE(Refusal(spec).find("output 0 is forwarded"), std::string::npos);
  spec = AddSpec();
  spec.outputs.push_back({Shape::Scalar(ElementType::F32), MemoryKind::kDevice, OutputSource::kAliasParameter, 0});
  EXPECT_NE(Refusal(spec).find("output 1 has 4 bytes, its source 256"), std::string::npos);
  spec = AddSpec();
  spec.outputs[0].shape = Shape::Tuple({Vector()});
  EXPECT_NE(Refusal(spec).find("must be leaves"), std::string::npos);
  spec = AddSpec();
  for (int p = 0; p < 3000; ++p) spec.programs.push_back({"p", {Step{CallStep{p + 2}, {}, {.name = "call"}}}});
  spec.programs.push_back({"last", {}});
  EXPECT_NE(Refusal(spec).find("programs nest deeper than 1000"), std::string::npos);
}

TEST_F(ExecutableTest, TextForm) {
  ExecutableSpec spec = LoopSpec();
  spec.programs[2].steps[0].info.op_name = "jit(f)/add";
  spec.programs[2].steps[0].info.source = "f.py:3";
  EXPECT_EQ((*Executable::Create(spec))->ToString(),
            "executable count: 1 parameters, 1 outputs, 64 temp bytes, inline\n"
            "slot 0: parameter 0 [0, 256)\n"
            "slot 1: temp [0, 1)\n"
            "slot 2: output 0 [0, 256)\n"
            "entry 0 main:\n"
            "  while while(1) programs=1,2\n"
            "program 1 cond:\n"
            "  kernel compare(0, =1) tasks=1\n"
            "program 2 body:\n"
            "  kernel increment(+=2) tasks=8 op_name=\"jit(f)/add\" source=f.py:3\n");
}

TEST_F(ExecutableTest, MemoryGoesBack) {
  std::vector<int32_t> x = Iota();
  ASSERT_TRUE(Run(LoopSpec(), {x.data()}, {x.data()}).ok());
  AllocatorStats stats = devices_.device(0).memory_stats();
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_EQ(stats.num_allocs, 1);  // the arena
}

}  // namespace
}  // namespace strop
