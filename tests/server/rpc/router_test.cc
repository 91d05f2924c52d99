// Which calls need a token, and how large a request may be.
#include "server/rpc/router.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/admission/admission.h"
#include "server/metrics/metrics.h"
#include "server/wire/method.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

TEST(RouterTest, AsksAllRoutesForATokenThatAreNotOpen) {
  const std::string file = absl::StrCat(testing::TempDir(), "/quantd_rpc_tokens_", getpid());
  std::ofstream(file) << "secret\n";
  metrics::Metrics metrics({}, [] { return metrics::Readings{}; });
  const admission::Admission admission({1 << 20, 1, 1});
  const auto tokens = *access::Tokens::Load(file);
  std::filesystem::remove(file);
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

// Only methods whose requests are decoded with memory reserved for all that they can become.
TEST(RouterTest, LetsInLargeRequestsOfTensorsAlone) {
  const TestServer server;
  const auto client = server.Connect();
  std::string unknown;
  while (unknown.size() <= 12 << 10) unknown += std::string("\x7a\x00", 2);
  int32_t id = -1;
  for (const wire::MethodInfo& method : wire::kMethods) {
    id += 2;
    client->Say(transport::CallHead(id, absl::StrCat("/", method.service, "/", method.name)));
    SendBytes(*client, id, unknown);
    client->Status(id);
    const bool is_refused =
        absl::StrContains(client->stream(id).Trailer("grpc-message"), "this method allows 12288");
    EXPECT_EQ(is_refused, method.method == wire::Method::kGetServerInfo) << method.name;
  }
}

}  // namespace
}  // namespace quantd::rpc
