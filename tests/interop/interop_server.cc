// quantd with grpc.testing.TestService, and with the flags of gRPC's own interop servers:
//
//   interop_server --port=10000 --use_tls=true --tls_cert_file=server.pem --tls_key_file=server.key
//
// All other flags are quantd's. Serves until SIGTERM or SIGINT.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/log/log.h"
#include "server/options/options.h"
#include "server/process/descriptors.h"
#include "server/process/malloc.h"
#include "server/process/ready_file.h"
#include "server/process/signals.h"
#include "server/server.h"
#include "test_service.h"

namespace {

namespace server = quantd::server;

// Translates gRPC's flags to quantd's.
std::vector<std::string> Translate(int argc, char** argv) {
  std::vector<std::string> flags = {argv[0]};
  std::string certificate, key, port = "0";
  bool use_tls = false;
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    if (absl::ConsumePrefix(&flag, "--port=")) {
      port = std::string(flag);
    } else if (absl::ConsumePrefix(&flag, "--use_tls=")) {
      use_tls = flag == "true" || flag == "1";
    } else if (absl::ConsumePrefix(&flag, "--tls_cert_file=")) {
      certificate = std::string(flag);
    } else if (absl::ConsumePrefix(&flag, "--tls_key_file=")) {
      key = std::string(flag);
    } else {
      flags.emplace_back(flag);
    }
  }
  flags.push_back(absl::StrCat("--listen=127.0.0.1:", port));
  if (use_tls) {
    flags.push_back("--tls_cert=" + certificate);
    flags.push_back("--tls_key=" + key);
  }
  return flags;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "interop_server: %s\n", std::string(status.message()).c_str());
  return 2;
}

int Run(int argc, char** argv) {
  quantd::process::KeepFreedMemory();
  quantd::process::BlockSignals();
  quantd::process::RaiseDescriptorLimit();
  const std::vector<std::string> flags = Translate(argc, argv);
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  const auto line = server::ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
  if (!line.ok()) return Fail(line.status());
  const server::Options& options = line->options;
  quantd::log::Start({.level = options.log_level, .format = options.log_format});
  auto running = server::Server::Start(options, quantd::interop::AddTestService);
  if (!running.ok()) return Fail(running.status());
  std::printf("listening on %s\n", (*running)->grpc_addresses().front().c_str());
  std::fflush(stdout);
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
