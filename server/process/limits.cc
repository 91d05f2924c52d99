#include "server/process/limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::process {

int64_t RaiseDescriptorLimit() {
  // Some systems have a limit of a billion, and some code allocates tables of that size.
  constexpr rlim_t kEnough = 1 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t wanted = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur < wanted) {
    const rlimit raised = {wanted, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return static_cast<int64_t>(wanted);
  }
  return static_cast<int64_t>(std::min(limit.rlim_cur, kEnough));
}

void OpenStandardDescriptors() {
  int opened = open("/dev/null", O_RDWR);  // the lowest free number
  while (opened >= 0 && opened <= STDERR_FILENO) opened = open("/dev/null", O_RDWR);
  if (opened >= 0) close(opened);
}

absl::Status TryThreads(int count, absl::string_view purpose) {
  std::latch ended(1);
  std::vector<std::thread> threads;
  absl::Status status;
  try {
    while (static_cast<int>(threads.size()) < count) threads.emplace_back([&] { ended.wait(); });
  } catch (const std::system_error& error) {
    status = absl::UnavailableError(
        absl::StrCat("cannot start ", count, count == 1 ? " thread" : " threads", " for ", purpose,
                     ", only ", threads.size(), ": ", error.code().message(),
                     " (a limit of the container or of the user)"));
  }
  ended.count_down();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace quantd::process
