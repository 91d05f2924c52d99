// Reads one request as its bytes come, a line at a time:
//
//   GET /metrics?x=1 HTTP/1.1 CRLF        the request line
//   Host: example.org CRLF                headers; no body is ever read
//   CRLF
//
// Only the line that is being read is kept, and what is wrong is known with the first byte that is:
// so a peer takes at most the limit of memory, and a byte is looked at once, in however many pieces
// they come. The grammar is that of RFC 9112, without what it calls obsolete.
#ifndef QUANTD_SERVER_HTTP_REQUEST_READER_H_
#define QUANTD_SERVER_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace quantd::http {

// Not safe to be used from two threads.
class RequestReader {
 public:
  // limit_bytes: of the request line and the headers together, line ends included.
  explicit RequestReader(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Takes the next bytes. True when status() is known; what follows is not looked at.
  bool Take(absl::string_view bytes);

  // 0 until it is known; 200: a GET or HEAD of path(); otherwise the error to answer:
  //   400  not HTTP, or not as it must be    414  its first line is longer than the limit
  //   405  another method                    431  its headers are
  //   413  it announces a body               505  another HTTP than 1.x
  int status() const { return status_; }
  // The path without the query, not decoded: "/metrics".
  const std::string& path() const { return path_; }
  // Whether the method is HEAD: the response has no body. Known with the request line.
  bool head() const { return head_; }
  // The header Authorization: "Bearer TOKEN", say; empty without one.
  const std::string& authorization() const { return authorization_; }
  // Whether it accepts OpenMetrics 1.0, as Prometheus does that can take exemplars. Whoever names
  // it prefers it: weights (q=) are not compared.
  bool openmetrics() const { return openmetrics_; }
  // Whether anything came at all.
  bool begun() const { return taken_bytes_ > 0; }

 private:
  // Each returns a status, or 0 to go on.
  int TakeLine(absl::string_view line);
  int TakeRequestLine(absl::string_view line);
  int TakeTarget(absl::string_view target);
  int TakeHeader(absl::string_view line);

  const size_t limit_bytes_;
  size_t taken_bytes_ = 0;
  int status_ = 0;
  std::string line_;  // what came of a line that has not ended yet
  std::string authorization_;
  std::string path_;  // empty until the request line has been read
  bool head_ = false;
  bool host_required_ = false;
  int hosts_ = 0;
  bool openmetrics_ = false;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_REQUEST_READER_H_
