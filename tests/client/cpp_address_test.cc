// What a user may write as an address, and the environment.
#include <gtest/gtest.h>

#include <cstdlib>

#include "address.h"

namespace quantd::client {
namespace {

std::string Target(const std::string& given) {
  const absl::StatusOr<std::string> target = TargetOf(given);
  return target.ok() ? *target : std::string(absl::StatusCodeToString(target.status().code()));
}

TEST(Address, HostsWithoutAPortGet50051) {
  EXPECT_EQ(Target("localhost"), "localhost:50051");
  EXPECT_EQ(Target("localhost:"), "localhost:50051");
  EXPECT_EQ(Target("localhost:7"), "localhost:7");
  EXPECT_EQ(Target(" quantd.models.svc \n"), "quantd.models.svc:50051");
  EXPECT_EQ(Target("[::1]"), "[::1]:50051");
  EXPECT_EQ(Target("[::1]:7"), "[::1]:7");
  EXPECT_EQ(Target("[::1]:"), "[::1]:50051");
  EXPECT_EQ(Target("localhost:65535"), "localhost:65535");
  EXPECT_EQ(Target("fe80::1"), "[fe80::1]:50051");
  EXPECT_EQ(Target("dns:///quantd"), "dns:///quantd:50051");  // gRPC's own port is 443
  EXPECT_EQ(Target("dns:quantd"), "dns:quantd:50051");
  EXPECT_EQ(Target("dns://8.8.8.8:53/quantd"), "dns://8.8.8.8:53/quantd:50051");
  EXPECT_EQ(Target("ipv4:10.0.0.1,10.0.0.2:7"), "ipv4:10.0.0.1:50051,10.0.0.2:7");
  EXPECT_EQ(Target("ipv6:[::1]"), "ipv6:[::1]:50051");
}

TEST(Address, OtherTargetsStayAsTheyAre) {
  for (const char* target :
       {"unix:/run/quantd.sock", "unix:///run/quantd.sock", "dns:///quantd:50051",
        "unix-abstract:quantd", "ipv4:10.0.0.1:7,10.0.0.2:7", "xds:///quantd"}) {
    EXPECT_EQ(Target(target), target);
  }
}

TEST(Address, WhatIsNoneIsSaid) {
  for (const char* target : {"http://quantd", "https://quantd:443", ":50051", "[::1", "h:65536",
                             "h:99999999999", "h:0", "h:a", "h:-1", "h: 1", "[::1]:x", "[::1]x",
                             "dns:///h:99999", "dns:///", "ipv4:10.0.0.1:1,10.0.0.2:65536"}) {
    EXPECT_EQ(Target(target), "INVALID_ARGUMENT") << target;
  }
}

TEST(Address, TheEnvironmentIsAskedWhenNoneIsGiven) {
  ASSERT_EQ(unsetenv("QUANTD_ADDRESS"), 0);
  EXPECT_EQ(Target(""), "127.0.0.1:50051");
  ASSERT_EQ(setenv("QUANTD_ADDRESS", "far", 1), 0);
  EXPECT_EQ(Target(""), "far:50051");
  EXPECT_EQ(Target("near"), "near:50051");
  ASSERT_EQ(setenv("QUANTD_ADDRESS", "", 1), 0);
  EXPECT_EQ(Target(""), "127.0.0.1:50051");
  ASSERT_EQ(unsetenv("QUANTD_ADDRESS"), 0);
}

TEST(Address, ThisMachineIsItsSocketsAndLoopback) {
  for (const char* target : {"unix:/run/quantd.sock", "unix-abstract:quantd", "127.0.0.1:50051",
                             "127.9.9.9:1", "localhost:1", "[::1]:1", "dns:///localhost:1",
                             "ipv4:127.0.0.1:1,127.0.0.2:1", "ipv6:[::1]:1"}) {
    EXPECT_TRUE(IsLocal(target)) << target;
  }
  for (const char* target : {"quantd:50051", "127.0.0.1.example.org:50051", "localhost.org:1",
                             "[::2]:1", "ipv4:127.0.0.1:1,10.0.0.1:1", "xds:///localhost"}) {
    EXPECT_FALSE(IsLocal(target)) << target;
  }
}

}  // namespace
}  // namespace quantd::client
