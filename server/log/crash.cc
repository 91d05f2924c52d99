// See crash.h. The handler allocates nothing and takes no lock: it uses data that was copied
// before.
#include "server/log/crash.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "server/log/log.h"

namespace quantd::log {
namespace {

constexpr int kFrames = 48;
// The first two are OnCrash and the kernel's return from it.
constexpr int kOwnFrames = 2;
// If the stack can't be walked, or the log's reader is stuck, the process ends after this time.
constexpr unsigned kMostSeconds = 5;
constexpr time_t kLogSeconds = 2;
constexpr int kWriteMilliseconds = 200;
constexpr int kSignals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

// Written once, before the handler is installed.
struct State {
  int descriptor = 2;
  bool json = false;
  char version[32] = {};
  char build_id[64] = {};
};
constinit State state;
std::atomic<int> crashed_thread{0};
std::atomic<int> crashed_by{0};

void CopyText(absl::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// A line in a buffer of its own. glibc's vsnprintf takes no lock and no memory for these
// conversions.
class Line {
 public:
  explicit Line(const char* event) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    // gmtime_r may take a lock.
    const absl::CivilSecond time = absl::CivilSecond(1970, 1, 1) + now.tv_sec;
    Add("%s%04ld-%02d-%02dT%02d:%02d:%02dZ", state.json ? "{\"time\":\"" : "",
        static_cast<long>(time.year()), time.month(), time.day(), time.hour(), time.minute(),
        time.second());
    Add(state.json ? "\",\"level\":\"error\",\"message\":\"%s\"" : " quantd: error: %s", event);
  }
  Line& Text(const char* name, const char* value) {
    char safe[512];
    CopyText(value, safe, sizeof(safe));
    for (char* c = safe; *c != '\0'; ++c) {
      if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '_';
    }
    const bool quoted = state.json || std::strchr(safe, ' ') != nullptr;
    const char* const quote = quoted ? "\"" : "";
    return Add(state.json ? ",\"%s\":%s%s%s" : " %s=%s%s%s", name, quote, safe, quote);
  }
  Line& Number(const char* name, int64_t value) {
    return Add(state.json ? ",\"%s\":%ld" : " %s=%ld", name, static_cast<long>(value));
  }
  Line& Address(const char* name, uintptr_t value) {
    return Add(state.json ? ",\"%s\":\"0x%lx\"" : " %s=0x%lx", name, value);
  }
  void Write() {
    Add(state.json ? "}\n" : "\n");
    size_t done = 0;
    while (done < size_) {
      // The log's own descriptor; its reader may be stuck.
      pollfd polled = {state.descriptor, POLLOUT, 0};
      if (poll(&polled, 1, kWriteMilliseconds) <= 0) return;
      const ssize_t wrote = write(state.descriptor, bytes_ + done, size_ - done);
      if (wrote <= 0) return;
      done += static_cast<size_t>(wrote);
    }
  }

 private:
  __attribute__((format(printf, 2, 3))) Line& Add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(bytes_ + size_, sizeof(bytes_) - size_, format, values);
    va_end(values);
    if (length > 0) size_ = std::min(size_ + static_cast<size_t>(length), sizeof(bytes_) - 1);
    return *this;
  }

  char bytes_[1024];
  size_t size_ = 0;
};

// ---- The handler

// If a call never returns, its return address may be the first one of another function. So the
// address before it, which is inside of the call, is looked up.
void WriteFrame(int number, void* address) {
  auto* const at = static_cast<char*>(address) - (number > 0 ? 1 : 0);
  const auto value = reinterpret_cast<uintptr_t>(at);
  Line line("frame");
  line.Number("n", number);
  // Unlike dladdr, this takes no lock.
  dl_find_object found;
  if (_dl_find_object(at, &found) == 0) {
    const char* const path = found.dlfo_link_map->l_name;
    const char* const slash = std::strrchr(path, '/');
    // The program itself has no name here.
    line.Text("module", *path == '\0' ? "quantd" : slash == nullptr ? path : slash + 1);
    line.Address("offset", value - found.dlfo_link_map->l_addr);
  } else {
    line.Address("address", value);
  }
  char symbol[512];
  if (absl::Symbolize(at, symbol, sizeof(symbol))) line.Text("symbol", symbol);
  line.Write();
}

// Installs a handler, and unblocks the signal.
void HandleBy(void (*handler)(int), int number) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

// Ends the process as if the signal were not handled.
[[noreturn]] void EndBy(int number) {
  HandleBy(SIG_DFL, number);
  raise(number);
  _exit(128 + number);  // the first process of a container has no default actions
}

void OnAlarm(int /*number*/) { EndBy(crashed_by.load()); }

void OnCrash(int number, siginfo_t* info, void* /*context*/) {
  const auto thread = static_cast<int>(syscall(SYS_gettid));
  int nobody = 0;
  if (!crashed_thread.compare_exchange_strong(nobody, thread)) {
    if (nobody == thread) EndBy(number);  // a crash inside of this handler
    for (;;) pause();                     // the crash in another thread ends the process
  }
  crashed_by.store(number);
  HandleBy(OnAlarm, SIGALRM);
  alarm(kMostSeconds);

  // Writes what was logged before, which shows the cause. Its thread may have to wait for a core.
  constexpr timespec kPause = {0, 1'000'000};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const time_t end = now.tv_sec + kLogSeconds;
  for (; now.tv_sec < end && !Idle(); clock_gettime(CLOCK_MONOTONIC, &now)) {
    nanosleep(&kPause, nullptr);
  }

  const char* const name = sigabbrev_np(number);
  Line line("crashed");
  char full[16] = "SIG";
  CopyText(name == nullptr ? "?" : name, full + 3, sizeof(full) - 3);
  line.Text("signal", full).Number("number", number);
  if (info->si_code > 0) {
    line.Address("address", reinterpret_cast<uintptr_t>(info->si_addr));
  } else {
    line.Number("sent_by", info->si_pid);
  }
  line.Text("version", state.version).Text("build_id", state.build_id).Number("thread", thread);
  line.Write();

  void* frames[kFrames + kOwnFrames];
  const int count = backtrace(frames, kFrames + kOwnFrames);
  for (int i = kOwnFrames; i < count; ++i) WriteFrame(i - kOwnFrames, frames[i]);
  EndBy(number);
}

int FindBuildId(dl_phdr_info* info, size_t /*size*/, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto* at = reinterpret_cast<const uint8_t*>(info->dlpi_addr + part.p_vaddr);
    const uint8_t* const end = at + part.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
      const uint8_t* const name = at + sizeof(note);
      const uint8_t* const text = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        for (size_t byte = 0; byte < note.n_descsz; ++byte) {
          absl::StrAppend(static_cast<std::string*>(found), absl::Hex(text[byte], absl::kZeroPad2));
        }
        return 1;
      }
      at = text + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;  // only for the program, which comes first
}

// This program's GNU build id in hexadecimal, or "".
std::string BuildId() {
  std::string id;
  dl_iterate_phdr(FindBuildId, &id);
  return id;
}

}  // namespace

void InstallCrashHandler(const CrashSettings& settings) {
  state.descriptor = settings.descriptor;
  state.json = settings.json;
  CopyText(settings.version, state.version, sizeof(state.version));
  CopyText(BuildId(), state.build_id, sizeof(state.build_id));
  absl::InitializeSymbolizer("/proc/self/exe");
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads the unwinder now

  // For this thread only: others have a megabyte of stack and no recursion.
  constexpr size_t kStack = 64 << 10;
  stack_t stack = {};
  stack.ss_size = kStack;
  stack.ss_sp = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

}  // namespace quantd::log
