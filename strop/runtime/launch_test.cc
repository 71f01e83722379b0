#include "strop/runtime/launch.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "strop/runtime/test_program.h"

namespace strop {
namespace {

using namespace test_program;

class LaunchTest : public ::testing::Test {
 protected:
  Buffer MakeBuffer(int32_t first, int device = 0) {
    Ref<Storage> storage = *Storage::Allocate(devices_.device(device).allocator(), kBytes);
    std::iota(Ints(storage->data()), Ints(storage->data()) + kLength, first);
    return Buffer(std::move(storage), Vector(), device, MemoryKind::kDevice, Event::Ready());
  }
  static int32_t First(Buffer& buffer) {
    Status status = buffer.definition()->Await();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return Ints((*buffer.Acquire())->data())[0];
  }
  LaunchArgs Args(std::span<Buffer* const> inputs, LaunchMode mode = LaunchMode::kAuto) {
    LaunchArgs args;
    args.inputs = inputs;
    args.devices = &devices_;
    args.device = &devices_.device(0);
    args.mode = mode;
    return args;
  }
  Result<Launched> Run(const std::shared_ptr<const Executable>& e, std::vector<Buffer*> inputs,
                       LaunchMode mode = LaunchMode::kAuto) {
    return Launch(e, Args(inputs, mode));
  }

