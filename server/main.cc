// quantd: reads the options, starts the server, waits for a signal, drains, ends.
//
// Exit codes: 0 after a drain, 2 when an option is wrong or an address, the ready file or threads
// can't be had, 128 + n when a second signal n came during the drain.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/options/options.h"
#include "server/process/descriptors.h"
#include "server/process/malloc.h"
#include "server/process/ready_file.h"
#include "server/process/signals.h"
#include "server/server.h"

namespace {

using quantd::server::CommandLine;
using quantd::server::Request;
using quantd::server::Server;

void Log(const std::string& text) {
  std::fprintf(stderr, "%s quantd: %s\n",
               absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()).c_str(),
               text.c_str());
}

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "quantd: %s\n", quantd::server::OneLine(status.message()).c_str());
  return 2;
}

int Run(int argc, char** argv) {
  quantd::process::OpenStandardDescriptors();
  quantd::process::KeepFreedMemory();
  quantd::process::BlockSignals();
  quantd::process::RaiseDescriptorLimit();

  absl::StatusOr<CommandLine> command_line = quantd::server::ParseCommandLine(argc, argv);
  if (!command_line.ok()) return Refuse(command_line.status());
  if (command_line->request == Request::kHelp) {
    std::fputs(quantd::server::HelpText().c_str(), stdout);
    return 0;
  }
  if (command_line->request == Request::kVersion) {
    std::puts("quantd " QUANTD_VERSION);
    return 0;
  }

  const quantd::server::Options& options = command_line->options;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  if (!server.ok()) return Refuse(server.status());
  Log(absl::StrCat("configuration version=" QUANTD_VERSION " target=", (*server)->target(), " ",
                   quantd::server::Describe(options)));
  for (const std::string& note : (*server)->notes()) Log(note);
  Log(absl::StrCat("listening grpc=", absl::StrJoin((*server)->grpc_addresses(), ","),
                   " http=", (*server)->http_address(), " pid=", getpid()));
  int exit_code = 0;
  absl::Duration lame_duck = options.lame_duck;
  if (!options.ready_file.empty()) {
    const absl::Status status = quantd::process::WriteReadyFile(
        options.ready_file, (*server)->grpc_addresses(), (*server)->http_address());
    if (!status.ok()) {
      exit_code = Refuse(status);
      lame_duck = absl::ZeroDuration();  // nobody has heard of it
    }
  }
  if (exit_code == 0) {
    const int signal = quantd::process::WaitForSignal();
    Log(absl::StrCat("draining signal=", signal));
    quantd::process::ExitAtNextSignal();
  }
  (*server)->Drain(lame_duck);
  Log("stopped");
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
