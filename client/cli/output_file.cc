#include "output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace quantd::cli {
namespace {

// Names of incomplete files, where a signal handler can read them: a name that does not fit is not
// removed.
std::array<std::atomic<char*>, 8> incomplete{};

void Remember(const std::string& path) {
  char* copy = strdup(path.c_str());
  for (auto& slot : incomplete) {
    char* expected = nullptr;
    if (slot.compare_exchange_strong(expected, copy)) return;
  }
  free(copy);
}

void Forget(const std::string& path) {
  for (auto& slot : incomplete) {
    char* name = slot.load();
    if (name != nullptr && path == name && slot.compare_exchange_strong(name, nullptr)) {
      free(name);
      return;
    }
  }
}

extern "C" void RemoveAndExit(int signal_number) {
  for (auto& slot : incomplete) {
    const char* name = slot.load();
    if (name != nullptr) unlink(name);
  }
  _exit(128 + signal_number);
}

}  // namespace

void RemoveIncompleteFilesOnSignal() {
  struct sigaction action = {};
  action.sa_handler = RemoveAndExit;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

absl::Status OutputFile::Create(const std::string& path, uint64_t size) {
  path_ = path;
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                              S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  temporary_ = temporary;
  Remember(temporary_);
  // The space is taken first: writing to a mapping of a full disk would kill the program.
  int error = size == 0 ? 0 : posix_fallocate(descriptor, 0, static_cast<off_t>(size));
  if (error == 0 && size > 0) {
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) {
      error = errno;
    } else {
      bytes_ = {static_cast<uint8_t*>(address), size};
    }
  }
  close(descriptor);
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", size, " bytes to ", path));
}

absl::Status OutputFile::Commit() {
  Unmap();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path_));
  }
  Forget(temporary_);
  temporary_.clear();
  return absl::OkStatus();
}

void OutputFile::Unmap() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

OutputFile::~OutputFile() {
  Unmap();
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  Forget(temporary_);
}

}  // namespace quantd::cli
