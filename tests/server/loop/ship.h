// A thread pool, its loops, and when all of its threads sleep.
#ifndef QUANTD_TESTS_SERVER_LOOP_SHIP_H_
#define QUANTD_TESTS_SERVER_LOOP_SHIP_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "loop_testing.h"
#include "server/loop/thread_pool.h"

namespace quantd::loop {

// Whether a thread sleeps in the kernel.
inline bool Sleeps(const std::filesystem::path& task) {
  std::ifstream stat(task / "stat");
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.substr(name_end + 2, 1) == "S";
}

// Waits until every thread but this one sleeps: then all of the others are parked or lead.
inline void WaitUntilAllSleep() {
  for (int quiet = 0; quiet < 3; ++quiet) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() == std::to_string(gettid()) || Sleeps(task.path())) continue;
      quiet = 0;
    }
    std::this_thread::yield();
  }
}

// A thread pool and its loops, when all threads have started.
struct Ship {
  Ship(int loop_count, int spare) {
    std::vector<Loop*> all;
    for (int i = 0; i < loop_count; ++i) all.push_back(loops.emplace_back(NewLoop()).get());
    thread_pool.emplace(all, spare);
    WaitUntilAllSleep();
  }
  Loop& loop(size_t index = 0) { return *loops[index]; }

  std::vector<std::unique_ptr<Loop>> loops;
  std::optional<ThreadPool> thread_pool;
};

}  // namespace quantd::loop

#endif  // QUANTD_TESTS_SERVER_LOOP_SHIP_H_
