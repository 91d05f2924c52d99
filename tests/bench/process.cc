#include "process.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quantd::bench {

Process::Process(const std::vector<std::string>& command, const std::string& ready_file,
                 const std::vector<int>& cpus) {
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with the benchmark
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    if (!cpus.empty()) sched_setaffinity(0, sizeof(set), &set);
    // Keeps its log out of the tables.
    if (!ready_file.empty() && freopen((ready_file + ".log").c_str(), "w", stderr) == nullptr) {
      _exit(127);
    }
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  if (ready_file.empty()) return;
  for (int i = 0; i < 2000; ++i) {
    std::ifstream file(ready_file);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (json.contains("grpc")) {
      addresses_ = json["grpc"].get<std::vector<std::string>>();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fprintf(stderr, "%s did not start: see %s.log\n", command[0].c_str(), ready_file.c_str());
  std::exit(1);
}

Process::~Process() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Usage Process::Read() const {
  Usage usage;
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) == 0 && clock_gettime(clock, &time) == 0) {
    usage.cpu_seconds = static_cast<double>(time.tv_sec) + time.tv_nsec / 1e9;
  }
  std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> fields = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  // proc(5) numbers fields from 1; fields[0] is number 3.
  if (fields.size() > 21) {
    if (!absl::SimpleAtoi(fields[10 - 3], &usage.minor_faults)) usage.minor_faults = 0;
    uint64_t pages = 0;
    if (absl::SimpleAtoi(fields[24 - 3], &pages)) {
      usage.resident_bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    }
  }
  return usage;
}

}  // namespace quantd::bench
