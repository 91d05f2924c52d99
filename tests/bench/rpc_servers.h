// The two servers that are compared, running for as long as the object lives, and turns of theirs.
#ifndef QUANTD_TESTS_BENCH_RPC_SERVERS_H_
#define QUANTD_TESTS_BENCH_RPC_SERVERS_H_

#include <string>
#include <vector>

#include "rpc_client.h"
#include "rpc_process.h"
#include "rpc_requests.h"
#include "rpc_turns.h"

namespace quantd::bench {

// What the command line says.
struct Options {
  bool quick = false;
  int rounds = 0;  // of turns; 0: as many as there is time for
  double turn_seconds = 0.06;
  std::string only;  // text in a row's name, or a section's name
  std::string json;
  std::string quantd;                     // the program
  std::vector<std::string> quantd_flags;  // more flags for it
  std::string folder;                     // for sockets and ready files
};

// quantd, with room for the largest requests. `name` tells several apart.
Process StartQuantd(const Options& options, const std::string& name,
                    const std::vector<std::string>& flags = {}, const std::vector<int>& cpus = {});
// `flags`: its own, see rpc_echo.cc.
Process StartEcho(const Options& options, const std::string& name,
                  const std::vector<int>& cpus = {}, const std::vector<std::string>& flags = {});

// One side of a comparison: a server, and a client that stays connected to it.
class Side {
 public:
  // Of the echo, `like` is quantd: it is asked how long the replies have to be. Null for quantd.
  Side(const Process& server, const Config& config, const Process* like, int connections = 1,
       int threads = 1);

  Load Take(double seconds) { return client_.Run(work_, seconds, server_); }

 private:
  const Process& server_;
  Client client_;
  Work work_;
};

// The address of a server for a configuration.
const std::string& Address(const Process& server, const Config& config);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_SERVERS_H_
