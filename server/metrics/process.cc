// See process.h; the fields of /proc/self/stat are in proc(5).
#include "server/metrics/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

// Read from a descriptor that stays open, because none may be free when it is needed.
std::string ReadStat() {
  static const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  std::array<char, 1024> text;
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

double CountOpenFiles(double most) {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return errno == EMFILE ? most : 0;  // none is left to read it
  int entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries - 3;  // ".", ".." and the directory itself
}

// The boot time of the machine in seconds since 1970.
double BootTime() {
  for (const absl::string_view line : absl::StrSplit(ReadFile("/proc/stat"), '\n')) {
    if (line.substr(0, 6) == "btime ") return std::atof(std::string(line.substr(6)).c_str());
  }
  return 0;
}

}  // namespace

ProcessStatus ReadProcessStatus() {
  ProcessStatus status;
  const std::string stat = ReadStat();
  // The second field is the program's name in parentheses, which may contain spaces.
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
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) status.max_fds = static_cast<double>(limit.rlim_cur);
  status.open_fds = CountOpenFiles(status.max_fds);
  return status;
}

}  // namespace quantd::metrics
