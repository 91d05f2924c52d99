// Which calls need a token.
#include "server/rpc/router.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

class RouterTest : public testing::Test {
 protected:
  RouterTest() { std::ofstream(file_) << "secret\n"; }
  ~RouterTest() override { std::filesystem::remove(file_); }

  const std::string file_ = absl::StrCat(testing::TempDir(), "/quantd_rpc_tokens_", getpid());
};

TEST_F(RouterTest, AsksAllRoutesForATokenThatAreNotOpen) {
  metrics::Metrics metrics({}, [] { return metrics::Readings{}; });
  const admission::Admission admission({1 << 20, 1, 1});
  const auto tokens = *access::Tokens::Load(file_);
  Router router(metrics, admission, tokens.get());
  for (const char* const path : {"/a.B/Open", "/a.B/Closed", "/a.B/OpenToo"}) {
    router.Add(path, [](transport::ServerCall&) {});
  }
  router.Open("/a.B/Open");
  router.Open("/a.B/OpenToo");
  for (const int method : {0, 1, 2, -1}) {
    EXPECT_EQ(router.Authorize(method, "").ok(), method == 0 || method == 2) << method;
    EXPECT_TRUE(router.Authorize(method, "Bearer secret").ok()) << method;
    EXPECT_EQ(router.Authorize(method, "Bearer wrong").ok(), method == 0 || method == 2) << method;
  }
}

TEST_F(RouterTest, NeedsATokenForAllButHealth) {
  const TestServer server({"--auth_token_file=" + file_});
  const auto client = server.Connect();
  int32_t id = 1;
  const auto status = [&](const std::string& path, bool with_token) {
    transport::Fields more;
    if (with_token) more.emplace_back("authorization", "Bearer secret");
    client->Say(transport::Headers(id, transport::CallFields(path, more)));
    Send(*client, id, v1::GetServerInfoRequest());  // as empty as the request of a check
    id += 2;
    return client->Status(id - 2);
  };
  EXPECT_EQ(status("/grpc.health.v1.Health/Check", false), 0);
  EXPECT_EQ(status("/grpc.health.v1.Health/Check", true), 0);
  EXPECT_EQ(status(Path("GetServerInfo"), false), 16);
  EXPECT_EQ(status(Path("GetServerInfo"), true), 0);
  EXPECT_EQ(status("/quantd.v1.QuantizationService/Nothing", false), 16);
  EXPECT_EQ(status("/quantd.v1.QuantizationService/Nothing", true), 12);
}

}  // namespace
}  // namespace quantd::rpc
