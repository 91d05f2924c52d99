#include "server/http/request_reader.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace quantd::http {
namespace {

// Control characters except tabs and line ends, which are never allowed in a request. RFC 9110,
// 5.5.
bool IsControl(char c) {
  return absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\t' && c != '\r' && c != '\n';
}

// RFC 9110, 5.6.2: the characters of methods and of header names.
bool IsToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("!#$%&'*+-.^_`|~", c);
  });
}

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

bool RequestReader::Take(absl::string_view bytes) {
  while (status_ == 0 && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end == bytes.npos ? end : end + 1);
    taken_bytes_ += piece.size();
    if (std::any_of(piece.begin(), piece.end(), IsControl)) {
      status_ = 400;
    } else if (taken_bytes_ > limit_bytes_) {
      status_ = path_.empty() ? 414 : 431;
    } else {
      line_.append(piece.data(), piece.size());
      bytes.remove_prefix(piece.size());
      if (end == bytes.npos) break;
      absl::string_view line = absl::StripSuffix(line_, "\n");
      // A line may end with LF only (RFC 9112, 2.2), as people type it into nc.
      absl::ConsumeSuffix(&line, "\r");
      status_ = TakeLine(line);
      line_.clear();
    }
  }
  return status_ != 0;
}

int RequestReader::TakeLine(absl::string_view line) {
  if (absl::StrContains(line, '\r')) return 400;
  // Empty lines before a request are skipped (RFC 9112, 2.2).
  if (path_.empty()) return line.empty() ? 0 : TakeRequestLine(line);
  if (!line.empty()) return TakeHeader(line);
  return hosts_ == 1 || (hosts_ == 0 && !host_required_) ? 200 : 400;
}

int RequestReader::TakeRequestLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !IsToken(words[0])) return 400;
  absl::string_view version = words[2];
  if (!absl::ConsumePrefix(&version, "HTTP/") || version.size() != 3 || version[1] != '.' ||
      !IsDigits(version.substr(0, 1)) || !IsDigits(version.substr(2))) {
    return 400;
  }
  if (version[0] != '1') return 505;
  host_required_ = version[2] != '0';
  head_ = words[0] == "HEAD";
  if (!head_ && words[0] != "GET") return 405;
  return TakeTarget(words[1]);
}

int RequestReader::TakeTarget(absl::string_view target) {
  if (!std::all_of(target.begin(), target.end(), absl::ascii_isgraph)) return 400;
  // "http://host/path" is sent to proxies, and servers must accept it, too (RFC 9112, 3.2.2).
  const bool absolute = absl::StartsWithIgnoreCase(target, "http://");
  if (absolute) {
    target.remove_prefix(7);
    const size_t host_end = std::min(target.find_first_of("/?"), target.size());
    if (host_end == 0) return 400;
    target.remove_prefix(host_end);
  }
  target = target.substr(0, target.find('?'));
  if (absolute && target.empty()) target = "/";
  if (!absl::StartsWith(target, "/")) return 400;
  path_.assign(target.data(), target.size());
  return 0;
}

int RequestReader::TakeHeader(absl::string_view line) {
  const size_t colon = line.find(':');
  // This also refuses continuation lines, which begin with a space.
  if (colon == line.npos || !IsToken(line.substr(0, colon))) return 400;
  const absl::string_view name = line.substr(0, colon);
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "Host")) ++hosts_;
  if (absl::EqualsIgnoreCase(name, "Authorization")) {
    if (!authorization_.empty()) return 400;
    authorization_ = std::string(value);
  }
  if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) return 413;
  if (absl::EqualsIgnoreCase(name, "Content-Length")) {
    if (!IsDigits(value)) return 400;
    if (value.find_first_not_of('0') != value.npos) return 413;
  }
  return 0;
}

}  // namespace quantd::http
