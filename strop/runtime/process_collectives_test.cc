// Collectives over processes that are threads here: what each device gets is what it gets in one process.
#include "strop/runtime/process_collectives.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace strop {
namespace {

class MemoryStore : public KeyValueStore {
 public:
  Status Put(std::string_view key, std::string_view value) override {
    std::lock_guard<std::mutex> lock(mutex_);
    values_.emplace(key, value);
    return OkStatus();
  }
  Result<std::string> Get(std::string_view key, Milliseconds) override { return TryGet(key); }
  Result<std::string> TryGet(std::string_view key) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto at = values_.find(std::string(key));
    if (at == values_.end()) return NotFound(key);
    return at->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

// Messages that have been sent, by receiver, sender and tag.
struct Post {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<int32_t, int32_t, uint64_t>, std::string> messages;
};

class PostedTransfer : public Transfer {
 public:
  PostedTransfer(Post* post, std::tuple<int32_t, int32_t, uint64_t> key, void* to, int64_t bytes)
      : post_(post), key_(key), to_(to), bytes_(bytes) {}
  Status Wait(Milliseconds timeout) override {
    if (!to_) return OkStatus();
    std::unique_lock<std::mutex> lock(post_->mutex);
    const bool in_time =
        post_->changed.wait_for(lock, timeout, [&] { return cancelled_ || post_->messages.count(key_) > 0; });
    if (cancelled_) return Status(StatusCode::kCancelled, "cancelled");
    if (!in_time) return Status(StatusCode::kDeadlineExceeded, "nothing came");
    EXPECT_EQ(static_cast<int64_t>(post_->messages[key_].size()), bytes_);
    std::copy(post_->messages[key_].begin(), post_->messages[key_].end(), static_cast<char*>(to_));
    post_->messages.erase(key_);
    return OkStatus();
  }
  void Cancel() override {
    std::lock_guard<std::mutex> lock(post_->mutex);
    cancelled_ = true;
    post_->changed.notify_all();
  }

 private:
  Post* post_;
  std::tuple<int32_t, int32_t, uint64_t> key_;
  void* to_;
  int64_t bytes_;
  bool cancelled_ = false;
};

class PostTransport : public Transport {
 public:
  PostTransport(Post* post, int32_t rank) : post_(post), rank_(rank) {}
  Result<std::unique_ptr<Transfer>> Send(int32_t peer, uint64_t tag, const void* data, int64_t bytes) override {
    std::lock_guard<std::mutex> lock(post_->mutex);
    const std::tuple<int32_t, int32_t, uint64_t> key(peer, rank_, tag);
    EXPECT_EQ(post_->messages.count(key), 0u) << "two messages with one tag";
    post_->messages[key].assign(static_cast<const char*>(data), static_cast<size_t>(bytes));
    post_->changed.notify_all();
    return std::unique_ptr<Transfer>(new PostedTransfer(post_, key, nullptr, bytes));
  }
  Result<std::unique_ptr<Transfer>> Receive(int32_t peer, uint64_t tag, void* data, int64_t bytes) override {
    return std::unique_ptr<Transfer>(new PostedTransfer(post_, {rank_, peer, tag}, data, bytes));
  }

