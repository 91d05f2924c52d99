// A process that is in the way of others: it keeps large calls in flight until it is killed.
#ifndef QUANTD_TESTS_BENCH_RPC_FLOOD_H_
#define QUANTD_TESTS_BENCH_RPC_FLOOD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rpc_servers.h"

namespace quantd::bench {

// Runs for as long as the object lives.
class Flood {
 public:
  // Calls `large` of the server from so many connections; returns when the first one is answered.
  // `name` tells several apart. `echo`: the server is one, and `large` has been told to it (Side).
  // At the lowest priority (19) it stands for another machine, whose own work nobody waits for.
  Flood(const Options& options, const std::string& name, const Process& server, const Config& large,
        int connections = 1, bool echo = false, int niceness = 19);

  // Calls that have been answered.
  uint64_t calls() const;

 private:
  const std::string file_;
  const Process process_;
};

// The process: rpc_bench --flood ADDRESS METHOD OPERATION BYTES REPORT IN_FLIGHT CONNECTIONS
// NICENESS FILE calls METHOD with OPERATION's message, and keeps {"grpc": [], "calls": N} in FILE.
int RunFlood(const std::vector<std::string>& arguments);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_FLOOD_H_
