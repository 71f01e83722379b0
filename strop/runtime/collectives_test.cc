#include "strop/runtime/collectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

namespace strop {
namespace {

// Runs body(rank) on `size` threads.
void OnRanks(int size, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

TEST(Collectives, AllReduceInPlaceInALoop) {
  auto c = MakeInProcessCollectives();
  OnRanks(4, [&](int rank) {
    for (int trip = 0; trip < 20; ++trip) {
      std::vector<int32_t> data(10007);
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int32_t>(i) * (rank + 1) + trip;
      ASSERT_TRUE(c->AllReduce({.op = 1, .rank = rank, .size = 4}, ElementType::S32, ReductionKind::kSum, data.size(),
                               data.data(), data.data())
                      .ok());
      for (size_t i = 0; i < data.size(); i += 501) ASSERT_EQ(data[i], static_cast<int32_t>(i) * 10 + 4 * trip);
    }
  });
}

TEST(Collectives, GroupsDoNotMix) {
  auto c = MakeInProcessCollectives();
  OnRanks(4, [&](int id) {
    float in = static_cast<float>(id), out = -1;
    CollectiveCall call{.op = 7, .group = id / 2, .rank = id % 2, .size = 2};
    ASSERT_TRUE(c->AllReduce(call, ElementType::F32, ReductionKind::kMax, 1, &in, &out).ok());
    EXPECT_EQ(out, id < 2 ? 1 : 3);
  });
}

TEST(Collectives, GatherScatterExchange) {
  auto c = MakeInProcessCollectives();
  constexpr int kRanks = 3, kOuter = 2, kBlock = 5;
  OnRanks(kRanks, [&](int rank) {
    CollectiveCall call{.op = 1, .rank = rank, .size = kRanks};
    std::vector<int32_t> in(kOuter * kBlock), gathered(kOuter * kRanks * kBlock);
    for (size_t i = 0; i < in.size(); ++i) in[i] = 100 * rank + static_cast<int>(i);
    ASSERT_TRUE(c->AllGather(call, kOuter, kBlock * 4, in.data(), gathered.data()).ok());
    for (int o = 0; o < kOuter; ++o)
      for (int r = 0; r < kRanks; ++r)
        for (int b = 0; b < kBlock; ++b) EXPECT_EQ(gathered[(o * kRanks + r) * kBlock + b], 100 * r + o * kBlock + b);

    call.op = 2;
    std::vector<int32_t> wide(kOuter * kRanks * kBlock), exchanged(wide.size()), part(kOuter * kBlock);
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = 1000 * rank + static_cast<int>(i);
    ASSERT_TRUE(c->AllToAll(call, kOuter, kBlock * 4, wide.data(), exchanged.data()).ok());
    ASSERT_TRUE(
        c->ReduceScatter(call, ElementType::S32, ReductionKind::kSum, kOuter, kBlock, wide.data(), part.data()).ok());
    for (int o = 0; o < kOuter; ++o)
      for (int b = 0; b < kBlock; ++b) {
        int mine = (o * kRanks + rank) * kBlock + b;
        EXPECT_EQ(part[o * kBlock + b], 3000 + 3 * mine);
        for (int r = 0; r < kRanks; ++r) EXPECT_EQ(exchanged[(o * kRanks + r) * kBlock + b], 1000 * r + mine);
      }

    call.op = 3;
    int32_t value = rank, got = -1;
    const int32_t sources[] = {-1, 0, 1};
    ASSERT_TRUE(c->Permute(call, sources, 4, &value, &got).ok());
    EXPECT_EQ(got, rank == 0 ? 0 : rank - 1);
    ASSERT_TRUE(c->Broadcast(call, 2, 4, &value, &got).ok());
    EXPECT_EQ(got, 2);
  });
}

TEST(Collectives, AbortFreesThoseWhoWait) {
  auto c = MakeInProcessCollectives();
  std::thread waiting([&] {
    int in = 0, out = 0;
    Status status = c->AllGather({.op = 1, .rank = 0, .size = 2}, 1, 4, &in, &out);
    EXPECT_EQ(status.message(), "device 1 failed");
  });
  c->Abort(Internal("device 1 failed"));
  waiting.join();
  int x = 0;
  EXPECT_FALSE(c->Broadcast({.op = 2, .rank = 0, .size = 2}, 0, 4, &x, &x).ok());
}

TEST(Collectives, WhoDoesNotComeIsNamed) {
  auto c = MakeInProcessCollectives(std::chrono::milliseconds(30));
  const int32_t members[] = {2, 5, 7};
  int x = 0;
  Status status = c->AllReduce({.op = 1, .rank = 1, .size = 3, .members = members}, ElementType::S32,
                               ReductionKind::kSum, 1, &x, &x);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("devices 2, 7 "), std::string::npos) << status.message();
  // Late comers hear of it at once.
  EXPECT_FALSE(c->Broadcast({.op = 2, .rank = 0, .size = 2}, 0, 4, &x, &x).ok());
}

TEST(Collectives, MisuseIsRefused) {
  auto c = MakeInProcessCollectives();
  int x = 0;
  EXPECT_FALSE(c->AllReduce({.rank = 3, .size = 2}, ElementType::S32, ReductionKind::kSum, 1, &x, &x).ok());
  const int32_t none[] = {5, 0}, short_list[] = {1};
  EXPECT_FALSE(c->Permute({.rank = 0, .size = 2}, none, 4, &x, &x).ok());
  EXPECT_FALSE(c->Permute({.rank = 0, .size = 2}, short_list, 4, &x, &x).ok());
  EXPECT_FALSE(c->Broadcast({.rank = 0, .size = 2}, -1, 4, &x, &x).ok());
}

template <class T>
T Reduce(ElementType type, ReductionKind kind, T a, T b) {
  EXPECT_TRUE(Accumulate(type, kind, 1, &a, &b).ok());
  return a;
}

// Devices with programs of their own that do not fit: no one reads beyond another's memory, and no one waits for ever.
TEST(Collectives, ExchangesThatDifferAreRefused) {
  std::shared_ptr<Collectives> c = MakeInProcessCollectives();
  Status statuses[2];
  auto fail = [&](int rank, Status status) {
    c->Abort(status);
    statuses[rank] = std::move(status);
  };
  std::thread other([&] {
    float x[4] = {};
    fail(0, c->AllReduce({.op = 1, .rank = 0, .size = 2}, ElementType::F32, ReductionKind::kSum, 4, x, x));
  });
  float y[2] = {};
  fail(1, c->AllGather({.op = 1, .rank = 1, .size = 2}, 1, 8, y, y));
  other.join();
  // Whoever comes second says so, and both hear it.
  EXPECT_EQ(statuses[0].message(), statuses[1].message());
  EXPECT_NE(statuses[0].message().find("all-gather of 1 x 8"), std::string::npos) << statuses[0].message();
}

TEST(Accumulate, AllTypes) {
  EXPECT_EQ(Reduce<int8_t>(ElementType::S8, ReductionKind::kSum, 127, 1), -128);
  EXPECT_EQ(Reduce<int64_t>(ElementType::S64, ReductionKind::kProduct, INT64_MAX, 2), -2);
  EXPECT_EQ(Reduce<uint16_t>(ElementType::U16, ReductionKind::kProduct, 0xffff, 0xffff), 1);
  EXPECT_EQ(Reduce<uint32_t>(ElementType::U32, ReductionKind::kOr, 5, 10), 15u);
  EXPECT_EQ(Reduce<uint8_t>(ElementType::Pred, ReductionKind::kSum, 1, 1), 1);
  EXPECT_EQ(Reduce<uint8_t>(ElementType::Pred, ReductionKind::kMin, 1, 0), 0);
  EXPECT_EQ(Reduce<int8_t>(ElementType::S4, ReductionKind::kSum, 7, 1), -8);
  EXPECT_EQ(Reduce<uint8_t>(ElementType::U4, ReductionKind::kSum, 15, 2), 1);
  EXPECT_EQ(Reduce<double>(ElementType::F64, ReductionKind::kMax, 1, 2), 2);
  EXPECT_TRUE(std::isnan(Reduce<float>(ElementType::F32, ReductionKind::kMax, NAN, 2)));
  EXPECT_TRUE(std::isnan(Reduce<float>(ElementType::F32, ReductionKind::kMin, 2, NAN)));
  EXPECT_EQ(Reduce<uint16_t>(ElementType::BF16, ReductionKind::kSum, 0x3f80, 0x4000), 0x4040);     // 1 + 2
  EXPECT_EQ(Reduce<uint16_t>(ElementType::F16, ReductionKind::kProduct, 0x4000, 0x4200), 0x4600);  // 2 * 3
  float a[2] = {1, 2}, b[2] = {3, 4};
  EXPECT_TRUE(Accumulate(ElementType::C64, ReductionKind::kProduct, 1, a, b).ok());
  EXPECT_EQ(a[0], -5);
  EXPECT_EQ(a[1], 10);
  EXPECT_EQ(Accumulate(ElementType::C64, ReductionKind::kMax, 1, a, b).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Accumulate(ElementType::F32, ReductionKind::kAnd, 1, a, b).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Accumulate(ElementType::Token, ReductionKind::kSum, 1, a, b).code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace strop
