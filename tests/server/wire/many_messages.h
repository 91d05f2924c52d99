// Calls a test's check for many messages of a type: random, sensible and mutated ones.
#ifndef QUANTD_TESTS_SERVER_WIRE_MANY_MESSAGES_H_
#define QUANTD_TESTS_SERVER_WIRE_MANY_MESSAGES_H_

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "request_generator.h"
#include "wire_testing.h"

namespace quantd::wire {

// Calls check(message, ok) for AnyMessage of one seed after the other; `check` sets whether the
// message was accepted. It ends after five seconds (sanitized builds are slower), but not before
// 500 messages (the machine may be busy). A fair part of them must be accepted, and a part
// rejected.
template <typename Check>
void ForManyMessages(Method subject, int messages, Check check) {
  const uint64_t seed = TestSeed(20261121);
  const google::protobuf::LogSilencer silencer;  // the parser prints each bad string
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int accepted = 0;
  int rejected = 0;
  for (int i = 0; i < messages && (i < 500 || std::chrono::steady_clock::now() < end); ++i) {
    Random random(seed + i);
    const std::string message = AnyMessage(subject, random);
    bool ok = false;
    check(message, ok);
    ++(ok ? accepted : rejected);
    if (testing::Test::HasFailure()) {
      FAIL() << "QUANTD_TEST_SEED=" << seed + i << ", message 0 of it: " << Hex(message);
    }
  }
  std::printf("%d messages accepted, %d rejected\n", accepted, rejected);
  EXPECT_GT(accepted, rejected / 4);
  EXPECT_GT(rejected, accepted / 20);
}

}  // namespace quantd::wire

#endif  // QUANTD_TESTS_SERVER_WIRE_MANY_MESSAGES_H_
