// The command line: which command, which file, which flags.
#ifndef QUANTD_CLI_COMMANDS_OPTIONS_H_
#define QUANTD_CLI_COMMANDS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/quantization_spec.h"

namespace quantd::cli {

// What embeddings quantize is asked for; whose codes, and what is done first.
struct EmbeddingFlags {
  std::string preset, ranges;
  int64_t dimensions = 0;
  bool normalize = false;
  bool calibrate = false;
  std::string ranges_out;
};

// What calibrate is asked for, beside type, axis and non_finite.
struct CalibrateFlags {
  std::vector<std::string> inputs, states;
  std::string method = "min-max", symmetry, state_out;
  double percentile = 0;
};

// What parameters is asked for, beside what the requests' flags say.
struct StoredFlags {
  std::string action;     // "put", "get", "list", or what is not a command
  std::string reference;  // --parameters of other commands
  std::vector<std::string> words;
  std::string kind = "quantize";
};

// What convert is asked for, beside which tensors.
struct ConvertFlags {
  std::string to;
  bool dry_run = false, resume = false;
};

// The flags of the same names.
struct Options {
  std::string command;  // "quantize", "dequantize", "convert", "calibrate", "embeddings",
                        // "parameters", "inspect", "info", "health" or "verify"
  std::string input, output;
  std::string only, skip, report, against, output_type, address, simd, service;
  std::vector<int64_t> shape;
  SpecFlags spec;
  bool all = false, force = false, json = false, quiet = false;
  EmbeddingFlags embeddings;
  CalibrateFlags calibrate;
  ConvertFlags convert;
  StoredFlags stored;
  std::string column = "embedding";
  double timeout = 300;
  int threads = 0, bins = 16;
  std::string tls_ca, tls_cert, tls_key, auth_token_file;
  bool allow_insecure_token = false;
  std::string cases;   // of verify: the folder of a kit
  std::string server;  // of verify: instead of address, when it is given
  bool exact = false;  // of verify
};

struct CommandLine {
  Options options;
  std::string text;  // not empty: help or the version, to be printed instead
};

// INVALID_ARGUMENT, one line, for an unknown command, a flag that the command does not take (with a
// guess which was meant), a value that does not parse, or a wrong number of files.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_COMMANDS_OPTIONS_H_
