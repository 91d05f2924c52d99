// See crash.h. The handler allocates nothing and takes no lock: what it needs is copied before.
#include "server/log/crash.h"

#include <execinfo.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "server/log/log.h"

namespace quantd::log {
namespace {

constexpr int kFrames = 48;
// If the stack can't be walked, or nobody takes the lines, the process ends after so long.
constexpr unsigned kMostSeconds = 5;
constexpr int kWriteMilliseconds = 200;
constexpr int kMostPauses = 100;

struct Known {
  int number;
  const char* name;
};
constexpr Known kSignals[] = {{SIGSEGV, "SIGSEGV"},
                              {SIGABRT, "SIGABRT"},
                              {SIGBUS, "SIGBUS"},
                              {SIGFPE, "SIGFPE"},
                              {SIGILL, "SIGILL"}};

// A part of the program that is in memory: what addresses are told by.
struct Module {
  uintptr_t base;
  uintptr_t end;
  char name[48];
};

// Written once, before the handler is there.
struct State {
  int descriptor = 2;
  bool json = false;
  char version[32] = {};
  char build_id[64] = {};
  std::array<Module, 64> modules = {};
  size_t module_count = 0;
};
constinit State state;
std::atomic<int> crashed_thread{0};
std::atomic<int> crashed_by{0};

void CopyText(absl::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

int AddModule(dl_phdr_info* info, size_t /*size*/, void* /*unused*/) {
  if (state.module_count == state.modules.size()) return 1;
  Module& module = state.modules[state.module_count++];
  const absl::string_view path = info->dlpi_name;
  // The program comes first, and has no name.
  CopyText(path.empty() ? "quantd" : path.substr(path.rfind('/') + 1), module.name,
           sizeof(module.name));
  module.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) {
      module.end = std::max(module.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
    }
  }
  return 0;
}

// ---- A line, put together in a buffer of its own.

class Line {
 public:
  explicit Line(const char* event) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (state.json) {
      Add("{\"time\":\"");
      AddTime(now.tv_sec);
      Add("\",\"level\":\"error\",\"message\":\"");
      Add(event);
      Add("\"");
    } else {
      AddTime(now.tv_sec);
      Add(" quantd: error: ");
      Add(event);
    }
  }
  Line& Text(const char* name, const char* value) {
    Name(name);
    const bool quoted = state.json || std::strchr(value, ' ') != nullptr;
    if (quoted) Add("\"");
    for (const char* c = value; *c != '\0'; ++c) {
      AddOne(*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\' ? *c : '_');
    }
    if (quoted) Add("\"");
    return *this;
  }
  Line& Number(const char* name, uint64_t value) {
    Name(name);
    AddNumber(value, 10, 1);
    return *this;
  }
  Line& Address(const char* name, uint64_t value) {
    Name(name);
    Add(state.json ? "\"0x" : "0x");
    AddNumber(value, 16, 1);
    if (state.json) Add("\"");
    return *this;
  }
  void Write() {
    Add(state.json ? "}\n" : "\n");
    size_t done = 0;
    while (done < size_) {
      // The log's own descriptor, whose reader may have stopped.
      pollfd polled = {state.descriptor, POLLOUT, 0};
      if (poll(&polled, 1, kWriteMilliseconds) <= 0) return;
      const ssize_t wrote = write(state.descriptor, bytes_ + done, size_ - done);
      if (wrote <= 0) return;
      done += static_cast<size_t>(wrote);
    }
  }

 private:
  void AddOne(char c) {
    if (size_ < sizeof(bytes_) - 4) bytes_[size_++] = c;
  }
  void Add(const char* text) {
    while (*text != '\0') {
      if (size_ < sizeof(bytes_)) bytes_[size_++] = *text;
      ++text;
    }
  }
  void Name(const char* name) {
    Add(state.json ? ",\"" : " ");
    Add(name);
    Add(state.json ? "\":" : "=");
  }
  void AddNumber(uint64_t value, unsigned radix, int digits) {
    char text[24];
    int count = 0;
    do {
      text[count++] = "0123456789abcdef"[value % radix];
      value /= radix;
    } while (value != 0);
    for (int i = count; i < digits; ++i) Add("0");
    while (count > 0) AddOne(text[--count]);
  }
  // gmtime_r may take a lock.
  void AddTime(int64_t seconds) {
    const absl::CivilSecond time = absl::CivilSecond(1970, 1, 1) + seconds;
    const int parts[] = {time.month(), time.day(), time.hour(), time.minute(), time.second()};
    AddNumber(static_cast<uint64_t>(time.year()), 10, 4);
    for (int i = 0; i < 5; ++i) {
      AddOne("--T::"[i]);
      AddNumber(static_cast<uint64_t>(parts[i]), 10, 2);
    }
    Add("Z");
  }

  char bytes_[1024];
  size_t size_ = 0;
};

// ---- The handler

void WriteFrame(uint64_t number, void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  Line line("frame");
  line.Number("n", number);
  for (size_t i = 0; i < state.module_count; ++i) {
    const Module& module = state.modules[i];
    if (at < module.base || at >= module.end) continue;
    line.Text("module", module.name).Address("offset", at - module.base);
    break;
  }
  char symbol[512];
  if (absl::Symbolize(address, symbol, sizeof(symbol))) {
    line.Text("symbol", symbol);
  } else {
    line.Address("address", at);
  }
  line.Write();
}

// As if nobody had handled the signal.
[[noreturn]] void EndBy(int number) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(number, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(number);
  _exit(128 + number);  // a container's first process has no default actions
}

void OnAlarm(int /*number*/) { EndBy(crashed_by.load()); }

void OnCrash(int number, siginfo_t* info, void* /*context*/) {
  const auto thread = static_cast<int>(syscall(SYS_gettid));
  int nobody = 0;
  if (!crashed_thread.compare_exchange_strong(nobody, thread)) {
    if (nobody == thread) EndBy(number);  // in here
    for (;;) pause();                     // another thread's crash ends the process
  }
  crashed_by.store(number);
  struct sigaction action = {};
  action.sa_handler = OnAlarm;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  alarm(kMostSeconds);

  // What was logged before: it says how it came to this.
  constexpr timespec kPause = {0, 1'000'000};
  for (int i = 0; i < kMostPauses && !Idle(); ++i) nanosleep(&kPause, nullptr);

  const char* name = "?";
  for (const Known& known : kSignals) {
    if (known.number == number) name = known.name;
  }
  Line line("crashed");
  line.Text("signal", name).Number("number", static_cast<uint64_t>(number));
  if (info->si_code > 0) {
    line.Address("address", reinterpret_cast<uintptr_t>(info->si_addr));
  } else {
    line.Number("sent_by", static_cast<uint64_t>(info->si_pid));
  }
  line.Text("version", state.version).Text("build_id", state.build_id);
  line.Number("thread", static_cast<uint64_t>(thread));
  line.Write();

  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  for (int i = 0; i < count; ++i) WriteFrame(static_cast<uint64_t>(i), frames[i]);
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
  return 1;  // only of the program, which comes first
}

}  // namespace

std::string BuildId() {
  std::string id;
  dl_iterate_phdr(FindBuildId, &id);
  return id;
}

void InstallCrashHandler(const CrashSettings& settings) {
  state.descriptor = settings.descriptor;
  state.json = settings.json;
  CopyText(settings.version, state.version, sizeof(state.version));
  CopyText(BuildId(), state.build_id, sizeof(state.build_id));
  dl_iterate_phdr(AddModule, nullptr);
  absl::InitializeSymbolizer("/proc/self/exe");
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads the unwinder now

  // Of this thread only: others run with a megabyte of stack and no recursion.
  constexpr size_t kStack = 64 << 10;
  stack_t stack = {};
  stack.ss_size = kStack;
  stack.ss_sp = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const Known& known : kSignals) sigaction(known.number, &action, nullptr);
}

}  // namespace quantd::log
