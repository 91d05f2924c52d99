#include "server/process/threads.h"

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::process {

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
