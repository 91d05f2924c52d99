// Tells a service manager how the process is doing, as systemd's sd_notify does: datagrams of
// NAME=value lines to the socket that NOTIFY_SOCKET names. Without that variable nothing happens.
#ifndef QUANTD_SERVER_PROCESS_NOTIFY_H_
#define QUANTD_SERVER_PROCESS_NOTIFY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quantd::process {

// One thread at a time. It has its socket from the start on, so that a process without descriptors
// is not taken for a dead one.
class Notifier {
 public:
  // Tells nobody.
  Notifier() = default;
  Notifier(Notifier&& other) noexcept;
  Notifier& operator=(Notifier&& other) noexcept;
  ~Notifier();

  // Of NOTIFY_SOCKET (/PATH, or @NAME for an abstract one), WATCHDOG_USEC and WATCHDOG_PID.
  // INVALID_ARGUMENT, in one line that names the variable, when one makes no sense.
  static absl::StatusOr<Notifier> FromEnvironment();

  // The process serves. `text`: for a person, in `systemctl status`.
  absl::Status Ready(absl::string_view text);
  // It is about to end, and takes `most` for that.
  absl::Status Stopping(absl::string_view text, absl::Duration most);
  // Its work goes on: what a watchdog waits for.
  absl::Status Alive();

  // How often to say Alive, a quarter of what the manager waits for it; 0: it does not.
  absl::Duration watchdog_interval() const { return watchdog_interval_; }

 private:
  absl::Status Send(const std::string& lines) const;

  int fd_ = -1;
  std::string name_;     // as NOTIFY_SOCKET has it
  std::string address_;  // as sun_path wants it
  absl::Duration watchdog_interval_ = absl::ZeroDuration();
};

}  // namespace quantd::process

#endif  // QUANTD_SERVER_PROCESS_NOTIFY_H_
