// Parses one request from bytes as they arrive, one line at a time:
//
//   GET /metrics?x=1 HTTP/1.1 CRLF        the request line
//   Host: example.org CRLF                headers; no body is ever read
//   CRLF
//
// Only the current line is kept, and an error is detected at the first wrong byte. So a peer uses
// at most the limit of memory, and each byte is looked at once, however many pieces they arrive in.
// The grammar is that of RFC 9112, without the obsolete parts.
#ifndef QUANTD_SERVER_HTTP_REQUEST_READER_H_
#define QUANTD_SERVER_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace quantd::http {

// For one thread at a time.
class RequestReader {
 public:
  // limit_bytes: of the request line and the headers together, line ends included.
  explicit RequestReader(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Takes the next bytes. Returns true once status() is known; bytes after the request are ignored.
  bool Take(absl::string_view bytes);

  // 0 until it is known; 200: a GET or HEAD of path(); otherwise the status of the error:
  //   400  not valid HTTP                    414  the request line is longer than the limit
  //   405  another method                    431  the headers are longer than the limit
  //   413  announces a body                  505  an HTTP version other than 1.x
  int status() const { return status_; }
  // The path without the query, not decoded: "/metrics".
  const std::string& path() const { return path_; }
  // Whether the method is HEAD, so the response has no body. Known after the request line.
  bool head() const { return head_; }
  // The Authorization header, such as "Bearer TOKEN"; empty if there is none.
  const std::string& authorization() const { return authorization_; }
  // Whether any bytes have arrived.
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
  std::string line_;  // the received part of a line that has not ended yet
  std::string authorization_;
  std::string path_;  // empty until the request line has been read
  bool head_ = false;
  bool host_required_ = false;
  int hosts_ = 0;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_REQUEST_READER_H_
