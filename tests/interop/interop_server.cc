// quantd with grpc.testing.TestService, and with quantd's flags. Serves until SIGTERM or SIGINT.
#include <cstdio>
#include <string>

#include "server/log/log.h"
#include "server/options/options.h"
#include "server/process/limits.h"
#include "server/process/malloc.h"
#include "server/process/notify.h"
#include "server/process/signals.h"
#include "server/server.h"
#include "test_service.h"

namespace {

namespace server = quantd::server;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "interop_server: %s\n", std::string(status.message()).c_str());
  return 2;
}

int Run(int argc, char** argv) {
  quantd::process::KeepFreedMemory();
  quantd::process::BlockSignals();
  quantd::process::RaiseDescriptorLimit();
  const auto line = server::ParseCommandLine(argc, argv);
  if (!line.ok()) return Fail(line.status());
  const server::Options& options = line->options;
  quantd::log::Start({.level = options.log_level, .format = options.log_format});
  auto running = server::Server::Start(options, quantd::interop::AddTestService);
  if (!running.ok()) return Fail(running.status());
  if (!options.ready_file.empty()) {
    const absl::Status written = quantd::process::WriteReadyFile(
        options.ready_file, (*running)->grpc_addresses(), (*running)->http_address());
    if (!written.ok()) return Fail(written);
  }
  quantd::process::WaitForSignal(absl::ZeroDuration(), [] {});
  (*running)->Drain(absl::ZeroDuration());
  quantd::log::Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
