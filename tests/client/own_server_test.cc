// The address that a client uses for QUANTD_LISTEN.
#include "commands/own_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace quantd::cli {
namespace {

using ::testing::HasSubstr;

TEST(OwnServerTest, TheFirstAddressAsAClientReachesIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"0.0.0.0:50051", "127.0.0.1:50051"},
      {"[::]:50051", "127.0.0.1:50051"},
      {":::50051", "127.0.0.1:50051"},
      {"127.0.0.1:1", "127.0.0.1:1"},
      {"[::1]:65535", "[::1]:65535"},
      {"::1:7", "[::1]:7"},
      {"localhost:7", "localhost:7"},
      {"unix:/run/quantd/socket", "unix:/run/quantd/socket"},
      {"unix:relative", "unix:relative"},
      {"unix:/run/quantd/socket,0.0.0.0:50051", "unix:/run/quantd/socket"},
      {"0.0.0.0:50051,unix:/run/quantd/socket", "127.0.0.1:50051"},
      {"10.0.0.1:7,127.0.0.1:0", "10.0.0.1:7"},
  };
  for (const auto& [listen, reached] : cases) {
    const absl::StatusOr<std::string> address = AddressOfListener(listen);
    ASSERT_TRUE(address.ok()) << listen << ": " << address.status();
    EXPECT_EQ(*address, reached) << listen;
  }
}

TEST(OwnServerTest, WhatCannotBeReachedIsSaid) {
  const std::pair<std::string, const char*> cases[] = {
      {"127.0.0.1:0", "'127.0.0.1:0', a port that the server picks"},
      {"[::]:0,127.0.0.1:50051", "'[::]:0', a port that the server picks"},
      {"", "'', must be HOST:PORT"},
      {",127.0.0.1:1", "'', must be HOST:PORT"},
      {"nowhere", "'nowhere', must be HOST:PORT"},
      {":50051", "':50051', must be HOST:PORT"},
      {"host:", "'host:', must be HOST:PORT"},
      {"host:-1", "must be HOST:PORT"},
      {"host:65536", "must be HOST:PORT"},
      {"host:99999999999999999999", "must be HOST:PORT"},
      {"host:1x", "must be HOST:PORT"},
      {"unix:", "names no socket"},
      {std::string("host\0:", 6), "must be HOST:PORT"},
  };
  for (const auto& [listen, said] : cases) {
    const absl::Status status = AddressOfListener(listen).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << listen;
    EXPECT_THAT(status.message(), HasSubstr(said));
    EXPECT_THAT(status.message(), HasSubstr("QUANTD_LISTEN"));
    EXPECT_THAT(status.message(), HasSubstr("--address"));
  }
}

}  // namespace
}  // namespace quantd::cli