  ThreadPool pool_{2};
  DeviceSet devices_{4, pool_};
  std::shared_ptr<const Executable> add_ = *Executable::Create(AddSpec());
  std::shared_ptr<const Executable> count_ = *Executable::Create(LoopSpec());
};

TEST_F(LaunchTest, InlineAndAsyncAgree) {
  Buffer a = MakeBuffer(1), b = MakeBuffer(2);
  Launched inline_run = *Run(add_, {&a, &b});
  EXPECT_EQ(inline_run.done.get(), Event::Ready().get());
  EXPECT_EQ(First(inline_run.outputs[0]), 3);
  Launched async = *Run(add_, {&a, &b}, LaunchMode::kAsync);
  EXPECT_EQ(First(async.outputs[0]), 3);
  EXPECT_TRUE(async.done->Await().ok());
}

TEST_F(LaunchTest, InlineAllocatesOnlyOutputs) {
  Buffer a = MakeBuffer(1), b = MakeBuffer(2);
  int64_t before = devices_.device(0).memory_stats().num_allocs;
  Launched run = *Run(add_, {&a, &b});
  EXPECT_EQ(devices_.device(0).memory_stats().num_allocs, before + 1);
}

TEST_F(LaunchTest, OneThreadMeansOneThread) {
  ThreadPool single(1);
  DeviceSet devices(1, single);
  ExecutableSpec spec = AddSpec();
  spec.run_inline = false;
  std::thread::id ran;
  spec.programs[0].steps.push_back(Step{HostStep{[&](const HostCall& call) {
                                          ran = std::this_thread::get_id();
                                          EXPECT_EQ(call.run.pool, nullptr);
                                          return OkStatus();
                                        }},
                                        {},
                                        {.name = "where"}});
  Buffer a = MakeBuffer(1), b = MakeBuffer(2);
  std::vector<Buffer*> inputs = {&a, &b};
  LaunchArgs args = Args(inputs);
  args.devices = &devices;
  args.device = &devices.device(0);
  Launched run = *Launch(*Executable::Create(spec), args);
  EXPECT_TRUE(run.done->IsReady());
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST_F(LaunchTest, WaitsForInputs) {
  EventRef definition = Make<Event>();
  Buffer a = MakeBuffer(1);
  Buffer late(*MakeBuffer(5).Acquire(), Vector(), 0, MemoryKind::kDevice, definition);
  Launched first = *Run(add_, {&a, &late});
  Launched second = *Run(add_, {&first.outputs[0], &a});
  EXPECT_FALSE(second.done->IsReady());
  late.Delete();  // the execution holds the memory
  definition->Set(OkStatus());
  EXPECT_EQ(First(second.outputs[0]), 7);
}

TEST_F(LaunchTest, DonationReusesMemoryAndDeletesTheInput) {
  Buffer x = MakeBuffer(3);
  void* data = (*x.Acquire())->data();
  RunStats stats;
  std::vector<Buffer*> inputs = {&x};
  LaunchArgs args = Args(inputs);
  args.stats = &stats;
  Launched run = *Launch(count_, args);
  EXPECT_EQ(x.state(), Buffer::State::kDonated);
  EXPECT_EQ((*run.outputs[0].Acquire())->data(), data);
  EXPECT_EQ(First(run.outputs[0]), 10);
  EXPECT_EQ(stats.bytes_copied, 0);
  EXPECT_EQ(Run(count_, {&x}).status().message(), "buffer has been donated");
}

TEST_F(LaunchTest, NonDonatableInputsAreCopied) {
  Buffer x = MakeBuffer(3);
  std::vector<Buffer*> inputs = {&x};
  std::vector<int64_t> keep = {0};
  LaunchArgs args = Args(inputs);
  args.non_donatable = keep;
  Launched run = *Launch(count_, args);
  EXPECT_EQ(First(x), 3);
  EXPECT_EQ(First(run.outputs[0]), 10);
  ExecutableSpec must = LoopSpec();
  must.outputs[0].must_alias = true;
  EXPECT_EQ(Launch(*Executable::Create(must), args).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(LaunchTest, SharedMemoryIsNeverOverwritten) {
  Buffer x = MakeBuffer(3);
  Ref<Storage> seen = *x.AcquireExternal();
  Launched run = *Run(count_, {&x});
  EXPECT_TRUE(x.IsDeleted());
  EXPECT_EQ(Ints(seen->data())[0], 3);
  EXPECT_EQ(First(run.outputs[0]), 10);
  Buffer::DropExternal(std::move(seen));
}

TEST_F(LaunchTest, DonationWaitsForReaders) {
  // A reader that is held up: its other input is late.
  EventRef definition = Make<Event>();
  Buffer x = MakeBuffer(3);
  Buffer late(*MakeBuffer(0).Acquire(), Vector(), 0, MemoryKind::kDevice, definition);
  Launched reader = *Run(add_, {&x, &late});
  Launched writer = *Run(count_, {&x});
  EXPECT_FALSE(writer.done->IsReady());
  definition->Set(OkStatus());
  EXPECT_EQ(First(writer.outputs[0]), 10);
  EXPECT_EQ(First(reader.outputs[0]), 3);
}

TEST_F(LaunchTest, DonatingAnArgumentTwiceIsRefused) {
  ExecutableSpec spec = AddSpec();
  spec.outputs[0].source = OutputSource::kAliasParameter;
  spec.outputs[0].index = 0;
  std::shared_ptr<const Executable> executable = *Executable::Create(spec);
  Buffer x = MakeBuffer(3);
  EXPECT_EQ(Run(executable, {&x, &x}).status().message(), "add: argument 0 is donated and is argument 1 as well");
  EXPECT_FALSE(x.IsDeleted());
}

TEST_F(LaunchTest, ForwardedOutputsShareStorage) {
  static const std::vector<int32_t> constant(kLength, 8);
  ExecutableSpec spec = AddSpec();
  spec.constants = {{constant.data(), kBytes}};
  spec.outputs.push_back({Vector(), MemoryKind::kDevice, OutputSource::kForwardParameter, 1});
  spec.outputs.push_back({Vector(), MemoryKind::kDevice, OutputSource::kForwardConstant, 0});
  spec.outputs.push_back({Vector(), MemoryKind::kDevice, OutputSource::kForwardOutput, 0});
  Buffer a = MakeBuffer(1), b = MakeBuffer(2);
  Launched run = *Run(*Executable::Create(spec), {&a, &b});
  EXPECT_EQ((*run.outputs[1].Acquire()).get(), (*b.Acquire()).get());
  EXPECT_EQ(First(run.outputs[2]), 8);
  EXPECT_EQ((*run.outputs[3].Acquire()).get(), (*run.outputs[0].Acquire()).get());
  // Updating one of those that share must not be seen by the others, nor write the constant.
  for (int i : {1, 2, 3}) EXPECT_EQ(First((*Run(count_, {&run.outputs[i]})).outputs[0]), 10);
  EXPECT_EQ(First(b), 2);
  EXPECT_EQ(First(run.outputs[0]), 3);
  EXPECT_EQ(constant[0], 8);
}

TEST_F(LaunchTest, ErrorsReachOutputs) {
  ExecutableSpec spec = AddSpec();
  spec.programs[0].steps = {Step{HostStep{[](const HostCall&) { return Internal("boom"); }}, {}, {.name = "h"}}};
  std::shared_ptr<const Executable> fails = *Executable::Create(spec);
  Buffer a = MakeBuffer(1);
  for (LaunchMode mode : {LaunchMode::kAuto, LaunchMode::kAsync}) {
    Launched run = *Run(fails, {&a, &a}, mode);
    EXPECT_EQ(run.done->Await().message(), "boom");
    EXPECT_EQ(run.outputs[0].definition()->Await().message(), "boom");
    Launched next = *Run(add_, {&run.outputs[0], &a}, mode);  // poisoned in turn
    EXPECT_EQ(next.outputs[0].definition()->Await().message(), "boom");
  }
  Buffer bad = Buffer::Error(Vector(), 0, MemoryKind::kDevice, InvalidArgument("never came"));
  EXPECT_EQ((*Run(add_, {&bad, &a})).done->Await().message(), "never came");
}

// first = a + b; then a step of much work that is held up until it is told how to end, and writes the second result.
ExecutableSpec EarlyAndLateSpec(EventRef gate, int64_t work = 1'000'000'000) {
  ExecutableSpec spec = AddSpec();
  spec.outputs.push_back({Vector()});
  spec.outputs.push_back({Vector(), MemoryKind::kDevice, OutputSource::kForwardOutput, 0});
  spec.slots.push_back({SlotKind::kOutput, 1, 0, kBytes});
  Step late = Kernel("late", Add, {In(0), In(1), Out(3)});
  late.info.flops = work;
  spec.programs[0].steps.push_back(
      Step{HostStep{[gate](const HostCall&) { return gate->Await(); }}, {}, {.name = "held up"}});
  spec.programs[0].steps.push_back(std::move(late));
  spec.run_inline = false;
  return spec;
}

TEST_F(LaunchTest, ResultsAreThereBeforeTheEnd) {
  Buffer a = MakeBuffer(1), b = MakeBuffer(2);
  EventRef gate = Make<Event>();
  std::shared_ptr<const Executable> executable = *Executable::Create(EarlyAndLateSpec(gate));
  Launched run = *Run(executable, {&a, &b}, LaunchMode::kAsync);
  EventRef called = Make<Event>();
  run.outputs[0].definition()->OnReady([called](const Status& status) { called->Set(status); });
  EXPECT_EQ(First(run.outputs[0]), 3);
  EXPECT_EQ(First(run.outputs[2]), 3);
  EXPECT_TRUE(called->Await().ok());
  EXPECT_FALSE(run.done->IsReady());
  EXPECT_FALSE(run.outputs[1].definition()->IsReady());
  Launched next = *Run(add_, {&run.outputs[0], &run.outputs[1]});
  gate->Set(OkStatus());
  EXPECT_EQ(First(run.outputs[1]), 3);
  EXPECT_EQ(First(next.outputs[0]), 6);
  EXPECT_TRUE(run.done->Await().ok());
}

TEST_F(LaunchTest, ErrorsAfterEarlyResultsReachTheOthers) {
  Buffer a = MakeBuffer(1), b = MakeBuffer(2);
  EventRef gate = Make<Event>();
  Launched run = *Run(*Executable::Create(EarlyAndLateSpec(gate)), {&a, &b}, LaunchMode::kAsync);
  EXPECT_EQ(First(run.outputs[0]), 3);
  gate->Set(Internal("boom"));
  EXPECT_EQ(run.outputs[1].definition()->Await().message(), "boom");
  EXPECT_EQ(First(run.outputs[0]), 3);
  // What the run does not come to has its error.
  Buffer bad = Buffer::Error(Vector(), 0, MemoryKind::kDevice, InvalidArgument("never came"));
  Launched failed = *Run(*Executable::Create(EarlyAndLateSpec(gate)), {&bad, &b}, LaunchMode::kAsync);
  EXPECT_EQ(failed.outputs[0].definition()->Await().message(), "never came");
}

TEST_F(LaunchTest, BriefEndsAreNotWorthAnEvent) {
  EventRef gate = Make<Event>();
  EXPECT_EQ((*Executable::Create(EarlyAndLateSpec(gate)))->early_results().groups.size(), 1u);
  EXPECT_TRUE((*Executable::Create(EarlyAndLateSpec(gate, 1000)))->early_results().groups.empty());
  // What a loop touches after its last step is not there before the loop has ended.
  ExecutableSpec spec = EarlyAndLateSpec(gate);
  spec.programs.push_back({"body", {Kernel("increment", Increment, {InOut(2)})}});
  spec.programs[0].steps.push_back(Step{WhileStep{0, 1, 3}, {}, {.name = "while"}});
  EXPECT_TRUE((*Executable::Create(spec))->early_results().groups.empty());
}

TEST_F(LaunchTest, MisuseIsRefused) {
  Buffer a = MakeBuffer(1), gone = MakeBuffer(1);
  gone.Delete();
  EXPECT_EQ(Run(add_, {&a}).status().message(), "add takes 2 arguments, got 1");
  EXPECT_EQ(Run(add_, {&a, nullptr}).status().message(), "add: argument 1 is null");
  EXPECT_EQ(Run(add_, {&a, &gone}).status().message(), "buffer has been deleted");
  Buffer small(*Storage::Allocate(devices_.device(0).allocator(), 4), Shape::Scalar(ElementType::F32), 0,
               MemoryKind::kDevice, Event::Ready());
  EXPECT_EQ(Run(add_, {&a, &small}).status().message(), "add: argument 1 is f32[], expected s32[64]");
  EXPECT_FALSE(Launch(add_, {}).ok());
}

// A host step that computes on its own device and waits for the result, three levels deep, in both modes.
TEST_F(LaunchTest, CallbacksMayLaunchOnTheirOwnDevice) {
  for (LaunchMode mode : {LaunchMode::kInline, LaunchMode::kAsync}) {
    std::function<int32_t(int)> compute = [&](int depth) -> int32_t {
      Buffer a = MakeBuffer(depth), b = MakeBuffer(1);
      ExecutableSpec spec = AddSpec();
      HostStep callback{[&, depth](const HostCall& call) {
        *Ints(call.args[1]) = *Ints(call.args[0]) + (depth > 0 ? compute(depth - 1) : 0);
        return OkStatus();
      }};
      callback.may_block = true;
      spec.programs[0].steps = {Step{callback, {In(0), Out(2)}, {.name = "callback"}}};
      Launched run = *Run(*Executable::Create(spec), {&a, &b}, depth % 2 ? mode : LaunchMode::kAsync);
      return First(run.outputs[0]);
    };
    EXPECT_EQ(compute(3), 6);
  }
}

TEST_F(LaunchTest, ManyThreadsLaunch) {
  std::vector<std::thread> threads;
  Buffer a = MakeBuffer(1);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Buffer x = MakeBuffer(t);
      for (int i = 0; i < 50; ++i) {
        Launched run = *Run(add_, {&x, &a}, i % 3 ? LaunchMode::kAsync : LaunchMode::kAuto);
        x = std::move(run.outputs[0]);
      }
      EXPECT_EQ(First(x), t + 50);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

ExecutableSpec AllReduceSpec() {
  ExecutableSpec spec = AddSpec();
  CollectiveStep reduce;
  reduce.op = 1;
  reduce.operands = {{ElementType::S32, 1, kLength}};
  spec.programs[0].steps.push_back(Step{reduce, {In(2), InOut(2)}, {.name = "all-reduce"}});
  return spec;
}

TEST_F(LaunchTest, CollectivesJoinDevices) {
  std::shared_ptr<const Executable> executable = *Executable::Create(AllReduceSpec());
  auto assignment = std::make_shared<DeviceAssignment>(DeviceAssignment{2, 2, {0, 1, 2, 3}});
  std::vector<Buffer> inputs;
  for (int d = 0; d < 4; ++d) inputs.push_back(MakeBuffer(d, d));
  for (int round = 0; round < 10; ++round) {
    std::vector<Launched> runs;
    std::shared_ptr<Collectives> collectives = MakeInProcessCollectives();
    for (int d = 0; d < 4; ++d) {
      std::vector<Buffer*> args = {&inputs[d], &inputs[d]};
      LaunchArgs launch = Args(args);
      launch.device = &devices_.device(d);
      launch.assignment = assignment;
      launch.replica = d / 2;
      launch.partition = d % 2;
      launch.collectives = collectives;
      runs.push_back(*Launch(executable, launch));
    }
    for (Launched& run : runs) EXPECT_EQ(First(run.outputs[0]), 12);
  }
}

TEST_F(LaunchTest, CollectivesOfOneDeviceAreCopies) {
  Buffer a = MakeBuffer(1);
  EXPECT_EQ(First((*Run(*Executable::Create(AllReduceSpec()), {&a, &a})).outputs[0]), 2);
}

TEST_F(LaunchTest, AFailingDeviceFreesTheOthers) {
  std::shared_ptr<const Executable> executable = *Executable::Create(AllReduceSpec());
  auto assignment = std::make_shared<DeviceAssignment>(DeviceAssignment{2, 1, {0, 1}});
  std::shared_ptr<Collectives> collectives = MakeInProcessCollectives();
  Buffer a = MakeBuffer(1);
  std::vector<Buffer*> args = {&a, &a};
  LaunchArgs launch = Args(args);
  launch.assignment = assignment;
  launch.collectives = collectives;
  Launched waiting = *Launch(executable, launch);
  args.pop_back();
  launch.inputs = args;
  launch.replica = 1;
  EXPECT_FALSE(Launch(executable, launch).ok());
  EXPECT_EQ(waiting.done->Await().message(), "add takes 2 arguments, got 1");
}

TEST_F(LaunchTest, OutputsThatDoNotFitAreRefusedBeforeDonation) {
  DeviceSet small(1, pool_, {.bytes_limit = 4096});
  ExecutableSpec spec = LoopSpec();
  spec.outputs.push_back({Shape::Array(ElementType::F32, {1 << 20})});
  Buffer x = MakeBuffer(3);
  std::vector<Buffer*> inputs = {&x};
  LaunchArgs args = Args(inputs);
  args.devices = &small;
  args.device = &small.device(0);
  Result<Launched> run = Launch(*Executable::Create(spec), args);
  EXPECT_EQ(run.status().code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(x.IsDeleted());
}

}  // namespace
}  // namespace strop
