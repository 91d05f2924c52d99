// The command line: command, files and flags.
#ifndef QUANTD_CLI_COMMANDS_OPTIONS_H_
#define QUANTD_CLI_COMMANDS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/parameters.h"

namespace quantd::cli {

// The flags of embeddings quantize: the preset, and the steps before it.
struct EmbeddingFlags {
  std::string preset, ranges;
  int64_t dimensions = 0;
  bool normalize = false;
  bool calibrate = false;
  std::string ranges_out;
  bool operator==(const EmbeddingFlags&) const = default;
};

// The flags of calibrate, besides type, axis and non_finite.
struct CalibrateFlags {
  std::vector<std::string> inputs, states;
  std::string method = "min_max", symmetry, state_out;
  double percentile = 0;
};

// The flags of convert, besides those that select tensors.
struct ConvertFlags {
  std::string to;
  bool dry_run = false, resume = false;
};

// The flags with the same names.
struct Options {
  std::string command;  // "quantize", "dequantize", "convert", "calibrate", "embeddings",
                        // "inspect", "info", "health" or "top"
  std::string input, output;
  std::string only, skip, report, against, output_type, address, simd, service;
  std::string calibration;  // of quantize
  std::string shell;        // of completion
  std::string sort = "file";
  bool details = false;
  std::vector<int64_t> shape;
  SpecFlags spec;
  bool all = false, force = false, json = false, quiet = false, once = false;
  EmbeddingFlags embeddings;
  CalibrateFlags calibrate;
  ConvertFlags convert;
  double timeout = 300;
  int64_t threads = 0, bins = 16;
  std::string tls_ca, tls_cert, tls_key, auth_token_file;
  bool allow_insecure_token = false;
};

struct CommandLine {
  Options options;
  std::string text;  // not empty: help or the version, to be printed instead
};

// Returns INVALID_ARGUMENT, in one line, for an unknown command, a flag that the command does not
// have (with a guess), an invalid value, or a wrong number of files.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_OPTIONS_H_