 private:
  Post* post_;
  int32_t rank_;
};

// Some processes; `process_of` says whose each device is. Device ids are logical ids.
struct World {
  World(std::vector<int32_t> owners, Milliseconds timeout = std::chrono::seconds(60)) : process_of(std::move(owners)) {
    const int32_t size = 1 + *std::max_element(process_of.begin(), process_of.end());
    for (int32_t rank = 0; rank < size; ++rank)
      groups.push_back(std::make_shared<ProcessGroup>(ProcessPlace{.rank = rank, .size = size, .timeout = timeout},
                                                      process_of, std::make_unique<PostTransport>(&post, rank), store,
                                                      "test"));
  }
  // One launch: by process.
  std::vector<std::shared_ptr<Collectives>> Launch() const {
    std::vector<int32_t> devices(process_of.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::vector<std::shared_ptr<Collectives>> out;
    for (const std::shared_ptr<ProcessGroup>& group : groups) out.push_back(group->Join(devices));
    return out;
  }

  Post post;
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::vector<int32_t> process_of;
  std::vector<std::shared_ptr<ProcessGroup>> groups;
};

using Body = std::function<void(Collectives&, int32_t device, std::vector<int32_t>& out)>;

// What each device writes, its collectives being collectives[process_of[device]].
std::vector<std::vector<int32_t>> OnDevices(const std::vector<std::shared_ptr<Collectives>>& collectives,
                                            const std::vector<int32_t>& process_of, const Body& body) {
  std::vector<std::vector<int32_t>> out(process_of.size());
  std::vector<std::thread> threads;
  for (int32_t id = 0; id < static_cast<int32_t>(process_of.size()); ++id)
    threads.emplace_back([&, id] { body(*collectives[process_of[id]], id, out[id]); });
  for (std::thread& thread : threads) thread.join();
  return out;
}

void ExpectAsInOneProcess(const std::vector<int32_t>& process_of, const Body& body) {
  const std::vector<int32_t> one(process_of.size(), 0);
  const auto expected = OnDevices({MakeInProcessCollectives()}, one, body);
  World world(process_of);
  EXPECT_EQ(OnDevices(world.Launch(), process_of, body), expected);
  EXPECT_TRUE(world.post.messages.empty());
}

std::vector<int32_t> Numbers(int32_t device, int64_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = 1000 * device + static_cast<int32_t>(i * i % 997);
  return out;
}

// Processes with devices in turn, of different numbers, and as most programs have them.
const std::vector<std::vector<int32_t>> kWorlds = {{0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {2, 0, 0, 1, 0, 2}};

TEST(ProcessCollectives, AllReduce) {
  // The large one goes by shares; 7 elements are fewer than some have shares.
  for (const auto& process_of : kWorlds) {
    for (const int64_t count : {1, 7, 300007}) {
      ExpectAsInOneProcess(process_of, [&](Collectives& c, int32_t device, std::vector<int32_t>& out) {
        out = Numbers(device, count);
        const auto size = static_cast<int32_t>(process_of.size());
        for (int trip = 0; trip < 3; ++trip)  // in place
          EXPECT_TRUE(c.AllReduce({.op = 4, .rank = device, .size = size}, ElementType::S32, ReductionKind::kSum, count,
                                  out.data(), out.data())
                          .ok());
      });
    }
  }
}

TEST(ProcessCollectives, GatherScatterExchange) {
  for (const auto& process_of : kWorlds) {
    for (const int64_t outer : {1, 3}) {
      ExpectAsInOneProcess(process_of, [&](Collectives& c, int32_t device, std::vector<int32_t>& out) {
        const auto size = static_cast<int32_t>(process_of.size());
        constexpr int64_t kBlock = 5;
        const std::vector<int32_t> in = Numbers(device, outer * size * kBlock);
        std::vector<int32_t> gathered(in.size()), exchanged(in.size()), part(static_cast<size_t>(outer * kBlock));
        CollectiveCall call{.op = 1, .rank = device, .size = size};
        EXPECT_TRUE(c.AllGather(call, outer, kBlock * 4, in.data(), gathered.data()).ok());
        call.op = 2;
        EXPECT_TRUE(c.AllToAll(call, outer, kBlock * 4, in.data(), exchanged.data()).ok());
        call.op = 3;
        EXPECT_TRUE(
            c.ReduceScatter(call, ElementType::S32, ReductionKind::kMax, outer, kBlock, in.data(), part.data()).ok());
        for (const std::vector<int32_t>* values : {&gathered, &exchanged, &part})
          out.insert(out.end(), values->begin(), values->end());
      });
    }
  }
}

TEST(ProcessCollectives, PermuteAndBroadcast) {
  for (const auto& process_of : kWorlds) {
    ExpectAsInOneProcess(process_of, [&](Collectives& c, int32_t device, std::vector<int32_t>& out) {
      const auto size = static_cast<int32_t>(process_of.size());
      std::vector<int32_t> sources;
      for (int32_t rank = 0; rank < size; ++rank) sources.push_back(rank == 1 ? -1 : (rank + 1) % size);
      out.assign(3, -1);
      EXPECT_TRUE(c.Permute({.op = 1, .rank = device, .size = size}, sources, 4, &device, &out[0]).ok());
      EXPECT_TRUE(c.Broadcast({.op = 2, .rank = device, .size = size}, size - 1, 4, &device, &out[1]).ok());
      out[2] = device;  // in place
      EXPECT_TRUE(c.Broadcast({.op = 3, .rank = device, .size = size}, 0, 4, &out[2], &out[2]).ok());
    });
  }
}

TEST(ProcessCollectives, GroupsInsideAndAcross) {
  const std::vector<int32_t> process_of = {0, 0, 1, 1};
  ExpectAsInOneProcess(process_of, [&](Collectives& c, int32_t device, std::vector<int32_t>& out) {
    const std::vector<std::vector<int32_t>> kGroups[] = {{{0, 1}, {3, 2}}, {{0, 2}, {3, 1}}, {{0, 3, 1}, {2}}};
    int64_t op = 0;
    for (const auto& groups : kGroups) {
      ++op;
      for (size_t g = 0; g < groups.size(); ++g) {
        const auto at = std::find(groups[g].begin(), groups[g].end(), device);
        if (at == groups[g].end()) continue;
        const CollectiveCall call{.op = op,
                                  .group = static_cast<int64_t>(g),
                                  .rank = static_cast<int32_t>(at - groups[g].begin()),
                                  .size = static_cast<int32_t>(groups[g].size()),
                                  .members = groups[g]};
        std::vector<int32_t> gathered(groups[g].size());
        EXPECT_TRUE(c.AllGather(call, 1, 4, &device, gathered.data()).ok());
        out.insert(out.end(), gathered.begin(), gathered.end());
      }
    }
  });
}

TEST(ProcessCollectives, WhoIsSilentIsNamed) {
  World world({0, 0, 1, 2}, Milliseconds(200));
  const auto launch = world.Launch();
  std::vector<Status> statuses(4);
  OnDevices(launch, world.process_of, [&](Collectives& c, int32_t device, std::vector<int32_t>&) {
    if (device == 2) return;
    int x = 0;
    statuses[device] =
        c.AllReduce({.op = 1, .rank = device, .size = 4}, ElementType::S32, ReductionKind::kSum, 1, &x, &x);
  });
  for (const int device : {0, 1, 3})
    EXPECT_NE(statuses[device].message().find("process 1 (devices 2 of the program) did not come"), std::string::npos)
        << statuses[device].message();
}

// An error in one process is heard in the others long before they would give up, by the store.
TEST(ProcessCollectives, AnErrorIsToldToAll) {
  World world({0, 1});
  const auto launch = world.Launch();
  std::thread fails([&] { launch[1]->Abort(Internal("no memory for x")); });
  int x = 0;
  const Status status =
      launch[0]->AllReduce({.op = 1, .rank = 0, .size = 2}, ElementType::S32, ReductionKind::kSum, 1, &x, &x);
  fails.join();
  EXPECT_EQ(status.message(), "process 1 gave up: no memory for x");
  // The next launch works.
  const auto next = world.Launch();
  OnDevices(next, world.process_of, [&](Collectives& c, int32_t device, std::vector<int32_t>&) {
    EXPECT_TRUE(c.Broadcast({.op = 1, .rank = device, .size = 2}, 0, 4, &device, &device).ok());
  });
}

TEST(ProcessCollectives, MisuseIsRefused) {
  World world({0, 1});
  const auto launch = world.Launch();
  int x = 0;
  EXPECT_FALSE(launch[0]->Broadcast({.rank = 0, .size = 2}, 2, 4, &x, &x).ok());
  EXPECT_FALSE(launch[0]->Broadcast({.rank = 1, .size = 2}, 0, 4, &x, &x).ok());  // the other process's
  EXPECT_FALSE(launch[0]->Broadcast({.rank = 0, .size = 3}, 0, 4, &x, &x).ok());
}

TEST(Transport, LibrariesThatAreNotThere) {
  MemoryStore store;
  const Status status = ConnectProcesses("nccl", {}, "test", store).status();
  EXPECT_EQ(status.message(), "option collectives is \"nccl\"; there are gloo and mpi");
  // Beside this program there is none.
  const Status missing = ConnectProcesses("gloo", {}, "test", store).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(
      missing.message().find("needs libstrop_gloo.so beside the plugin; it is built where the package libgloo-dev"),
      std::string::npos)
      << missing.message();
}

}  // namespace
}  // namespace strop
