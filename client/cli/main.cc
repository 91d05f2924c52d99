// quantctl: the command line of quantd. Parses, runs one command, and turns what went wrong into
// one message and an exit code.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "arguments.h"
#include "commands.h"
#include "output_file.h"
#include "server.h"

namespace {

constexpr int kServerSaidNo = 1;
constexpr int kWrongUsageOrFile = 2;

absl::Status Run(const quantd::cli::Arguments& arguments) {
  if (arguments.command == "quantize") return quantd::cli::RunQuantize(arguments.files[0]);
  if (arguments.command == "dequantize") return quantd::cli::RunDequantize(arguments.files[0]);
  if (arguments.command == "inspect") return quantd::cli::RunInspect(arguments.files[0]);
  if (arguments.command == "info") return quantd::cli::RunInfo();
  return quantd::cli::RunHealth();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "quantctl: %s\n", std::string(status.message()).c_str());
  return quantd::cli::IsServerError(status) ? kServerSaidNo : kWrongUsageOrFile;
}

}  // namespace

int main(int argc, char** argv) {
  // gRPC's own log would repeat, in many lines, what the message below says.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  quantd::cli::RemoveIncompleteFilesOnSignal();
  const absl::StatusOr<quantd::cli::Arguments> arguments = quantd::cli::ParseArguments(argc, argv);
  if (!arguments.ok()) return Fail(arguments.status());
  if (arguments->command == "help") {
    std::fputs(quantd::cli::HelpText(arguments->files[0]).c_str(), stdout);
    return 0;
  }
  const absl::Status status = Run(*arguments);
  return status.ok() ? 0 : Fail(status);
}
