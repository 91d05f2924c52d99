// quantctl: the command line of quantd. Parses, runs one command, and turns what went wrong into
// one line and an exit code.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "commands/commands.h"
#include "commands/options.h"
#include "engine/errors.h"
#include "files/printable.h"
#include "files/signals.h"

namespace {

constexpr int kOperationFailed = 1;
constexpr int kWrongUsageOrFile = 2;

absl::Status Run(int argc, char** argv) {
  const absl::StatusOr<quantd::cli::CommandLine> line = quantd::cli::ParseCommandLine(argc, argv);
  if (!line.ok()) return line.status();
  absl::Status status;
  const quantd::cli::Options& options = line->options;
  if (!line->text.empty()) {
    std::fputs(line->text.c_str(), stdout);
  } else if (options.command == "quantize") {
    status = quantd::cli::RunQuantize(options);
  } else if (options.command == "dequantize") {
    status = quantd::cli::RunDequantize(options);
  } else if (options.command == "convert") {
    status = quantd::cli::RunConvert(options);
  } else if (options.command == "calibrate") {
    status = quantd::cli::RunCalibrate(options);
  } else if (options.command == "embeddings") {
    status = quantd::cli::RunEmbeddings(options);
  } else if (options.command == "parameters") {
    status = quantd::cli::RunParameters(options);
  } else if (options.command == "inspect") {
    status = quantd::cli::RunInspect(options);
  } else if (options.command == "verify") {
    status = quantd::cli::RunVerify(options);
  } else if (options.command == "info") {
    status = quantd::cli::RunInfo(options);
  } else {
    status = quantd::cli::RunHealth(options);
  }
  if (status.ok() && std::fflush(stdout) != 0) {
    return absl::ErrnoToStatus(errno, "cannot write to standard output");
  }
  return status;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "quantctl: %s\n", quantd::cli::Printable(status.message()).c_str());
  return quantd::cli::IsOperationError(status) ? kOperationFailed : kWrongUsageOrFile;
}

}  // namespace

int main(int argc, char** argv) {
  // gRPC's own log would repeat, in many lines, what the message below says.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  quantd::cli::HandleSignals();
  try {
    const absl::Status status = Run(argc, argv);
    return status.ok() ? 0 : Fail(status);
  } catch (const std::exception& error) {  // no memory, no threads
    return Fail(absl::ResourceExhaustedError(
        std::string("the system gave no memory, or no threads: ") + error.what()));
  }
}
