// The pool: every task once, never more threads than asked for, and what limits them.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "pool/default_threads.h"
#include "pool/tasks.h"
#include "quantd/executor.h"

namespace quantd {
namespace {

TEST(Executor, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 8}) {
    const Executor executor(threads);
    EXPECT_EQ(executor.threads(), threads);
    for (size_t tasks : {0, 1, 2, 7, 100}) {
      std::vector<int> runs(tasks, 0);
      executor.ParallelFor(tasks, [&](size_t task) { ++runs[task]; });
      EXPECT_EQ(runs, std::vector<int>(tasks, 1)) << threads << " threads";
    }
  }
}

TEST(Executor, OneTaskStaysOnTheCallersThread) {
  const Executor executor(4);
  std::thread::id ran;
  executor.ParallelFor(1, [&](size_t) { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(Executor, NeverMoreAtWorkThanThreads) {
  const Executor executor(2);
  std::atomic<int> working{0};
  std::atomic<int> most{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        executor.ParallelFor(8, [&](size_t) {
          const int now = ++working;
          int seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          std::this_thread::sleep_for(std::chrono::microseconds(50));
          --working;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(most.load(), 2);
}

TEST(Executor, UsesAllThreads) {
  // More than this machine may have: the pool is as large as was asked for.
  const Executor executor(5);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int round = 0; round < 50 && seen.size() < 5; ++round) {
    executor.ParallelFor(20, [&](size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::lock_guard<std::mutex> lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  }
  EXPECT_GE(seen.size(), 5u);
}

TEST(Executor, StartsItsThreadsWhenItIsTold) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const Executor executor(6);
  executor.StartThreads();
  EXPECT_GE(threads(), 6 + 1);
}

TEST(Executor, RunsEnqueuedJobsEvenWithOneThread) {
  for (int threads : {1, 2}) {
    std::atomic<int> done{0};
    {
      const Executor executor(threads);
      for (int i = 0; i < 100; ++i) {
        executor.Enqueue([&] { executor.ParallelFor(3, [&](size_t) { ++done; }); });
      }
    }  // waits for the jobs
    EXPECT_EQ(done.load(), 300);
  }
}

TEST(Executor, EnqueueDoesNotWait) {
  const Executor executor(1);
  std::mutex held;
  std::atomic<bool> ran{false};
  held.lock();
  executor.Enqueue([&] {
    std::lock_guard<std::mutex> lock(held);
    ran = true;
  });
  EXPECT_FALSE(ran.load());
  held.unlock();
}

TEST(DefaultThreads, AtLeastOneAndNoMoreThanTheAffinity) {
  const int all = Executor::DefaultThreads();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, AffinityCpus());
  // On a thread of its own, so that the mask of this one stays.
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(AffinityCpus(), 1);
    EXPECT_EQ(Executor::DefaultThreads(), 1);
  }).join();
}

class QuotaCpusTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/quantd_quota_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(QuotaCpusTest, NothingLimits) {
  EXPECT_EQ(QuotaCpus(root_), 0);
  Write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(QuotaCpus(root_), 0);
  Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(QuotaCpus(root_), 0);
}

TEST_F(QuotaCpusTest, Version2RoundsUpAndTakesTheSmallestAncestor) {
  Write("/proc/self/cgroup", "0::/pods/one\n");
  Write("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/pods/cpu.max", "250000 100000\n");
  EXPECT_EQ(QuotaCpus(root_), 3);
  Write("/sys/fs/cgroup/pods/one/cpu.max", "50000 100000\n");
  EXPECT_EQ(QuotaCpus(root_), 1);
}

TEST_F(QuotaCpusTest, Version2InAContainerThatSeesTheHostsPath) {
  Write("/proc/self/cgroup", "0::/docker/0123\n");
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(QuotaCpus(root_), 2);
}

TEST_F(QuotaCpusTest, Version1) {
  Write("/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/a\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(QuotaCpus(root_), 4);
  Write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(QuotaCpus(root_), 0);
}

TEST_F(QuotaCpusTest, NonsenseIsNoLimit) {
  Write("/proc/self/cgroup", "nonsense\n0:\n0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "-5 0\n");
  EXPECT_EQ(QuotaCpus(root_), 0);
}

TEST(TaskSplit, CoversEveryElementOnce) {
  for (int64_t elements : {1, 63, 64, 65, 100'000, 1'000'003}) {
    for (int64_t align : {1, 64, 37, 2'000'000}) {
      for (int threads : {1, 2, 7}) {
        for (uint64_t bytes : {uint64_t{1}, uint64_t{200'000}, uint64_t{1} << 30}) {
          const TaskSplit split(elements, bytes, threads, align);
          int64_t at = 0;
          for (size_t task = 0; task < split.tasks(); ++task) {
            ASSERT_EQ(split.begin(task), at);
            ASSERT_EQ(at % align, 0);
            ASSERT_GT(split.end(task), at);
            at = split.end(task);
          }
          ASSERT_EQ(at, elements);
          ASSERT_LE(split.tasks(),
                    threads == 1 ? 1u : std::max<uint64_t>(4u * threads, bytes >> 20));
        }
      }
    }
  }
}

}  // namespace
}  // namespace quantd
