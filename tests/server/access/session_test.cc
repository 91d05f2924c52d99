// Sessions over a pair of sockets: every way in which a handshake succeeds or fails, and bytes in
// both directions through sockets with small buffers.
#include "server/access/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "testing.h"

namespace quantd::access {
namespace {

using testing::HasSubstr;

class SessionTest : public testing::Test {
 protected:
  static std::unique_ptr<Certificates> Load(const Folder& folder, bool mutual) {
    TlsFiles files;
    files.certificate = folder.Put("cert", server_.certificate_pem);
    files.key = folder.Put("key", server_.key_pem);
    if (mutual) files.client_ca = folder.Put("ca", authority_.certificate_pem);
    return *Certificates::Load(files);
  }
  static inline const Pair authority_ = Make({.name = "authority"});
  static inline const Pair server_ = Make({.name = "server", .issuer = &authority_});
  const Folder folder_;
  const std::unique_ptr<Certificates> plain_ = Load(folder_, false);
  const std::unique_ptr<Certificates> mutual_ = Load(folder_, true);
  // A session with a client that has shaken hands.
  void Connect() {
    session_ = Session::Accept(*plain_, Protocol::kGrpc, sockets_.server);
    client_.emplace(sockets_.client, TlsClient::Options());
    ASSERT_EQ(client_->ShakeHands(*session_), Session::Step::kDone);
  }

  Sockets sockets_;
  std::unique_ptr<Session> session_;
  std::optional<TlsClient> client_;
  char bytes_[100] = {};
  const iovec piece_{bytes_, sizeof(bytes_)};
};

// Reads everything that has arrived, through pieces of `sizes`.
std::string ReadAll(Session& session, const std::vector<size_t>& sizes) {
  std::string all;
  for (;;) {
    std::vector<std::string> buffers;
    std::vector<iovec> pieces;
    for (const size_t size : sizes) buffers.emplace_back(size, '\0');
    for (std::string& buffer : buffers) pieces.push_back({buffer.data(), buffer.size()});
    const ssize_t count = session.Read(pieces);
    if (count <= 0) return all;
    auto left = static_cast<size_t>(count);
    for (const std::string& buffer : buffers) {
      all.append(buffer, 0, std::min(left, buffer.size()));
      left -= std::min(left, buffer.size());
    }
  }
}

TEST_F(SessionTest, ShakesHands) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Sockets sockets;
    const auto session = Session::Accept(*plain_, Protocol::kGrpc, sockets.server);
    EXPECT_EQ(session->Handshake(), Session::Step::kAgain);
    EXPECT_FALSE(session->wants_write());
    TlsClient client(sockets.client, {.version = version});
    EXPECT_EQ(client.ShakeHands(*session), Session::Step::kDone);
    EXPECT_TRUE(session->established());
    EXPECT_FALSE(session->has_client_certificate());
    EXPECT_EQ(client.Write("hello"), 5U);
    EXPECT_EQ(ReadAll(*session, {3, 100}), "hello");
    EXPECT_EQ(errno, EAGAIN);
  }
}

TEST_F(SessionTest, RefusesWhoIsNotAsItMustBe) {
  const Pair stranger = Make({.name = "stranger"});
  const Pair late = Make({.name = "late", .issuer = &authority_, .from_hours = -9, .to_hours = -1});
  struct Case {
    TlsClient::Options client;
    bool mutual;
    Refusal refusal;
    const char* reason;
  };
  for (const Case& c : {
           Case{{.protocols = ""}, false, Refusal::kProtocol, "does not offer HTTP/2"},
           Case{{.protocols = "\x02h3"}, false, Refusal::kProtocol, "no application protocol"},
           Case{{}, true, Refusal::kNoCertificate, "sent no certificate"},
           Case{{.certificate = &stranger}, true, Refusal::kCertificate, "self"},
           Case{{.certificate = &late}, true, Refusal::kCertificate, "expired"},
       }) {
    Sockets sockets;
    const auto session =
        Session::Accept(c.mutual ? *mutual_ : *plain_, Protocol::kGrpc, sockets.server);
    TlsClient client(sockets.client, c.client);
    EXPECT_EQ(client.ShakeHands(*session), Session::Step::kRefused);
    EXPECT_EQ(session->refusal(), c.refusal);
    EXPECT_THAT(session->reason(), HasSubstr(c.reason));
    EXPECT_FALSE(session->established());
  }
}

TEST_F(SessionTest, RefusesAHelloThatIsTooLargeBeforeItTakesMemory) {
  const auto session = Session::Accept(*plain_, Protocol::kGrpc, sockets_.server);
  // A hello of 128 KiB is announced, in a record of 100 bytes.
  const std::string begin("\x16\x03\x01\x00\x64\x01\x02\x00\x00", 9);
  ASSERT_EQ(send(sockets_.client, begin.data(), begin.size(), 0), 9);
  EXPECT_EQ(session->Handshake(), Session::Step::kRefused);
  EXPECT_THAT(session->reason(), HasSubstr("too large"));
}

TEST_F(SessionTest, SaysNothingOfWhoOnlyLooks) {
  const auto session = Session::Accept(*plain_, Protocol::kGrpc, sockets_.server);
  sockets_.CloseClient();
  EXPECT_EQ(session->Handshake(), Session::Step::kGone);
}

