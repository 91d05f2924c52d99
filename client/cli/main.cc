// quantctl: the command line of quantd. Parses the arguments, runs one command, and converts errors
// to one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "commands/commands.h"
#include "commands/options.h"
#include "commands/terminal.h"
#include "engine/errors.h"
#include "files/signals.h"
#include "files/text.h"
#include "status_macros.h"

namespace {

constexpr int kOperationFailed = 1;
constexpr int kWrongUsageOrFile = 2;

absl::Status Run(int argc, char** argv) {
  QUANTD_ASSIGN_OR_RETURN(const quantd::cli::CommandLine line,
                          quantd::cli::ParseCommandLine(argc, argv));
  using namespace quantd::cli;  // NOLINT(google-build-using-namespace)
  constexpr std::pair<const char*, absl::Status (*)(const Options&)> kCommands[] = {
      {"quantize", RunQuantize},
      {"dequantize", RunDequantize},
      {"convert", RunConvert},
      {"calibrate", RunCalibrate},
      {"embeddings", RunEmbeddings},
      {"inspect", RunInspect},
      {"top", RunTop},
      {"info", RunInfo},
      {"health", RunHealth}};
  absl::Status status;
  std::fputs(line.text.c_str(), stdout);
  for (const auto& [name, run] : kCommands) {
    if (line.text.empty() && line.options.command == name) status = run(line.options);
  }
  errno = 0;
  // Only ferror reports failures before the last bytes.
  if (status.ok() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, "cannot write to standard output");
  }
  return status;
}

// Opens standard input, output and error where they are closed, such that writing fails. Otherwise
// the next opened file would get their number, and would receive what is printed.
void OpenStandardDescriptors() {
  int opened = 0;
  do {
    opened = open("/dev/null", O_RDONLY);  // the lowest free number
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0) close(opened);
}

int Fail(const absl::Status& status) {
  const std::string who = quantd::cli::Styled(STDERR_FILENO, quantd::cli::Style::kRed, "quantctl:");
  std::fprintf(stderr, "%s %s\n", who.c_str(), quantd::cli::Printable(status.message()).c_str());
  return quantd::cli::IsOperationError(status) ? kOperationFailed : kWrongUsageOrFile;
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardDescriptors();
  // gRPC's own log would repeat the message below in many lines.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  quantd::cli::HandleSignals();
  try {
    const absl::Status status = Run(argc, argv);
    return status.ok() ? 0 : Fail(status);
  } catch (const std::exception& error) {  // out of memory or threads
    return Fail(absl::ResourceExhaustedError(
        std::string("the system gave no memory, or no threads: ") + error.what()));
  }
}
