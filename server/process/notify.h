// Tells others the state of the process: a service manager, and the readers of the ready file.
#ifndef QUANTD_SERVER_PROCESS_NOTIFY_H_
#define QUANTD_SERVER_PROCESS_NOTIFY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/unique_fd.h"

namespace quantd::process {

// Tells a service manager the state of the process, as systemd's sd_notify does: datagrams of
// NAME=value lines to the socket in NOTIFY_SOCKET. Without that variable nothing is sent.
// For one thread at a time. It opens its socket at the start, so that a process that runs out of
// descriptors is not taken for a dead one.
class Notifier {
 public:
  // Sends nothing.
  Notifier() = default;

  // Uses NOTIFY_SOCKET (/PATH, or @NAME for an abstract socket), WATCHDOG_USEC and WATCHDOG_PID.
  // Returns INVALID_ARGUMENT, in one line that names the variable, if one is invalid.
  static absl::StatusOr<Notifier> FromEnvironment();

  // The process serves. `text` is for people, in `systemctl status`.
  absl::Status Ready(absl::string_view text);
  // The process is about to end, within `most`.
  absl::Status Stopping(absl::string_view text, absl::Duration most);
  // The process is working: what a watchdog waits for.
  absl::Status Alive();

  // The interval for Alive, a quarter of the manager's timeout; 0: there is no watchdog.
  absl::Duration watchdog_interval() const { return watchdog_interval_; }

 private:
  absl::Status Send(const std::string& lines) const;

  UniqueFd fd_;
  std::string name_;     // as in NOTIFY_SOCKET
  std::string address_;  // as in sun_path
  absl::Duration watchdog_interval_ = absl::ZeroDuration();
};

// Writes {"grpc": [...], "http": "...", "pid": N} to `path` atomically: a reader sees the whole
// file or none. Returns UNAVAILABLE, in one line, if it can't be written.
absl::Status WriteReadyFile(const std::string& path, const std::vector<std::string>& grpc,
                            const std::string& http);

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_NOTIFY_H_
