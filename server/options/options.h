// The options from flags and from the environment: every flag --some_name has a variable
// QUANTD_SOME_NAME, and the flag wins.
#ifndef QUANTD_SERVER_OPTIONS_OPTIONS_H_
#define QUANTD_SERVER_OPTIONS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/log/log.h"
#include "server/memory/shares.h"
#include "server/scheduling/policy.h"
#include "server/transport/encoding.h"

namespace quantd::server {

// Meanings and defaults are at the flags in options.cc, or in `quantd --help`. Everything is
// checked, and values that were 0 for "find out" are filled in.
struct Options {
  std::vector<std::string> listen;
  std::string http_listen;
  bool status_page = true;
  std::string ready_file;
  memory::Shares memory;  // --max_message_bytes and the budgets among them
  int64_t max_inflight_requests = 0;
  int64_t max_queued_requests = 0;
  int64_t max_connections = 0;
  int64_t max_streams = 0;
  absl::Duration queue_timeout;
  absl::Duration stall_timeout;
  int64_t min_transfer_rate = 0;                                          // bytes a second
  transport::Encoding compress_answers = transport::Encoding::kIdentity;  // default of calls
  uint64_t compress_answers_from = 0;                                     // bytes
  absl::Duration keepalive;
  absl::Duration max_connection_age;
  absl::Duration max_connection_age_grace;
  int threads = 0;
  int event_loops = 0;
  int busy_poll_us = 20;
  std::string simd;
  std::string shared_memory_dir;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string auth_token_file;
  uint32_t socket_mode = 0;
  absl::Duration lame_duck;
  absl::Duration drain;
  log::Format log_format = log::Format::kAuto;
  log::Level log_level = log::Level::kInfo;
  std::string trace_file;  // empty: no tracing
  double trace_sample_ratio = 0;

  // The most open calls: calls in progress and in queues, one per connection that watches health,
  // as clients of several servers do, and a few others.
  scheduling::Policy policy() const {
    return scheduling::PolicyFor(threads, event_loops, busy_poll_us);
  }
  int64_t max_calls() const {
    return max_inflight_requests + max_queued_requests + max_connections + 256;
  }
};

// What the command line asks for.
enum class Action { kServe, kCheck, kHelp, kVersion };

struct CommandLine {
  Action action = Action::kServe;
  Options options;
  std::vector<std::string> changed;  // "--name=value" of all that are not the default
  // Not errors, but the user should know them: variables QUANTD_... that are not flags.
  std::vector<std::string> notes;
};

// Returns INVALID_ARGUMENT, in one line that names the flag or the variable, if something is wrong.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// The text that --help shows.
std::string HelpText(absl::string_view version);

// A text that contains what others wrote, as one line: control characters are escaped.
std::string OneLine(absl::string_view text);

// Every option with its value, for the log.
log::Fields Describe(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_OPTIONS_H_
