// See notify.h. The protocol is that of sd_notify(3), which promises to keep it.
#include "server/process/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quantd::process {
namespace {

using Clock = std::chrono::steady_clock;

// If a manager reads nothing for this time, the notification is dropped.
constexpr std::chrono::seconds kPatience(1);
constexpr std::chrono::milliseconds kPause(10);

const char* Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

absl::Status Wrong(const char* variable, absl::string_view value, absl::string_view must) {
  return absl::InvalidArgumentError(absl::StrCat(variable, " is '", value, "', must be ", must));
}

absl::StatusOr<absl::Duration> WatchdogInterval() {
  const char* const text = Variable("WATCHDOG_USEC");
  if (text == nullptr) return absl::ZeroDuration();
  int64_t microseconds = 0;
  if (!absl::SimpleAtoi(text, &microseconds) || microseconds <= 0) {
    return Wrong("WATCHDOG_USEC", text, "a number of microseconds");
  }
  if (const char* const pid_text = Variable("WATCHDOG_PID"); pid_text != nullptr) {
    int64_t pid = 0;
    if (!absl::SimpleAtoi(pid_text, &pid) || pid <= 0) {
      return Wrong("WATCHDOG_PID", pid_text, "a process id");
    }
    if (pid != getpid()) return absl::ZeroDuration();  // meant for another process
  }
  return absl::Microseconds(microseconds) / 4;
}

}  // namespace

absl::StatusOr<Notifier> Notifier::FromEnvironment() {
  Notifier notifier;
  const char* const socket_name = Variable("NOTIFY_SOCKET");
  if (socket_name == nullptr) return notifier;
  notifier.name_ = socket_name;
  notifier.address_ = socket_name;
  const bool abstract = notifier.address_[0] == '@';
  if ((!abstract && notifier.address_[0] != '/') || notifier.address_.size() < 2) {
    return Wrong("NOTIFY_SOCKET", socket_name, "/PATH or @NAME");
  }
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (notifier.address_.size() > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat("NOTIFY_SOCKET has ", notifier.address_.size(),
                                                   " bytes, must have ", kLongest, " at most"));
  }
  if (abstract) notifier.address_[0] = '\0';
  const absl::StatusOr<absl::Duration> interval = WatchdogInterval();
  if (!interval.ok()) return interval.status();
  notifier.watchdog_interval_ = *interval;
  notifier.fd_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!notifier.fd_.is_open())
    return absl::ErrnoToStatus(errno, "cannot make a socket for NOTIFY_SOCKET");
  return notifier;
}

absl::Status Notifier::Ready(absl::string_view text) {
  return Send(absl::StrCat("READY=1\nSTATUS=", text, "\n"));
}

absl::Status Notifier::Stopping(absl::string_view text, absl::Duration most) {
  // Then the unit's TimeoutStopSec need not match the time of the drain.
  return Send(absl::StrCat("STOPPING=1\nSTATUS=", text,
                           "\nEXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(most), "\n"));
}

absl::Status Notifier::Alive() { return Send("WATCHDOG=1\n"); }

absl::Status Notifier::Send(const std::string& lines) const {
  if (!fd_.is_open()) return absl::OkStatus();
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, address_.data(), address_.size());
  // An abstract name has exactly these bytes, without a terminator.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size() +
                                           (address_[0] == '\0' ? 0 : 1));
  const Clock::time_point end = Clock::now() + kPatience;
  for (;;) {
    if (sendto(fd_.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&where), size) >= 0) {
      return absl::OkStatus();
    }
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot tell NOTIFY_SOCKET ", name_));
    }
    if (Clock::now() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("cannot tell NOTIFY_SOCKET ", name_, ": nobody reads it"));
    }
    std::this_thread::sleep_for(kPause);
  }
}

absl::Status WriteReadyFile(const std::string& path, const std::vector<std::string>& grpc,
                            const std::string& http) {
  const nlohmann::ordered_json ready = {{"grpc", grpc}, {"http", http}, {"pid", getpid()}};
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const auto failed = [&] {
    const int error = errno;
    std::remove(temporary.c_str());
    return absl::UnavailableError(
        absl::StrCat("cannot write --ready_file ", path, ": ", std::strerror(error)));
  };
  std::ofstream file(temporary);
  // The path of a socket may contain bytes that are not valid in JSON.
  file << ready.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  file.close();
  if (file.fail() || std::rename(temporary.c_str(), path.c_str()) != 0) return failed();
  return absl::OkStatus();
}

}  // namespace quantd::process
