#include "files/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace quantd::cli {
namespace {

// Written by the program, and read by a handler on any thread at any time.
struct Mapping {
  std::atomic<const uint8_t*> begin{nullptr};  // null: the slot is free
  std::atomic<size_t> size{0};
  // Changes only while the slot is free, when no handler uses it.
  std::array<char, PATH_MAX> path{};
};
// A handler may be using such a name, so it is never freed: one leak per output.
std::array<std::atomic<const char*>, 16> incomplete{};
std::array<Mapping, 16> mappings;
std::atomic<bool> waiting{false};
std::atomic<int> waited_for{0};
std::atomic<bool> ends{false};

void Say(const char* text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return;
}

void RemoveIncomplete() {
  for (auto& slot : incomplete) {
    const char* name = slot.load();
    if (name != nullptr) unlink(name);
  }
}

extern "C" void RemoveAndExit(int signal_number) {
  if (waiting.load()) {
    waited_for.store(signal_number);
    return;
  }
  RemoveIncomplete();
  _exit(128 + signal_number);
}

extern "C" void NameAndExit(int, siginfo_t* info, void*) {
  const auto* address = static_cast<const uint8_t*>(info->si_addr);
  const char* path = "a file";
  for (const Mapping& mapping : mappings) {
    const uint8_t* begin = mapping.begin.load();
    if (begin != nullptr && address >= begin && address < begin + mapping.size.load()) {
      path = mapping.path.data();
    }
  }
  // Several computing threads may fault at the same time: only one of them reports it.
  while (ends.exchange(true)) pause();
  RemoveIncomplete();
  Say("quantctl: ");
  Say(path);
  Say(" was cut off, or its disk failed, while it was in use\n");
  _exit(2);
}

}  // namespace

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = RemoveAndExit;
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  const auto handle = [&action](int number) {
    struct sigaction before;
    // nohup ignores SIGHUP; a caller that ignores SIGPIPE wants an error instead.
    const bool known = sigaction(number, nullptr, &before) == 0;
    if (known && before.sa_handler == SIG_DFL) sigaction(number, &action, nullptr);
  };
  for (const int number : {SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM,
                           SIGPROF, SIGIO, SIGPWR, SIGSTKFLT}) {
    handle(number);
  }
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) handle(number);
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = NameAndExit;
  sigaction(SIGBUS, &action, nullptr);
}

SignalsWait::SignalsWait() { waiting.store(true); }

SignalsWait::~SignalsWait() {
  waiting.store(false);
  if (const int number = waited_for.load(); number != 0) RemoveAndExit(number);
}

void RemoveOnSignal(const std::string& path) {
  const char* copy = strdup(path.c_str());
  for (auto& slot : incomplete) {
    const char* expected = nullptr;
    if (slot.compare_exchange_strong(expected, copy)) return;
  }
}

void KeepOnSignal(const std::string& path) {
  for (auto& slot : incomplete) {
    const char* name = slot.load();
    if (name != nullptr && path == name) slot.store(nullptr);
  }
}

void NameOnSignal(absl::Span<const uint8_t> mapping, const std::string& path) {
  for (Mapping& slot : mappings) {
    if (slot.begin.load() != nullptr) continue;
    slot.size.store(mapping.size());
    slot.path[path.copy(slot.path.data(), slot.path.size() - 1)] = '\0';
    slot.begin.store(mapping.data());
    return;
  }
}

void ForgetMapping(absl::Span<const uint8_t> mapping) {
  for (Mapping& slot : mappings) {
    if (slot.begin.load() == mapping.data()) slot.begin.store(nullptr);
  }
}

}  // namespace quantd::cli
