// What the server is told by flags and by the environment: every flag --some_name has a twin
// QUANTD_SOME_NAME, and the flag wins.
#ifndef QUANTD_SERVER_OPTIONS_H_
#define QUANTD_SERVER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace quantd::server {

// Meanings and defaults: the flags in options.cc, or `quantd --help`. Everything is checked, and
// what was 0 for "find out" is filled in.
struct Options {
  std::vector<std::string> listen;
  std::string http_listen;
  std::string ready_file;
  int max_message_bytes = 0;
  uint64_t memory_budget_bytes = 0;
  int64_t max_inflight_requests = 0;
  int64_t max_queued_requests = 0;
  int threads = 0;
  int queues = 0;
  int pollers = 0;
  uint64_t inline_bytes = 0;
  std::string simd;
  absl::Duration lame_duck;
  absl::Duration drain;
  bool channelz = false;
};

// What the command line asks for instead of a server.
enum class Request { kServe, kHelp, kVersion };

struct CommandLine {
  Request request = Request::kServe;
  Options options;
};

// INVALID_ARGUMENT, with the flag or the variable in a text of one line, when something is wrong.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// The page that --help shows.
std::string HelpText();

// name=value of every option, for the log.
std::string Describe(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_H_
