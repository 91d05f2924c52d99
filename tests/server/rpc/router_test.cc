// Which calls need a token.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

TEST(Router, NeedsATokenForAllButHealth) {
  const std::string file = absl::StrCat(testing::TempDir(), "/quantd_rpc_tokens_", getpid());
  std::ofstream(file) << "secret\n";
  const TestServer server({"--auth_token_file=" + file});
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
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace quantd::rpc
