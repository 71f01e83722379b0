// Eight threads at once through the plugin's function table: each compiles programs of its own, runs them and one that
// all share, moves bytes in and out, and frees everything. Built with the tsan preset it shows that the client, the
// compiler and the runtime hold no data race.
#include <atomic>
#include <random>

#include "strop/base/strings.h"
#include "strop/pjrt/fixture.h"

namespace strop {
namespace {

using namespace pjrt_test;

constexpr int kThreads = 8;
constexpr int kRounds = 4;
constexpr int kSide = 24;

// Loops, reductions, a product, a sort and an update in place: something of each kind of kernel. `step` makes the text,
// and with it the code, another one for each thread and round.
std::string Program(int step) {
  return StrCat(R"(
func.func public @main(%a: tensor<24x24xf32>) -> (tensor<24x24xf32>, tensor<24xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %step = stablehlo.constant dense<)",
                step, R"(.0> : tensor<24x24xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %p = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<24x24xf32>, tensor<24x24xf32>) -> tensor<24x24xf32>
  %w:2 = stablehlo.while(%i = %i0, %x = %p) : tensor<i32>, tensor<24x24xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %y = stablehlo.add %x, %step : tensor<24x24xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<24x24xf32>
  }
  %s = "stablehlo.sort"(%w#1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %c = stablehlo.compare GT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<24x24xf32>) -> tensor<24x24xf32>
  %sum = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x24xf32>, tensor<f32>) -> tensor<24xf32>
  return %s, %sum : tensor<24x24xf32>, tensor<24xf32>
})");
}

// What the program computes, for a matrix whose rows are all `row`: small whole numbers, so that every order of sums
// gives the same floats.
void Expected(const std::vector<float>& matrix, int step, std::vector<float>& sorted, std::vector<float>& sums) {
  sorted.assign(kSide * kSide, 0);
  sums.assign(kSide, 0);
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      float dot = 0;
      for (int k = 0; k < kSide; ++k) dot += matrix[i * kSide + k] * matrix[k * kSide + j];
      sorted[i * kSide + j] = dot + 3.0f * static_cast<float>(step);
    }
    std::sort(sorted.begin() + i * kSide, sorted.begin() + (i + 1) * kSide, std::greater<>());
    for (int j = 0; j < kSide; ++j) sums[i] += sorted[i * kSide + j];
  }
}

struct Threads : Pjrt {
  // One thread's own copy of what the fixture keeps for a call.
  void Run(PJRT_LoadedExecutable* executable, const std::vector<float>& matrix, int step) {
    const std::vector<int64_t> dims = {kSide, kSide};
    auto host = FromHost(matrix.data(), PJRT_Buffer_Type_F32, dims);
    EXPECT_OK(Api().Client_BufferFromHostBuffer(&host));
    EXPECT_EQ(Await(host.done_with_host_buffer).message, "");
    auto call_options = MakeArgs<PJRT_ExecuteOptions>();
    PJRT_Buffer* arguments[1] = {host.buffer};
    PJRT_Buffer* outputs[2] = {};
    PJRT_Buffer* const* argument_lists[1] = {arguments};
    PJRT_Buffer** output_lists[1] = {outputs};
    PJRT_Event* done = nullptr;
    auto args = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = executable;
    args.options = &call_options;
    args.argument_lists = argument_lists;
    args.num_devices = 1;
    args.num_args = 1;
    args.output_lists = output_lists;
    args.device_complete_events = &done;
    EXPECT_OK(Api().LoadedExecutable_Execute(&args));
    std::vector<float> sorted, sums;
    Expected(matrix, step, sorted, sums);
    EXPECT_EQ(Read(outputs[0], kSide * kSide), sorted);
    EXPECT_EQ(Read(outputs[1], kSide), sums);
    EXPECT_EQ(Await(done).message, "");
    for (PJRT_Buffer* buffer : {host.buffer, outputs[0], outputs[1]}) Destroy(buffer);
  }
};

TEST_F(Threads, CompileAndExecuteAtOnce) {
  PJRT_LoadedExecutable* shared = nullptr;
  ASSERT_EQ(Compile("mlir", Program(100), &shared).message, "");
  std::atomic<int> finished{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::minstd_rand random(thread + 1);
      std::vector<float> matrix(kSide * kSide);
      for (int round = 0; round < kRounds; ++round) {
        for (float& value : matrix) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
        const int step = 1 + thread + kThreads * (round % 2);
        PJRT_LoadedExecutable* own = nullptr;
        Error error = Compile("mlir", Program(step), &own);
        ASSERT_EQ(error.message, "");
        Run(own, matrix, step);
        Run(shared, matrix, 100);
        Free(own);
        PJRT_LoadedExecutable* none = nullptr;
        EXPECT_NE(Compile("mlir", StrCat("nonsense ", step), &none).message, "");
      }
      ++finished;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(finished, kThreads);
  Free(shared);
}

// Callers of one executable, of one buffer: results never mix, and a buffer that one thread frees lives on for those
// that still read it.
TEST_F(Threads, SharedBufferAndExecutable) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  PJRT_Buffer* input = Floats({1, 2, 3, 4});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        auto call_options = MakeArgs<PJRT_ExecuteOptions>();
        PJRT_Buffer* arguments[1] = {input};
        PJRT_Buffer* outputs[1] = {};
        PJRT_Buffer* const* argument_lists[1] = {arguments};
        PJRT_Buffer** output_lists[1] = {outputs};
        auto args = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
        args.executable = executable;
        args.options = &call_options;
        args.argument_lists = argument_lists;
        args.num_devices = 1;
        args.num_args = 1;
        args.output_lists = output_lists;
        EXPECT_OK(Api().LoadedExecutable_Execute(&args));
        EXPECT_EQ(Read(outputs[0], 4), (std::vector<float>{2, 3, 4, 5}));
        Destroy(outputs[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Destroy(input);
  Free(executable);
}

}  // namespace
}  // namespace strop
