// What is a request, the errors for what is not, and that pieces make no difference.
#include "server/http/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
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

TEST(RequestReader, PathOfEveryFormOfTheTarget) {
  const std::pair<const char*, const char*> rows[] = {
      {"/metrics", "/metrics"},
      {"/livez?a=/b?c", "/livez"},
      {"/", "/"},
      {"/?", "/"},
      {"//livez", "//livez"},
      {"/%6civez", "/%6civez"},  // not decoded: no page has such a name
      {"http://host:9464/livez?x", "/livez"},
      {"HTTP://host/livez", "/livez"},
      {"http://host", "/"},
      {"http://host?x=/y", "/"},
      {"http://", "400"},
      {"http:///livez", "400"},
      {"livez", "400"},
      {"*", "400"},
      {"?x", "400"},
      {"/\xc3\xa4", "400"},
  };
  for (const auto& [target, path] : rows) {
    for (const bool head : {false, true}) {
      const RequestReader reader =
          Read(absl::StrCat(head ? "HEAD " : "GET ", target, " HTTP/1.0\r\n\r\n"));
      EXPECT_EQ(reader.status() == 200 ? reader.path() : absl::StrCat(reader.status()), path);
      EXPECT_EQ(reader.head(), head) << target;
    }
  }
}

TEST(RequestReader, StatusOfEveryLine) {
  struct Row {
    int status;
    std::vector<absl::string_view> texts;
  };
  // An error is known at the end of the line, without waiting for more bytes.
  const Row lines[] = {
      {400,
       {"GET /livez", "GET", " GET /livez HTTP/1.1", "GET  /livez HTTP/1.1", "GET /livez HTTP/1.1 ",
        "GET /livez\tHTTP/1.1", "GET /a b HTTP/1.1", "GET /livez http/1.1", "GET /livez HTTP/1",
        "GET /livez HTTP/11", "GET /livez HTTP/1.1.1", "GET /livez HTTP/a.b",
        "GET /livez HTTPS/1.1", "G(T /livez HTTP/1.1", "\x16\x03\x01\x02", "GET /li\rvez HTTP/1.1",
        "HTTP/1.1 200 OK", "GET /livez HTTP/1.0\r\r"}},
      {405,
       {"POST / HTTP/1.1", "OPTIONS / HTTP/1.1", "get / HTTP/1.1", "X-! / HTTP/1.1",
        "CONNECT x:80 HTTP/1.1"}},
      {505, {"PRI * HTTP/2.0", "GET /livez HTTP/3.0"}},
      // Whole requests. HTTP/1.1 requires a host.
      {200,
       {"GET /livez HTTP/1.0\r\n", "GET /livez HTTP/1.0\n", "\r\n\nGET /livez HTTP/1.0\r\n",
        "GET /livez HTTP/1.7\r\nHost: x\r\n", "GET /livez HTTP/1.1\r\nhost:\r\n"}},
      {400, {"GET /livez HTTP/1.1\r\n"}},
  };
  for (const Row& row : lines) {
    for (const absl::string_view line : row.texts) {
      EXPECT_EQ(Read(absl::StrCat(line, "\r\n")).status(), row.status) << line;
    }
  }
  const Row headers[] = {
      {200, {"Accept: */*\r\nA:b:c\r\nX-Y:\t\xe4 ", "Content-Length: 0", "Content-Length: 000"}},
      {400,
       {"HOST: y", "no colon", ": no name", "Space : x", "A: x\r\n goes on", "A: x\ry",
        "Content-Length: -1", "Content-Length: 0, 5", "Content-Length:"}},
      {413,  // there is no body
       {"Content-Length: 1", "content-length:99999999999999999999999999",
        "Content-Length: 0\r\nContent-Length: 5", "transfer-ENCODING: chunked",
        "Transfer-Encoding: identity"}},
  };
  for (const Row& row : headers) {
    for (const absl::string_view header : row.texts) {
      const std::string whole = absl::StrCat("GET / HTTP/1.1\r\nHost: x\r\n", header, "\r\n\r\n");
      EXPECT_EQ(Read(whole).status(), row.status) << header;
    }
  }
}

TEST(RequestReader, ControlCharactersAreRefusedAtOnce) {
  for (const char c : {'\0', '\x01', '\x08', '\x0b', '\x1b', '\x7f'}) {
    EXPECT_EQ(Read(std::string(1, c)).status(), 400) << int{c};
    EXPECT_EQ(Read(absl::StrCat("GET /livez HTTP/1.1\r\nHost: ", std::string(1, c))).status(), 400);
  }
  EXPECT_EQ(Read(absl::StrCat("GET / HTTP/1.0\r\n\r\n", std::string(100'000, '\0'))).status(), 200)
      << "after the end of a request nothing matters";
}

// Without the limit these would never end. 414 within the first line, 431 after it.
TEST(RequestReader, TheLimitIsForAllLinesTogether) {
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

TEST(RequestReader, PiecesMakeNoDifference) {
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
