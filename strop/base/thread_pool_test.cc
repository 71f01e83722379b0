#include "strop/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "strop/base/host_limits.h"

namespace strop {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> seen(tasks);
      pool.ParallelFor(tasks, [&](int64_t t) { seen[t]++; });
      for (int64_t t = 0; t < tasks; ++t) EXPECT_EQ(seen[t], 1) << t << " of " << tasks;
    }
  }
}

TEST(ThreadPool, ParticipantsAreDistinctAndSequential) {
  ThreadPool pool(4);
  std::atomic<int> busy[4] = {};
  pool.ParallelForRuns(500, [&](int64_t, int64_t, int participant) {
    ASSERT_GE(participant, 0);
    ASSERT_LT(participant, 4);
    EXPECT_EQ(busy[participant].fetch_add(1), 0);
    std::this_thread::yield();
    busy[participant].fetch_sub(1);
  });
}

// Jobs that follow each other at once, after a moment, and after a sleep, from several callers.
TEST(ThreadPool, WaitingThreadsLoseNoJob) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::atomic<int64_t> count{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 3; ++c) {
      callers.emplace_back([&, c] {
        for (int job = 0; job < 200; ++job) {
          pool.ParallelFor(1 + job % 9, [&](int64_t) { count++; });
          if (job % 50 == c) std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(count, 3 * (22 * 45 + 3));  // 200 jobs: 22 times 1 to 9, then 1 and 2
  }
}

TEST(ThreadPool, NestedCallsRunInline) {
  ThreadPool pool(3);
  std::atomic<int> count{0};
  EXPECT_FALSE(ThreadPool::InTask());
  pool.ParallelFor(10, [&](int64_t) {
    std::thread::id outer = std::this_thread::get_id();
    EXPECT_TRUE(ThreadPool::InTask());
    pool.ParallelFor(10, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      count++;
    });
  });
  EXPECT_EQ(count, 100);
  EXPECT_FALSE(ThreadPool::InTask());
}

TEST(ThreadPool, ManyCallersShareThePool) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) pool.ParallelFor(20, [&](int64_t t) { sum += t; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, int64_t{4} * 200 * 190);
}

TEST(ThreadPool, ScheduledClosuresRunBeforeTheEnd) {
  for (int threads : {1, 3}) {
    std::atomic<int> ran{0};
    {
      ThreadPool pool(threads);
      for (int i = 0; i < 50; ++i) pool.Schedule([&] { ran++; });
    }
    EXPECT_EQ(ran, 50);
  }
}

// ThreadSanitizer does not follow a fork of a process with threads.
#if !defined(__SANITIZE_THREAD__)
TEST(ThreadPool, ChildOfForkRunsInline) {
  ThreadPool pool(3);
  pool.ParallelFor(8, [](int64_t) {});
  pid_t child = fork();
  if (child == 0) {
    int count = 0;
    pool.ParallelFor(100, [&](int64_t) { ++count; });
    pool.Schedule([&] { ++count; });
    _exit(count == 101 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(ThreadPool, SizeFromEnvironment) {
  setenv("STROP_NUM_THREADS", "7", 1);
  EXPECT_EQ(ThreadPool::DefaultSize(), 7);
  for (const char* bad : {"0", "-2", "x", ""}) {
    setenv("STROP_NUM_THREADS", bad, 1);
    EXPECT_EQ(ThreadPool::DefaultSize(), UsableCpus()) << bad;
  }
  unsetenv("STROP_NUM_THREADS");
}

TEST(ThreadPool, OnePoolOfEachSize) {
  ThreadPool& five = ThreadPool::OfSize(5);
  EXPECT_EQ(five.num_threads(), 5);
  EXPECT_EQ(&ThreadPool::OfSize(5), &five);
  EXPECT_EQ(ThreadPool::OfSize(1).num_threads(), 1);
  EXPECT_EQ(&ThreadPool::OfSize(0), &ThreadPool::Default());
}

class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strop-root-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(HostLimits, CgroupV2TightestGroupCounts) {
  FakeRoot root;
  EXPECT_EQ(CgroupCpus(root.path()), 0);
  root.Write("/proc/self/cgroup", "0::/a/b\n");
  root.Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpus(root.path()), 0);
  root.Write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(CgroupCpus(root.path()), 3);
  root.Write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(CgroupCpus(root.path()), 1);
  root.Write("/sys/fs/cgroup/a/memory.max", "1048576\n");
  EXPECT_EQ(UsableMemory(root.path()), 1 << 20);
}

TEST(HostLimits, CgroupV1) {
  FakeRoot root;
  root.Write("/proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/docker/1\n1:name=systemd:/\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpus(root.path()), 0);
  root.Write("/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "200000\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpus(root.path()), 2);
  root.Write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(UsableMemory(root.path()), 4096);
}

TEST(HostLimits, ThisMachine) {
  EXPECT_GE(UsableCpus(), 1);
  EXPECT_LE(UsableCpus(), AffinityCpus());
  EXPECT_GT(UsableMemory(), 0);
}

TEST(HostLimits, SizesOfMemory) {
  EXPECT_EQ(*ParseMemorySize("1500000"), 1500000);
  EXPECT_EQ(*ParseMemorySize("64MiB"), 64 << 20);
  EXPECT_EQ(*ParseMemorySize("1.5 kB"), 1500);
  EXPECT_EQ(*ParseMemorySize("2GB"), 2000000000);
  EXPECT_NEAR(static_cast<double>(*ParseMemorySize("50%")), static_cast<double>(UsableMemory()) / 2, 1e9);
  for (const char* wrong : {"", "much", "MiB", "-1", "0", "1XB", "nan", "inf", "1e300", "5%%", "1 2"})
    EXPECT_FALSE(ParseMemorySize(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace strop
