// Clients that shake hands correctly, and then send what no library sends: more handshakes, in
// parts and by the thousand, and endless changes of keys.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>

#include "server/access/session.h"
#include "testing.h"

namespace quantd::access {
namespace {

class HostileSessionTest : public testing::Test {
 protected:
  HostileSessionTest() {
    const Pair pair = Make({});
    certificates_ = *Certificates::Load(
        {folder_.Put("cert", pair.certificate_pem), folder_.Put("key", pair.key_pem), ""});
    session_ = Session::Accept(*certificates_, Protocol::kGrpc, sockets_.server);
  }
  ssize_t Read() {
    char bytes[100];
    const iovec piece{bytes, sizeof(bytes)};
    return session_->Read({&piece, 1});
  }
  void ExpectOver() {
    EXPECT_EQ(Read(), -1);
    EXPECT_EQ(errno, EPROTO);
    EXPECT_EQ(Read(), -1);
    EXPECT_EQ(errno, EPROTO);
    EXPECT_EQ(ERR_peek_error(), 0U);
  }
  // A record of another handshake, behind the first one.
  void ExpectOverAfter(absl::string_view hellos) {
    TlsClient client(sockets_.client, {.version = TLS1_2_VERSION});
    Sealer sealer(client);
    ASSERT_EQ(client.ShakeHands(*session_), Session::Step::kDone);
    sealer.Skip(1);  // the handshake's last message
    const std::string record = sealer.Seal(SSL3_RT_HANDSHAKE, hellos);
    ASSERT_EQ(send(sockets_.client, record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
    ExpectOver();
  }

  const Folder folder_;
  std::unique_ptr<Certificates> certificates_;
  Sockets sockets_;
  std::unique_ptr<Session> session_;
};

TEST_F(HostileSessionTest, AnotherHandshakeEndsIt) {
  TlsClient client(sockets_.client, {.version = TLS1_2_VERSION});
  ASSERT_EQ(client.ShakeHands(*session_), Session::Step::kDone);
  client.Write("before");
  EXPECT_EQ(Read(), 6);
  SSL_renegotiate(client.ssl());
  SSL_do_handshake(client.ssl());
  ExpectOver();
}

TEST_F(HostileSessionTest, ThousandsOfHellosInARecordEndIt) {
  std::string hellos;
  for (int i = 0; i < 4096; ++i) hellos.append("\x01\0\0\0", 4);
  ExpectOverAfter(hellos);
  char said[16384];
  EXPECT_LT(recv(sockets_.client, said, sizeof(said), 0), 1000) << "each was answered";
}

TEST_F(HostileSessionTest, AHelloThatAnnouncesMuchEndsIt) { ExpectOverAfter("\x01\x02\x01\x40"); }

// OpenSSL continues with the next one, and reads more from the socket if its buffer ends within the
// head of a record. The owner would never get its turn.
TEST_F(HostileSessionTest, AReadEndsHoweverManyChangesOfKeysThereAre) {
  constexpr int kChanges = 1500;
  for (size_t shift = 1; shift < 27; shift += 4) {
    Sockets sockets, between;
    const auto session = Session::Accept(*certificates_, Protocol::kGrpc, sockets.server);
    TlsClient client(sockets.client, {.version = TLS1_3_VERSION});
    ASSERT_EQ(client.ShakeHands(*session), Session::Step::kDone);
    SSL_set_fd(client.ssl(), between.client);
    std::string bytes;
    const auto collect = [&] {
      char piece[200];
      const ssize_t count = recv(between.server, piece, sizeof(piece), 0);
      bytes.append(piece, static_cast<size_t>(std::max<ssize_t>(count, 0)));
    };
    client.Write(std::string(shift, 'x'));
    collect();
    for (int i = 0; i < kChanges; ++i) {
      SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
      SSL_do_handshake(client.ssl());
      collect();
    }
    client.Write("after");
    collect();
    ASSERT_EQ(send(sockets.client, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    char piece[100];
    const iovec to{piece, sizeof(piece)};
    EXPECT_EQ(session->Read({&to, 1}), static_cast<ssize_t>(shift));
    EXPECT_TRUE(session->more_to_read());
    // The changes of keys in one buffer of OpenSSL, 16 KiB.
    const int crumbs = session->TakeCrumbs();
    EXPECT_GT(crumbs, 256);
    EXPECT_LT(crumbs, 7'500);
    // With enough turns it reads all of them.
    ssize_t count = -1;
    for (int i = 0; i < kChanges && count < 0; ++i) {
      count = session->Read({&to, 1});
      session->TakeCrumbs();
    }
    EXPECT_EQ(count, 5);
    EXPECT_EQ(session->Read({&to, 1}), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_FALSE(session->more_to_read());
  }
}

}  // namespace
}  // namespace quantd::access
