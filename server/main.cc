// quantd: reads the options, starts the server, waits for a signal, drains, ends. SIGHUP reloads
// certificates and tokens.
//
// Exit codes: 0 after a drain; 2 if an option is wrong, or an address, the ready file or threads
// are not available; 128 + n if a second signal n comes during the drain.
#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/log/crash.h"
#include "server/log/log.h"
#include "server/options/options.h"
#include "server/process/limits.h"
#include "server/process/malloc.h"
#include "server/process/notify.h"
#include "server/process/signals.h"
#include "server/server.h"

namespace {

namespace log = quantd::log;
using quantd::process::Notifier;
using quantd::server::Action;
using quantd::server::CommandLine;
using quantd::server::Options;
using quantd::server::Server;

// The time for ending after the drain: threads end their work, memory is returned.
constexpr absl::Duration kEnding = absl::Seconds(10);

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "quantd: %s\n", quantd::server::OneLine(status.message()).c_str());
  return 2;
}

// Logs the error after the flags have configured the log.
int CannotServe(const Options& options, const absl::Status& status) {
  if (options.log_format != log::Format::kJson) return Refuse(status);
  log::Error("cannot serve", {{"error", status.message()}});
  return 2;
}

void WarnIfBad(const absl::Status& told) {
  if (!told.ok()) log::Warn("cannot tell the service manager", {{"error", told.message()}});
}

// The service manager, if there is one. A failure to notify it does not keep the server from
// serving.
Notifier ServiceManager() {
  absl::StatusOr<Notifier> notifier = Notifier::FromEnvironment();
  if (notifier.ok()) return *std::move(notifier);
  WarnIfBad(notifier.status());
  return {};
}

// Until a signal ends the server, reports to the watchdog as long as the event loops run.
int ServeUntilSignal(Server& server, Notifier& manager) {
  absl::Status last;
  const auto tell = [&] {
    if (!server.Alive()) return;
    const absl::Status told = manager.Alive();
    if (told.code() != last.code()) WarnIfBad(told);
    last = told;
  };
  for (;;) {
    const int signal = quantd::process::WaitForSignal(manager.watchdog_interval(), tell);
    if (signal != SIGHUP) return signal;
    server.Reload();
  }
}

// Serves until a signal ends it. Returns the exit code.
int Serve(const CommandLine& command_line) {
  const Options& options = command_line.options;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  if (!server.ok()) return CannotServe(options, server.status());
  // People at a terminal see what they changed, programs and files everything.
  const bool people = options.log_format == log::Format::kAuto && isatty(STDERR_FILENO) != 0;
  log::Fields configuration = {{"version", QUANTD_VERSION}, {"target", (*server)->target()}};
  for (log::Field& field : quantd::server::Describe(options)) {
    configuration.push_back(std::move(field));
  }
  log::Write(people ? log::Level::kDebug : log::Level::kInfo, "configuration", configuration);
  for (const std::string& note : (*server)->notes()) log::Warn(note);
  const std::string addresses = absl::StrJoin((*server)->grpc_addresses(), ",");
  log::Info("listening",
            {{"grpc", addresses}, {"http", (*server)->http_address()}, {"pid", getpid()}});
  if (people) {
    if (!command_line.changed.empty()) {
      log::Info("changed", {{"flags", absl::StrJoin(command_line.changed, " ")}});
    }
    log::Info(absl::StrCat("try: quantctl info --address=", (*server)->grpc_addresses().front()));
  }
  log::Flush();  // readers of the ready file can then find these lines
  int exit_code = 0;
  absl::Duration lame_duck = options.lame_duck;
  if (!options.ready_file.empty()) {
    const absl::Status status = quantd::process::WriteReadyFile(
        options.ready_file, (*server)->grpc_addresses(), (*server)->http_address());
    if (!status.ok()) {
      exit_code = CannotServe(options, status);
      lame_duck = absl::ZeroDuration();  // nobody has been told about this server yet
    }
  }
  if (exit_code == 0) {
    Notifier manager = ServiceManager();
    WarnIfBad(manager.Ready(quantd::server::OneLine(
        absl::StrCat("serving on ", absl::StrJoin((*server)->grpc_addresses(), ", ")))));
    const int signal = ServeUntilSignal(**server, manager);
    log::Info("draining", {{"signal", signal}});
    quantd::process::ExitAtNextSignal();
    WarnIfBad(manager.Stopping("draining", lame_duck + options.drain + kEnding));
  }
  const bool ended = (*server)->Drain(lame_duck);
  log::Info("stopped");
  if (!ended) {
    log::Stop();
    _exit(exit_code);
  }
  return exit_code;
}

int Run(int argc, char** argv) {
  quantd::process::OpenStandardDescriptors();
  quantd::process::KeepFreedMemory();
  quantd::process::BlockSignals();
  quantd::process::RaiseDescriptorLimit();
  // Its parser would log every string that is not UTF-8, for any client that sends one.
  google::protobuf::SetLogHandler(nullptr);

  absl::StatusOr<CommandLine> command_line = quantd::server::ParseCommandLine(argc, argv);
  if (!command_line.ok()) return Refuse(command_line.status());
  if (command_line->action == Action::kHelp) {
    std::fputs(quantd::server::HelpText(QUANTD_VERSION).c_str(), stdout);
    return 0;
  }
  if (command_line->action == Action::kVersion) {
    std::puts("quantd " QUANTD_VERSION);
    return 0;
  }

  const Options& options = command_line->options;
  if (command_line->action == Action::kCheck) {
    for (const std::string& note : command_line->notes)
      std::fprintf(stderr, "quantd: %s\n", quantd::server::OneLine(note).c_str());
    if (absl::Status status = Server::Check(options); !status.ok()) return Refuse(status);
    std::puts("quantd: the flags and the files that they name are valid");
    return 0;
  }

  // The log's own thread; the server tests those that it needs.
  if (absl::Status status = quantd::process::TryThreads(1, "the log"); !status.ok())
    return Refuse(status);

  log::InstallCrashHandler(
      {.version = QUANTD_VERSION, .json = options.log_format == log::Format::kJson});
  log::Start({.level = options.log_level, .format = options.log_format});
  for (const std::string& note : command_line->notes) log::Warn(quantd::server::OneLine(note));
  const int exit_code = Serve(*command_line);
  log::Stop();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
