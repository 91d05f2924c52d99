// What is a request, the errors for what is not, and that pieces make no difference.
#include "server/http/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quantd::http {
namespace request_reader_test {

constexpr size_t kLimit = 16 << 10;

RequestReader Read(absl::string_view bytes) {
  RequestReader reader(kLimit);
  reader.Take(bytes);
  return reader;
}

// The status of a GET of HTTP/1.1 with these headers besides Host.
int StatusWith(absl::string_view headers) {
  return Read(absl::StrCat("GET /livez HTTP/1.1\r\nHost: x\r\n", headers, "\r\n")).status();
}

TEST(Request, PathsAndMethods) {
  const RequestReader get = Read("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(get.status(), 200);
  EXPECT_EQ(get.path(), "/metrics");
  EXPECT_FALSE(get.head());
  const RequestReader head = Read("HEAD /livez?a=/b?c HTTP/1.0\r\n\r\n");
  EXPECT_EQ(head.status(), 200);
  EXPECT_EQ(head.path(), "/livez");
  EXPECT_TRUE(head.head());
}

TEST(Request, FormsOfTheTarget) {
  const auto path = [](absl::string_view target) {
    const RequestReader reader = Read(absl::StrCat("GET ", target, " HTTP/1.0\r\n\r\n"));
    return reader.status() == 200 ? reader.path() : absl::StrCat(reader.status());
  };
  EXPECT_EQ(path("/"), "/");
  EXPECT_EQ(path("/?"), "/");
  EXPECT_EQ(path("//livez"), "//livez");
  EXPECT_EQ(path("/%6civez"), "/%6civez");  // not decoded: no page has such a name
  EXPECT_EQ(path("http://host:9464/livez?x"), "/livez");
  EXPECT_EQ(path("HTTP://host/livez"), "/livez");
  EXPECT_EQ(path("http://host"), "/");
  EXPECT_EQ(path("http://host?x=/y"), "/");
  EXPECT_EQ(path("http://"), "400");
  EXPECT_EQ(path("http:///livez"), "400");
  EXPECT_EQ(path("livez"), "400");
  EXPECT_EQ(path("*"), "400");
  EXPECT_EQ(path("?x"), "400");
  EXPECT_EQ(path("/\xc3\xa4"), "400");
}

TEST(Request, LinesThatAreNoRequestLine) {
  for (const absl::string_view line :
       {"GET /livez", "GET", " GET /livez HTTP/1.1", "GET  /livez HTTP/1.1", "GET /livez HTTP/1.1 ",
        "GET /livez\tHTTP/1.1", "GET /a b HTTP/1.1", "GET /livez http/1.1", "GET /livez HTTP/1",
        "GET /livez HTTP/11", "GET /livez HTTP/1.1.1", "GET /livez HTTP/a.b",
        "GET /livez HTTPS/1.1", "G(T /livez HTTP/1.1", "\x16\x03\x01\x02", "GET /li\rvez HTTP/1.1",
        "HTTP/1.1 200 OK"}) {
    // Known at the end of the line, without waiting for more bytes.
    EXPECT_EQ(Read(absl::StrCat(line, "\r\n")).status(), 400) << line;
  }
  EXPECT_EQ(Read("PRI * HTTP/2.0\r\n").status(), 505);
  EXPECT_EQ(Read("GET /livez HTTP/3.0\r\n").status(), 505);
  EXPECT_EQ(Read("GET /livez HTTP/1.7\r\nHost: x\r\n\r\n").status(), 200);
}

TEST(Request, OtherMethodsAreKnownByTheirLine) {
  for (const absl::string_view method : {"POST", "PUT", "DELETE", "OPTIONS", "get", "X-!"}) {
    EXPECT_EQ(Read(absl::StrCat(method, " /metrics HTTP/1.1\r\n")).status(), 405) << method;
  }
  EXPECT_EQ(Read("CONNECT x:80 HTTP/1.1\r\n").status(), 405);
}

TEST(Request, HostIsRequiredOnceByHttp11) {
  EXPECT_EQ(Read("GET /livez HTTP/1.0\r\n\r\n").status(), 200);
  EXPECT_EQ(Read("GET /livez HTTP/1.1\r\n\r\n").status(), 400);
  EXPECT_EQ(Read("GET /livez HTTP/1.1\r\nhost:\r\n\r\n").status(), 200);
  EXPECT_EQ(StatusWith("HOST: y\r\n"), 400);
}

TEST(Request, Headers) {
  EXPECT_EQ(StatusWith("Accept: */*\r\nA:b:c\r\nX-Y:\t\xe4 \r\n"), 200);
  EXPECT_EQ(StatusWith("Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n"), 200);
  EXPECT_EQ(StatusWith("no colon\r\n"), 400);
  EXPECT_EQ(StatusWith(": no name\r\n"), 400);
  EXPECT_EQ(StatusWith("Space : x\r\n"), 400);
  EXPECT_EQ(StatusWith("A: x\r\n goes on\r\n"), 400);
  EXPECT_EQ(StatusWith("A: x\ry\r\n"), 400);
}

TEST(Request, NoBodies) {
  EXPECT_EQ(StatusWith("Content-Length: 0\r\n"), 200);
  EXPECT_EQ(StatusWith("Content-Length: 000\r\n"), 200);
  EXPECT_EQ(StatusWith("Content-Length: 1\r\n"), 413);
  EXPECT_EQ(StatusWith("content-length:99999999999999999999999999\r\n"), 413);
  EXPECT_EQ(StatusWith("Content-Length: -1\r\n"), 400);
  EXPECT_EQ(StatusWith("Content-Length: 0, 5\r\n"), 400);
  EXPECT_EQ(StatusWith("Content-Length:\r\n"), 400);
  EXPECT_EQ(StatusWith("Content-Length: 0\r\nContent-Length: 5\r\n"), 413);
  EXPECT_EQ(StatusWith("transfer-ENCODING: chunked\r\n"), 413);
  EXPECT_EQ(StatusWith("Transfer-Encoding: identity\r\n"), 413);
}

TEST(Request, EndsOfLines) {
  EXPECT_EQ(Read("GET /livez HTTP/1.0\n\n").status(), 200);
  EXPECT_EQ(Read("\r\n\nGET /livez HTTP/1.0\r\n\r\n").status(), 200);
  EXPECT_EQ(Read("GET /livez HTTP/1.0\r\n\r").status(), 0);
  EXPECT_EQ(Read("GET /livez HTTP/1.0\r\r\n").status(), 400);
}

TEST(Request, ControlCharactersAreRefusedAtOnce) {
  for (const char c : {'\0', '\x01', '\x08', '\x0b', '\x1b', '\x7f'}) {
    EXPECT_EQ(Read(std::string(1, c)).status(), 400) << int{c};
    EXPECT_EQ(Read(absl::StrCat("GET /livez HTTP/1.1\r\nHost: ", std::string(1, c))).status(), 400);
  }
}

TEST(Request, NothingAfterItsEndMatters) {
  EXPECT_EQ(Read(absl::StrCat("GET /livez HTTP/1.0\r\n\r\n", std::string(100'000, '\0'))).status(),
            200);
}

// Without the limit these would never end. 414 within the first line, 431 after it.
TEST(Request, TheLimitIsForAllLinesTogether) {
  const auto status_of = [](std::string bytes) { return Read(bytes).status(); };
  const std::string first = "GET /livez HTTP/1.0\r\n";
  EXPECT_EQ(status_of(std::string(kLimit, 'a')), 0);
  EXPECT_EQ(status_of(std::string(kLimit + 1, 'a')), 414);
  EXPECT_EQ(status_of(absl::StrCat("GET /", std::string(1 << 20, 'a'))), 414);
  EXPECT_EQ(status_of(absl::StrCat(first, "X: ", std::string(1 << 20, 'a'))), 431);
  std::string lines = first;
  while (lines.size() <= kLimit) lines += "X: y\r\n";
  EXPECT_EQ(status_of(lines), 431);
  std::string empty_lines;
  while (empty_lines.size() <= kLimit) empty_lines += "\r\n";
  EXPECT_EQ(status_of(empty_lines), 414);
  // Exact to the byte.
  const std::string header = absl::StrCat("X:", std::string(kLimit - first.size() - 6, 'a'));
  EXPECT_EQ(status_of(absl::StrCat(first, header, "\r\n\r\n")), 200);
  EXPECT_EQ(status_of(absl::StrCat(first, header, "a\r\n\r\n")), 431);
}

// A request that is probably valid, with a few bytes changed.
std::string RandomRequest(std::mt19937& random) {
  std::string request = "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nA: b\r\n\r\n";
  const absl::string_view alphabet("\0\r\n\t :/?01.AGHT\x7f\xff", 18);
  for (int changes = static_cast<int>(random() % 4); changes > 0; --changes) {
    const size_t at = random() % request.size();
    const char c = alphabet[random() % alphabet.size()];
    switch (random() % 3) {
      case 0:
        request[at] = c;
        break;
      case 1:
        request.insert(at, 1, c);
        break;
      default:
        request.erase(at, 1 + random() % 3);
    }
  }
  return request;
}

TEST(Request, PiecesMakeNoDifference) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const std::string request = RandomRequest(random);
    const RequestReader whole = Read(request);
    RequestReader pieces(kLimit);
    absl::string_view rest = request;
    while (!rest.empty()) {
      const size_t size = std::min<size_t>(rest.size(), 1 + random() % 8);
      const bool known = pieces.Take(rest.substr(0, size));
      ASSERT_EQ(known, pieces.status() != 0);
      if (known) break;
      rest.remove_prefix(size);
    }
    ASSERT_EQ(pieces.status(), whole.status()) << request;
    ASSERT_EQ(pieces.path(), whole.path()) << request;
    ASSERT_EQ(pieces.head(), whole.head()) << request;
  }
}

}  // namespace request_reader_test
}  // namespace quantd::http
