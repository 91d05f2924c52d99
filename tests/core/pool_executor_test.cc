// The pool: every task runs once, never on more threads than were asked for, and what limits them.
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "pool/default_threads.h"
#include "pool/first.h"
#include "pool/tasks.h"
#include "pool/watch.h"
#include "quantd/executor.h"
#include "quantd/shared_executor.h"

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

TEST(SharedExecutor, IsOneForEachNumberOfThreads) {
  EXPECT_EQ(&SharedExecutor(2), &SharedExecutor(2));
  EXPECT_NE(&SharedExecutor(2), &SharedExecutor(3));
  for (const int threads : {1, 2, 3}) EXPECT_EQ(SharedExecutor(threads).threads(), threads);
}

// Neither ThreadSanitizer nor the emulator in which tests for arm64 run can handle fork().
#if !defined(__SANITIZE_THREAD__) && !defined(__aarch64__)
TEST(SharedExecutor, OfAForkedChildIsTheCallersThread) {
  EXPECT_EQ(SharedExecutor(2).threads(), 2);
  const pid_t child = fork();
  if (child == 0)
    _exit(SharedExecutor(2).threads() == 1 && SharedExecutor(3).threads() == 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

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
  EXPECT_LE(most.load(), 2);
}

// A place where threads wait for each other: each that arrives is a different thread.
class Meeting {
 public:
  explicit Meeting(int threads) : missing_(threads) {}
  // Whether all of them arrived.
  bool Meet() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--missing_ == 0) complete_.notify_all();
    return complete_.wait_for(lock, std::chrono::seconds(60), [this] { return missing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable complete_;
  int missing_;
};

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

// oneTBB's workers belong to the process: the largest pool decides how many there may be.
TEST(Executor, WorkersAreAsManyAsTheLargestPoolNeeds) {
  using oneapi::tbb::global_control;
  const auto allowed = [] {
    return global_control::active_value(global_control::max_allowed_parallelism);
  };
  const size_t without = allowed();
  {
    const Executor five(5);
    EXPECT_EQ(allowed(), 6u);
    {
      const Executor two(2);
      const Executor nine(9);
      EXPECT_EQ(allowed(), 10u);
    }
    EXPECT_EQ(allowed(), 6u);
  }
  EXPECT_EQ(allowed(), without);
}

TEST(DefaultThreads, AtLeastOneAndNoMoreThanTheAffinity) {
  const int all = Executor::DefaultThreads();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, AffinityCpus());
  cpu_set_t mask[64];
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), mask), 0);
  EXPECT_EQ(AffinityCpus(), CPU_COUNT_S(sizeof(mask), mask));
  // In a new thread, so that this one keeps its mask.
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

TEST_F(QuotaCpusTest, NonsenseIsNoLimit) {
  Write("/proc/self/cgroup", "nonsense\n0:\n0::/\n");
  for (const char* max : {"-5 0\n", "5 0\n", "0 5\n", "-5 -1\n", "5\n", "5 5 5\n", "5 x\n", "\n"}) {
    Write("/sys/fs/cgroup/cpu.max", max);
    EXPECT_EQ(QuotaCpus(root_), 0) << max;
  }
  Write("/sys/fs/cgroup/cpu.max", "5 1\n");
  EXPECT_EQ(QuotaCpus(root_), 5);
  Write("/sys/fs/cgroup/cpu.max", "9000000000000000000 1\n");
  EXPECT_EQ(QuotaCpus(root_), 1 << 20) << "more than an int holds";
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

TEST(TaskSplit, AsManyTasksAsAreWorthIt) {
  constexpr uint64_t kSmall = TaskSplit::kBytesPerTask;
  const auto tasks = [](uint64_t bytes, int threads, size_t most = SIZE_MAX) {
    return TaskSplit(1 << 20, bytes, threads, 64, most).tasks();
  };
  EXPECT_EQ(tasks(0, 4), 1u);
  EXPECT_EQ(tasks(2 * kSmall - 1, 4), 1u);
  EXPECT_EQ(tasks(2 * kSmall, 4), 2u);
  EXPECT_EQ(tasks(2 * kSmall, 1), 1u) << "one thread has nobody to share with";
  EXPECT_EQ(tasks(64 * kSmall, 2), 8u) << "four a thread";
  EXPECT_EQ(tasks(256 * kSmall, 2), 32u) << "of at most a MiB";
  EXPECT_EQ(tasks(256 * kSmall, 2, 3), 3u);
  EXPECT_EQ(TaskSplit(128, 2 * kSmall, 2, 64).end(0), 64) << "no more than it must be";
  EXPECT_EQ(TaskSplit(130, 2 * kSmall, 2, 64).end(0), 128);
}

TEST(ForEachTask, WithoutAPoolOneAfterTheOther) {
  EXPECT_EQ(ThreadsOf(nullptr), 1);
  std::vector<size_t> ran;
  ForEachTask(nullptr, 3, [&](size_t task) { ran.push_back(task); });
  EXPECT_EQ(ran, (std::vector<size_t>{0, 1, 2}));
  const Executor executor(3);
  EXPECT_EQ(ThreadsOf(&executor), 3);
  std::atomic<int> runs{0};
  ForEachTask(&executor, 7, [&](size_t) { ++runs; });
  EXPECT_EQ(runs.load(), 7);
}

TEST(Watch, TheFirstAnswerIsForAll) {
  int asked = 0;
  const auto interrupted = [&] { return ++asked >= 3; };
  Watch watch(interrupted);
  EXPECT_FALSE(watch.Stopped());
  EXPECT_FALSE(watch.Stopped());
  EXPECT_FALSE(watch.WasStopped());
  EXPECT_TRUE(watch.Stopped());
  EXPECT_TRUE(watch.WasStopped());
  EXPECT_TRUE(watch.Stopped());
  EXPECT_EQ(asked, 3) << "nobody asks again";
}

TEST(TaskWatch, AsksAtOnceAndThenOnceAPeriod) {
  constexpr int64_t kPeriod = TaskWatch::kPeriod;
  int asked = 0;
  const auto interrupted = [&] {
    ++asked;
    return false;
  };
  Watch watch(interrupted);
  TaskWatch task(watch);
  const auto asks = [&](int64_t bytes) {
    const int before = asked;
    EXPECT_FALSE(task.StoppedBefore(bytes));
    return asked - before;
  };
  EXPECT_EQ(asks(kPeriod - 1), 1);
  EXPECT_EQ(asks(1), 0);
  EXPECT_EQ(asks(kPeriod / 2), 1) << "a period was done";
  EXPECT_EQ(asks(kPeriod / 2), 0);
  EXPECT_EQ(asks(1), 1);
  watch.Stop();
  EXPECT_FALSE(task.StoppedBefore(kPeriod)) << "not due";
  EXPECT_TRUE(task.StoppedBefore(1));
}

}  // namespace
}  // namespace quantd
