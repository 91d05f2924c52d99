// See process.h; the fields of /proc/self/stat are in proc(5).
#include "server/metrics/process.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace quantd::metrics {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

double CountOpenFiles() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries - 3;  // ".", ".." and the directory itself
}

// Seconds since 1970 at which the machine started.
double BootTime() {
  for (const absl::string_view line : absl::StrSplit(ReadFile("/proc/stat"), '\n')) {
    if (line.substr(0, 6) == "btime ") return std::atof(std::string(line.substr(6)).c_str());
  }
  return 0;
}

}  // namespace

ProcessStatus ReadProcessStatus() {
  ProcessStatus status;
  const std::string stat = ReadFile("/proc/self/stat");
  // The second field is the program's name in parentheses and may hold spaces.
  const size_t name_end = stat.rfind(')');
  if (name_end != std::string::npos) {
    const std::vector<std::string> fields =
        absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
    // proc(5) numbers fields from 1; fields[0] is number 3.
    const auto field = [&fields](size_t number) {
      return number - 3 < fields.size() ? std::atof(fields[number - 3].c_str()) : 0.0;
    };
    const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    static const double boot_time = BootTime();
    status.cpu_seconds = (field(14) + field(15)) / ticks;
    status.threads = field(20);
    status.start_time_seconds = boot_time + field(22) / ticks;
    status.virtual_bytes = field(23);
    status.resident_bytes = field(24) * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  status.open_fds = CountOpenFiles();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) status.max_fds = static_cast<double>(limit.rlim_cur);
  return status;
}

}  // namespace quantd::metrics
