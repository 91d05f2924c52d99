// The server that a command talks to: its address, its limits, and its errors in words for a
// person.
//
// Thread safe once connected.
#ifndef QUANTD_CLI_SERVER_H_
#define QUANTD_CLI_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "quantd/client/client.h"

namespace quantd::cli {

class Server {
 public:
  // Asks the server what it is, so that its limits are known. UNAVAILABLE when nobody answers
  // within `connect_timeout`, saying what to do. `timeout` is the deadline of each later call.
  static absl::StatusOr<std::unique_ptr<Server>> Connect(const std::string& address,
                                                         absl::Duration connect_timeout,
                                                         absl::Duration timeout);

  client::Client& client() { return client_; }
  const v1::GetServerInfoResponse& info() const { return info_; }
  const std::string& address() const { return address_; }

 private:
  Server(const std::string& address, absl::Duration timeout);
  const std::string address_;
  client::Client client_;
  v1::GetServerInfoResponse info_;
};

// The failure of a call, for a person: which server, what it said, which field, what to do.
// `what` is what was being done, such as "quantize 'weight'"; may be empty.
absl::Status ServerError(const absl::Status& status, absl::string_view address,
                         absl::string_view what);

// Whether a status came from ServerError (exit code 1) or arose here (exit code 2).
bool IsServerError(const absl::Status& status);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_SERVER_H_
