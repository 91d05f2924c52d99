// Peers of the HTTP port with TLS that try to keep its one thread busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "../access/testing.h"
#include "peer.h"
#include "server/http/http.h"

namespace quantd::http {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kGet = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";

class HttpTls : public testing::Test {
 protected:
  HttpTls() {
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that are closed
    const access::Pair pair = access::Make({});
    certificates_ = *access::Certificates::Load(
        {folder_.Put("cert", pair.certificate_pem), folder_.Put("key", pair.key_pem), ""});
    HttpPages pages{
        .metrics = [] { return "m"; }, .live = [] { return true; }, .ready = [] { return true; }};
    const HttpLimits patient{.request_time = std::chrono::minutes(1),
                             .response_time = std::chrono::minutes(1)};
    server_ =
        *HttpServer::Start("127.0.0.1:0", pages, patient, {.certificates = certificates_.get()});
  }
  std::string Ask() const {
    const Peer peer(server_->address());
    access::TlsClient client(peer.descriptor(), {.protocols = ""});
    SSL_do_handshake(client.ssl());
    client.Write(kGet);
    return client.Read();
  }
  // The CPU time of this process in one second, in milliseconds.
  static double Busy() {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
    };
    const double before = now();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return now() - before;
  }

  const access::Folder folder_;
  std::unique_ptr<access::Certificates> certificates_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTls, ChangesOfKeysEndAConnection) {
  const Peer peer(server_->address());
  access::TlsClient client(peer.descriptor(), {.protocols = "", .version = TLS1_3_VERSION});
  ASSERT_EQ(SSL_do_handshake(client.ssl()), 1);
  int changes = 0;
  for (bool open = true; open && changes < 20'000; ++changes) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    open = SSL_do_handshake(client.ssl()) == 1;
    if (changes % 200 == 100) {
      EXPECT_THAT(Ask(), HasSubstr("200 OK"));
    }
  }
  EXPECT_LT(changes, 20'000);
  EXPECT_THAT(Ask(), HasSubstr("200 OK"));
}

TEST_F(HttpTls, RecordsOfAByteAreStillARequest) {
  const Peer peer(server_->address());
  access::TlsClient client(peer.descriptor(), {.protocols = ""});
  ASSERT_EQ(SSL_do_handshake(client.ssl()), 1);
  for (const char byte : kGet) client.Write({&byte, 1});
  EXPECT_THAT(client.Read(), HasSubstr("200 OK"));
}

// The response is not written before the rest of the message has arrived; waiting for it must not
// use the CPU.
TEST_F(HttpTls, APartOfAMessageBehindARequestIsWaitedFor) {
  const Peer peer(server_->address());
  access::TlsClient client(peer.descriptor(), {.protocols = "", .version = TLS1_3_VERSION});
  access::Sealer sealer(client);
  ASSERT_EQ(SSL_do_handshake(client.ssl()), 1);
  // In one piece, so that the server has read all of it when it answers.
  std::string bytes = sealer.Seal(SSL3_RT_APPLICATION_DATA, kGet);
  bytes += sealer.Seal(SSL3_RT_HANDSHAKE, absl::string_view("\x18\0\0\1", 4));
  ASSERT_TRUE(peer.Send(bytes));
  EXPECT_LT(Busy(), 300);
  ASSERT_TRUE(peer.Send(sealer.Seal(SSL3_RT_HANDSHAKE, absl::string_view("\0", 1))));
  EXPECT_THAT(client.Read(), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace quantd::http
