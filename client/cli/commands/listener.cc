#include "commands/listener.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace quantd::cli {

absl::StatusOr<std::string> AddressOfListener(absl::string_view listen) {
  const absl::string_view first = listen.substr(0, listen.find(','));
  const auto wrong = [&first](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("QUANTD_LISTEN is '", first, "', ", what, "; say --address=HOST:PORT"));
  };
  if (absl::StartsWith(first, "unix:")) {
    return first.size() > 5 ? absl::StatusOr<std::string>(std::string(first))
                            : wrong("which names no socket");
  }
  const size_t colon = first.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(first.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return wrong("must be HOST:PORT or unix:/PATH");
  }
  if (port == 0) return wrong("a port that the server picks");
  const absl::string_view host = first.substr(0, colon);
  if (host == "0.0.0.0" || host == "[::]" || host == "::") return absl::StrCat("127.0.0.1:", port);
  // Without brackets, the server takes what is before the last colon for the host.
  if (absl::StrContains(host, ':') && host.front() != '[') {
    return absl::StrCat("[", host, "]:", port);
  }
  return absl::StrCat(host, ":", port);
}

}  // namespace quantd::cli
