// The calls that are measured, the servers that are compared, and the sides that call them.
#ifndef QUANTD_TESTS_BENCH_SERVERS_H_
#define QUANTD_TESTS_BENCH_SERVERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "bench.h"
#include "client.h"
#include "process.h"
#include "turns.h"

namespace quantd::bench {

struct Config {
  // A method; a "Stream" has DynamicQuantize items. FLOAT and UINT8 with one scale;
  // QuantizeEmbeddings has RANGES and embeddings of 1,024 values.
  std::string operation;
  bool unix_socket = false;
  size_t bytes = 0;              // of x
  int in_flight = 1;             // calls, or streams
  int window = 1;                // a Stream's items in flight
  int connections = 1;           // calls go to them in turn
  bool report_error = false;     // for Quantize: ten times the work
  bool shared = false;           // tensors in regions "x" and "y"
  std::string certificate = {};  // that of a server with TLS, PEM; empty: plain text
  double seconds = 0.06;         // of a turn, unless --seconds says otherwise

  // "Quantize tcp 1 MiB x 4", " x 8" for a window, ", 4 connections" if there are several.
  std::string Name() const;
};

// "/service/" and the name.
std::string Method(const std::string& name);

// The message of one call or one item, with the same tensors as an Operation.
std::string Request(const Config& config);

// Starts quantd with room for the largest requests. `name` tells several apart.
Process StartQuantd(const std::string& name, const std::vector<std::string>& flags = {},
                    const std::vector<int>& cpus = {},
                    const std::string& binary = absl::GetFlag(FLAGS_binary));
// The older quantd of --before; null: none is given.
std::unique_ptr<Process> StartBefore(const std::string& name,
                                     const std::vector<std::string>& flags = {});
// `tls`: the path of its certificate's files without ending, see echo.cc.
Process StartEcho(const std::string& name, const std::string& tls = {});

// The address of a server for a configuration.
const std::string& Address(const Process& server, const Config& config);

// One client to a server, which stays connected; see Client.
std::shared_ptr<Client> Connect(const Process& server, const Config& config);

// A side that calls quantd, or another server with its methods. Makes a client if none is given.
Side Calling(const std::string& name, const Process& server, const Config& config,
             std::shared_ptr<Client> client = nullptr);
// A side that calls the echo, after telling it how long quantd's replies are.
Side CallingEcho(const Process& echo, const Process& quantd, const Config& config);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_SERVERS_H_
