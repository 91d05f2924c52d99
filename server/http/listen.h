// From HOST:PORT to a socket that listens there.
#ifndef QUANTD_SERVER_HTTP_LISTEN_H_
#define QUANTD_SERVER_HTTP_LISTEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/descriptor.h"

namespace quantd::http {

struct Listener {
  Descriptor socket;    // listens, does not block, closed on exec
  std::string address;  // HOST as it was given, and the port that it got
};

// See HttpServer::Start.
absl::StatusOr<Listener> Listen(absl::string_view address);

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_LISTEN_H_
