// A server as a process of its own, and what it uses: CPU time, page faults, memory.
#ifndef QUANTD_TESTS_BENCH_PROCESS_H_
#define QUANTD_TESTS_BENCH_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "turns.h"

namespace quantd::bench {

class Process {
 public:
  // Starts the program and waits until `ready_file` exists, unless its name is empty. If that takes
  // longer than 20 s, this process ends. `cpus`: the CPUs that it may use; empty: all.
  Process(const std::vector<std::string>& command, const std::string& ready_file,
          const std::vector<int>& cpus = {});
  // Kills it.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The addresses in the ready file.
  const std::vector<std::string>& addresses() const { return addresses_; }
  Usage Read() const;

 private:
  pid_t pid_ = -1;
  std::vector<std::string> addresses_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_PROCESS_H_
