// Tells a service manager the state of the process, as systemd's sd_notify does: datagrams of
// NAME=value lines to the socket in NOTIFY_SOCKET. Without that variable nothing is sent.
#ifndef QUANTD_SERVER_PROCESS_NOTIFY_H_
#define QUANTD_SERVER_PROCESS_NOTIFY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quantd::process {

// For one thread at a time. It opens its socket at the start, so that a process that runs out of
// descriptors is not taken for a dead one.
class Notifier {
 public:
  // Sends nothing.
  Notifier() = default;
  Notifier(Notifier&& other) noexcept;
  Notifier& operator=(Notifier&& other) noexcept;
  ~Notifier();

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

  int fd_ = -1;
  std::string name_;     // as in NOTIFY_SOCKET
  std::string address_;  // as in sun_path
  absl::Duration watchdog_interval_ = absl::ZeroDuration();
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_NOTIFY_H_
