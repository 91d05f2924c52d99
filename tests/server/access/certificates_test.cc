#include "server/access/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing.h"

namespace quantd::access {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const TlsFiles& files) {
  const auto loaded = Certificates::Load(files);
  return loaded.ok() ? "" : std::string(loaded.status().message());
}

TEST(Certificates, SayWhatIsWrong) {
  const Folder folder;
  const Pair pair = Make({});
  const Pair other = Make({});
  const std::string cert = folder.Put("cert", pair.certificate_pem);
  const std::string key = folder.Put("key", pair.key_pem);
  EXPECT_EQ(ErrorOf({cert, key, ""}), "");
  EXPECT_EQ(ErrorOf({cert, key, cert}), "");
  EXPECT_THAT(ErrorOf({folder.path("none"), key, ""}), HasSubstr("none: cannot be read: No such"));
  EXPECT_THAT(ErrorOf({cert, folder.Put("k", other.key_pem), ""}),
              HasSubstr("is not the key of the certificate in " + cert + " (--tls_key)"));
  EXPECT_THAT(ErrorOf({folder.Put("c", ""), key, ""}), HasSubstr("contains no PEM certificate"));
  EXPECT_THAT(ErrorOf({cert, folder.Put("k", ""), ""}), HasSubstr("contains no PEM key"));
  // A chain whose second part is broken.
  const std::string broken =
      pair.certificate_pem + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(ErrorOf({folder.Put("c", broken), key, ""}), HasSubstr("c: certificate 2: "));
  EXPECT_THAT(ErrorOf({cert, key, folder.Put("a", "x")}), HasSubstr("(--tls_client_ca)"));
  EXPECT_THAT(ErrorOf({folder.Put("c", std::string(5 << 20, 'x')), key, ""}),
              HasSubstr("has more than 4194304 bytes"));
  EXPECT_THAT(ErrorOf({"/dev/zero", key, ""}), HasSubstr("/dev/zero: is not a regular file"));
}

TEST(Certificates, NoErrorShowsAKey) {
  const Folder folder;
  const Pair pair = Make({});
  const std::string cert = folder.Put("cert", pair.certificate_pem);
  std::string damaged = pair.key_pem;
  damaged[60] = '!';
  const std::string error = ErrorOf({cert, folder.Put("key", damaged), ""});
  EXPECT_THAT(error, HasSubstr("the key: "));
  EXPECT_THAT(error, testing::Not(HasSubstr(damaged.substr(30, 20))));
}

TEST(Certificates, WarnOfTime) {
  const Folder folder;
  const Pair old = Make({.from_hours = -9, .to_hours = -1});
  const Pair early = Make({.from_hours = 1, .to_hours = 9});
  const auto load = [&](const Pair& pair) {
    return *Certificates::Load(
        {folder.Put("cert", pair.certificate_pem), folder.Put("key", pair.key_pem), ""});
  };
  EXPECT_THAT(load(old)->Warnings(), ElementsAre(HasSubstr("expired at")));
  EXPECT_THAT(load(early)->Warnings(), ElementsAre(HasSubstr("is not valid before")));
  EXPECT_THAT(load(Make({}))->Warnings(), ElementsAre());
}

// The certificate of a resumed session is not checked again, however long ago it has expired.
TEST(Certificates, SessionsAreResumedUnlessClientsShowCertificates) {
  const Folder folder;
  const Pair authority = Make({.name = "authority"});
  const Pair own = Make({.name = "client", .issuer = &authority});
  const std::string cert = folder.Put("cert", authority.certificate_pem);
  const std::string key = folder.Put("key", authority.key_pem);
  for (const bool mutual : {false, true}) {
    const auto certificates = *Certificates::Load({cert, key, mutual ? cert : ""});
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      for (const Protocol protocol : {Protocol::kGrpc, Protocol::kHttp}) {
        const char* const name = protocol == Protocol::kGrpc ? "\x02h2" : "";
        Sockets first_sockets, second_sockets;
        const auto first = Session::Accept(*certificates, protocol, first_sockets.server);
        const TlsClient::Options options{
            .protocols = name, .certificate = &own, .version = version};
        TlsClient client(first_sockets.client, options);
        ASSERT_EQ(client.ShakeHands(*first), Session::Step::kDone);
        client.Read();  // receives a ticket
        const std::unique_ptr<SSL_SESSION, Free<SSL_SESSION_free>> kept(
            SSL_get1_session(client.ssl()));
        const auto second = Session::Accept(*certificates, protocol, second_sockets.server);
        TlsClient again(second_sockets.client, options);
        SSL_set_session(again.ssl(), kept.get());
        ASSERT_EQ(again.ShakeHands(*second), Session::Step::kDone);
        EXPECT_EQ(SSL_session_reused(again.ssl()), mutual ? 0 : 1) << version;
        EXPECT_EQ(second->has_client_certificate(), mutual);
      }
    }
  }
}

TEST(Certificates, ABadReloadChangesNothing) {
  const Folder folder;
  const Pair first = Make({});
  const Pair second = Make({});
  TlsFiles files{folder.Put("cert", first.certificate_pem), folder.Put("key", first.key_pem), ""};
  const auto certificates = *Certificates::Load(files);
  const std::string before = certificates->validity().serial;
  const Certificates::Context context = certificates->context(Protocol::kGrpc);
  folder.Put("cert", second.certificate_pem);
  EXPECT_FALSE(certificates->Reload().ok());
  EXPECT_EQ(certificates->validity().serial, before);
  EXPECT_EQ(certificates->context(Protocol::kGrpc), context);
  folder.Put("key", second.key_pem);
  EXPECT_TRUE(certificates->Reload().ok());
  EXPECT_NE(certificates->validity().serial, before);
  EXPECT_NE(certificates->context(Protocol::kGrpc), context);
}

}  // namespace
}  // namespace quantd::access