// Random pieces. What the socket did not take is given again at another address.
TEST_F(SessionTest, WritesWhatIsLeft) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Sockets sockets(4096);
  const auto session = Session::Accept(*plain_, Protocol::kGrpc, sockets.server);
  TlsClient client(sockets.client, {});
  ASSERT_EQ(client.ShakeHands(*session), Session::Step::kDone);
  std::string expected;
  std::vector<std::string> parts;
  for (int i = 0; i < 300; ++i) {
    const size_t size = random() % 4 == 0 ? random() % 70'000 : random() % 30;
    parts.emplace_back(size, static_cast<char>('a' + i % 26));
    expected += parts.back();
  }
  std::string received;
  size_t written = 0;
  int stuck = 0;
  while (received.size() < expected.size()) {
    const std::string moved(expected);  // at another address each time
    std::vector<iovec> pieces;
    size_t begin = 0;
    for (const std::string& part : parts) {
      const size_t end = begin + part.size();
      const size_t from = std::max(begin, written);
      if (from < end && pieces.size() < 20) {
        pieces.push_back({const_cast<char*>(moved.data()) + from, end - from});
      }
      begin = end;
    }
    const ssize_t count = pieces.empty() ? 0 : session->Write(pieces);
    if (count < 0) {
      ASSERT_EQ(errno, EAGAIN);
      ASSERT_FALSE(session->write_wants_read());
      ++stuck;
    } else {
      written += static_cast<size_t>(count);
    }
    received += client.Read(random() % 50'000 + 1);
  }
  EXPECT_EQ(received, expected);
  EXPECT_GT(stuck, 3);
}

TEST_F(SessionTest, ReadsIntoPieces) {
  Connect();
  std::string text;
  for (int i = 0; text.size() < 2'000'000; ++i) text += std::to_string(i) + ' ';
  std::string received;
  size_t sent = 0;
  while (received.size() < text.size()) {
    sent += client_->Write(absl::string_view(text).substr(sent));
    received += ReadAll(*session_, {9, 16'384, 1, 40'000, 7});
  }
  EXPECT_EQ(received, text);
  EXPECT_FALSE(session_->more_to_read());
}

TEST_F(SessionTest, CountsRecordsWithoutUse) {
  Connect();
  client_->Write(std::string(1000, 'x'));
  ReadAll(*session_, {4096});
  session_->TakeCrumbs();
  for (int i = 0; i < 50; ++i) client_->Write(std::string(63, 'x'));
  EXPECT_EQ(ReadAll(*session_, {4096}), std::string(50 * 63, 'x'));
  EXPECT_GE(session_->TakeCrumbs(), 49);
  for (int i = 0; i < 100; ++i) client_->Write(std::string(64, 'x'));
  ReadAll(*session_, {64, 4096});
  EXPECT_LE(session_->TakeCrumbs(), 2);
}

TEST_F(SessionTest, KnowsHowItEnds) {
  Connect();
  client_->Write("last");
  SSL_shutdown(client_->ssl());
  EXPECT_EQ(session_->Read({&piece_, 1}), 4);
  EXPECT_EQ(session_->Read({&piece_, 1}), 0);
  EXPECT_EQ(session_->Read({&piece_, 1}), 0);
  // The other direction is still open.
  EXPECT_EQ(session_->Write({&piece_, 1}), static_cast<ssize_t>(sizeof(bytes_)));
  session_->SayEnd();
  EXPECT_EQ(client_->Read().size(), sizeof(bytes_));
  EXPECT_NE(SSL_get_shutdown(client_->ssl()) & SSL_RECEIVED_SHUTDOWN, 0);
}

TEST_F(SessionTest, ACutIsAnEnd) {
  Connect();
  sockets_.CloseClient();
  EXPECT_LE(session_->Read({&piece_, 1}), 0);
  EXPECT_NE(errno, EAGAIN);
  EXPECT_EQ(session_->Write({&piece_, 1}), -1);
}

TEST_F(SessionTest, GarbageAfterTheHandshakeIsAnError) {
  Connect();
  const std::string garbage(1000, '\x17');
  send(sockets_.client, garbage.data(), garbage.size(), 0);
  EXPECT_EQ(session_->Read({&piece_, 1}), -1);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_EQ(ERR_peek_error(), 0U);
}

// A client's real bytes, changed in a few places or cut off.
TEST_F(SessionTest, SurvivesRandomHandshakes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    Sockets sockets;
    const auto session =
        Session::Accept(i % 2 == 0 ? *plain_ : *mutual_,
                        i % 3 == 0 ? Protocol::kHttp : Protocol::kGrpc, sockets.server);
    Sockets between;
    TlsClient client(between.client, {.version = i % 5 == 0 ? TLS1_2_VERSION : 0});
    Session::Step step = Session::Step::kAgain;
    for (int turn = 0; turn < 4 && step == Session::Step::kAgain; ++turn) {
      ERR_clear_error();
      SSL_do_handshake(client.ssl());
      std::string bytes(8192, '\0');
      const ssize_t count = recv(between.server, bytes.data(), bytes.size(), 0);
      if (count <= 0) break;
      bytes.resize(static_cast<size_t>(count));
      if (turn == static_cast<int>(random() % 2)) {
        for (size_t changes = random() % 4; changes != 0; --changes) {
          bytes[random() % bytes.size()] = static_cast<char>(random());
        }
        if (random() % 8 == 0) bytes.resize(random() % bytes.size() + 1);
      }
      send(sockets.client, bytes.data(), bytes.size(), 0);
      step = session->Handshake();
      char response[16384];
      const ssize_t answered = recv(sockets.client, response, sizeof(response), 0);
      if (answered > 0) send(between.server, response, static_cast<size_t>(answered), 0);
    }
    if (step == Session::Step::kDone) ReadAll(*session, {100});
  }
}

}  // namespace
}  // namespace quantd::access
