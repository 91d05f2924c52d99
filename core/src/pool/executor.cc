// The pool of threads: oneTBB's workers in two arenas, one for jobs and one that outside callers
// join while they work. Each has at most `threads` at work, whatever the number of callers.
//
// A pool that has been idle for a millisecond takes some 20 us to wake: a single request of 1 MiB
// then takes 29 us on two threads and 19 on one, of 4 MiB 58 and 70. Within 100 us after the last
// request it is awake: 10 and 17.
#include "quantd/executor.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "pool/default_threads.h"

#ifdef QUANTD_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace quantd {
namespace {

// ThreadSanitizer does not see the hand-offs inside of Debian's libtbb, which is not instrumented.
// So this file is not instrumented either (oneTBB's templates would be reported), and declares what
// they order.
void HappensBefore([[maybe_unused]] void* object) {
#ifdef QUANTD_TSAN
  __tsan_release(object);
#endif
}
void HappensAfter([[maybe_unused]] void* object) {
#ifdef QUANTD_TSAN
  __tsan_acquire(object);
#endif
}

// By default oneTBB makes one worker fewer than the host has CPUs, which suits a program whose main
// thread computes, too. Here callers come and go, so a pool of n needs n workers. The limit is one
// for the process: the largest pool alive decides.
class WorkerLimit {
 public:
  explicit WorkerLimit(int threads) : threads_(threads) {
    std::lock_guard<std::mutex> lock(mutex());
    pools().insert(threads_);
    Apply();
  }
  ~WorkerLimit() {
    std::lock_guard<std::mutex> lock(mutex());
    pools().erase(pools().find(threads_));
    Apply();
  }
  WorkerLimit(const WorkerLimit&) = delete;
  WorkerLimit& operator=(const WorkerLimit&) = delete;

 private:
  using Control = oneapi::tbb::global_control;

  static std::mutex& mutex() {
    static auto* instance = new std::mutex;  // never destroyed, because pools may outlive it
    return *instance;
  }
  static std::multiset<int>& pools() {
    static auto* instance = new std::multiset<int>;
    return *instance;
  }
  static void Apply() {
    static auto* control = new std::unique_ptr<Control>;
    control->reset();  // the smallest of all controls counts, so the old one is removed first
    if (pools().empty()) return;
    *control = std::make_unique<Control>(Control::max_allowed_parallelism,
                                         static_cast<size_t>(*pools().rbegin()) + 1);
  }

  const int threads_;
};

// The pool whose job this thread is running.
thread_local const void* job_of = nullptr;

}  // namespace

struct Executor::Arena {
  explicit Arena(int threads)
      : limit(threads),
        jobs_arena(threads, /*reserved_for_masters=*/0),
        callers_arena(threads, /*reserved_for_masters=*/1) {
    jobs_arena.initialize();
    callers_arena.initialize();
  }

  WorkerLimit limit;
  // Jobs are run by workers only. An outside caller needs a place of its own: workers that look for
  // more work hold all the others, and a caller without a place sleeps until a worker has done its
  // work for it (1 MiB by 2 threads: 35 us, not 10).
  oneapi::tbb::task_arena jobs_arena;
  oneapi::tbb::task_arena callers_arena;
  std::mutex mutex;
  std::condition_variable idle;
  size_t jobs = 0;  // enqueued and not yet done
};

Executor::Executor(int threads)
    : threads_(threads >= 1 ? threads : DefaultThreads()),
      arena_(std::make_unique<Arena>(threads_)) {}

Executor::~Executor() {
  std::unique_lock<std::mutex> lock(arena_->mutex);
  arena_->idle.wait(lock, [this] { return arena_->jobs == 0; });
}

void Executor::ParallelFor(size_t tasks, absl::FunctionRef<void(size_t)> body) const {
  if (tasks <= 1 || threads_ == 1) {
    for (size_t task = 0; task < tasks; ++task) body(task);
    return;
  }
  char order = 0;
  HappensBefore(&order);
  oneapi::tbb::task_arena& arena =
      job_of == arena_.get() ? arena_->jobs_arena : arena_->callers_arena;
  arena.execute([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<size_t>(0, tasks, 1),
        [&](const oneapi::tbb::blocked_range<size_t>& range) {
          HappensAfter(&order);
          for (size_t task = range.begin(); task != range.end(); ++task) body(task);
          HappensBefore(&order);
        },
        oneapi::tbb::simple_partitioner());
  });
  HappensAfter(&order);
}

void Executor::StartThreads() const {
  if (threads_ == 1) return;  // ParallelFor needs no workers then
  struct Meeting {
    std::mutex mutex;
    std::condition_variable complete;
    int missing;
  };
  // The last of them frees it. Its count of owners is not seen by ThreadSanitizer either.
  const std::shared_ptr<Meeting> meeting(new Meeting, [](Meeting* last) {
    HappensAfter(last);
    delete last;
  });
  meeting->missing = threads_;
  const auto meet = [meeting](int arriving) {
    {
      std::unique_lock<std::mutex> lock(meeting->mutex);
      meeting->missing -= arriving;
      if (meeting->missing == 0) meeting->complete.notify_all();
      meeting->complete.wait_for(lock, std::chrono::seconds(1),
                                 [&meeting] { return meeting->missing == 0; });
    }
    HappensBefore(meeting.get());
  };
  // None returns before all have started, so each has a thread of its own.
  for (int i = 0; i < threads_; ++i) Enqueue([meet] { meet(1); });
  meet(0);
}

void Executor::Enqueue(std::function<void()> job) const {
  Arena* arena = arena_.get();
  {
    std::lock_guard<std::mutex> lock(arena->mutex);
    ++arena->jobs;
  }
  HappensBefore(arena);
  struct Held {
    mutable std::function<void()> job;  // oneTBB calls through a const reference
  };
  arena->jobs_arena.enqueue([arena, held = Held{std::move(job)}] {
    HappensAfter(arena);
    const void* const outer = std::exchange(job_of, arena);
    held.job();
    held.job = nullptr;  // frees what it holds before the pool may be destroyed
    job_of = outer;
    std::lock_guard<std::mutex> lock(arena->mutex);
    if (--arena->jobs == 0) arena->idle.notify_all();
  });
}

int Executor::DefaultThreads() {
  const int quota = QuotaCpus("");
  const int affinity = AffinityCpus();
  return quota > 0 ? std::min(quota, affinity) : affinity;
}

}  // namespace quantd
