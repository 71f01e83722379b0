#include "strop/runtime/launch_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "strop/runtime/event.h"
#include "strop/runtime/transfer_queue.h"

namespace strop {
namespace {

TEST(LaunchQueue, RunsOneAtATimeInOrder) {
  LaunchQueue queue;
  std::vector<int> order;
  std::atomic<int> running{0};
  for (int i = 0; i < 100; ++i) {
    queue.Enqueue([&, i] {
      EXPECT_EQ(running++, 0);
      EXPECT_TRUE(LaunchQueue::OnLaunchThread());
      order.push_back(i);
      running--;
    });
  }
  queue.Drain();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_FALSE(LaunchQueue::OnLaunchThread());
}

TEST(LaunchQueue, DestructorRunsWhatIsQueued) {
  std::atomic<int> ran{0};
  {
    LaunchQueue queue;
    for (int i = 0; i < 20; ++i) queue.Enqueue([&] { ran++; });
  }
  EXPECT_EQ(ran, 20);
}

// A launch waits for one that is queued behind it: what a host callback does that computes on its own device.
TEST(LaunchQueue, NestedWaitsDoNotDeadlock) {
  LaunchQueue queue;
  std::atomic<int> depth{0};
  std::function<void(int)> nest = [&](int levels) {
    if (levels == 0) return;
    EventRef inner = Make<Event>();
    queue.Enqueue([&, inner, levels] {
      depth++;
      nest(levels - 1);
      inner->Set(OkStatus());
    });
    EXPECT_TRUE(inner->Await().ok());
  };
  nest(20);
  EXPECT_EQ(depth, 20);
}

TEST(LaunchQueue, ManyCallersWithBlockingLaunches) {
  LaunchQueue queue;
  std::atomic<int> ran{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        EventRef outer = Make<Event>();
        queue.Enqueue([&, outer] {
          EventRef inner = Make<Event>();
          queue.Enqueue([&, inner] {
            ran++;
            inner->Set(OkStatus());
          });
          (void)inner->Await();
          outer->Set(OkStatus());
        });
        (void)outer->Await();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  queue.Drain();
  EXPECT_EQ(ran, 200);
}

// Launches `count` executions of `bytes` that take a moment each; returns the most that were under way at once.
int MostUnderWay(int count, int64_t bytes) {
  LaunchQueue queue;
  std::atomic<int> under_way{0};
  int most = 0;
  for (int i = 0; i < count; ++i) {
    queue.Began(bytes);
    most = std::max(most, ++under_way);
    queue.Enqueue([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      --under_way;
      queue.Ended(bytes);
    });
    queue.AwaitRoom();
  }
  queue.Drain();
  return most;
}

TEST(LaunchQueue, CallersDoNotRunAheadWithoutEnd) {
  EXPECT_LE(MostUnderWay(200, 0), 33);
  EXPECT_LE(MostUnderWay(50, int64_t{1} << 30), 3);
}

// What is under way may wait for what this caller has not done yet.
TEST(LaunchQueue, RoomIsNotAwaitedOfWhatStandsStill) {
  LaunchQueue queue;
  for (int i = 0; i < 100; ++i) {  // their inputs are not there
    queue.Began(int64_t{1} << 30);
    queue.AwaitRoom();
  }
  EventRef from_caller = Make<Event>();
  for (int i = 0; i < 40; ++i) {
    queue.Began(0);
    queue.Enqueue([&] {
      EXPECT_TRUE(from_caller->Await().ok());
      queue.Ended(0);
    });
    queue.AwaitRoom();
  }
  from_caller->Set(OkStatus());
  queue.Drain();
}

TEST(TransferQueue, ChecksSizesAndCloses) {
  TransferQueue queue;
  ASSERT_TRUE(queue.Push({1, 2, 3}).ok());
  ASSERT_TRUE(queue.Push({4}).ok());
  uint8_t out[3];
  ASSERT_TRUE(queue.Pop(out).ok());
  EXPECT_EQ(out[2], 3);
  EXPECT_EQ(queue.Pop(out).code(), StatusCode::kInvalidArgument);  // one byte came, three were wanted
  std::atomic<bool> cancelled{true};
  EXPECT_EQ(queue.Pop(out, &cancelled).code(), StatusCode::kCancelled);
  std::thread reader([&] { EXPECT_EQ(queue.PopAny().status().code(), StatusCode::kCancelled); });
  queue.Close();
  reader.join();
  EXPECT_EQ(queue.Push({}).code(), StatusCode::kCancelled);
}

TEST(TransferQueue, WriterWaitsWhenFull) {
  TransferQueue queue(2);
  std::thread writer([&] {
    for (uint8_t i = 0; i < 50; ++i) ASSERT_TRUE(queue.Push({i}).ok());
  });
  for (uint8_t i = 0; i < 50; ++i) {
    EXPECT_LE(queue.size(), 2u);
    EXPECT_EQ((*queue.PopAny())[0], i);
  }
  writer.join();
}

}  // namespace
}  // namespace strop
