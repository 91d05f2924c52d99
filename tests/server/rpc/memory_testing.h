// A server, the bytes that it reports for its calls, and a gate at which they can be inspected.
#ifndef QUANTD_TESTS_SERVER_RPC_MEMORY_TESTING_H_
#define QUANTD_TESTS_SERVER_RPC_MEMORY_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/decode.h"
#include "testing.h"

namespace quantd::rpc {

inline constexpr char kBytes[] = "quantd_inflight_bytes";
inline constexpr char kRequests[] = "quantd_inflight_requests";
inline constexpr char kQueued[] = "quantd_queued_requests";
inline constexpr uint64_t kKiB = 1024;
inline constexpr int64_t kLong = 400'000;  // elements whose work takes a core

inline wire::BytesView View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

class Memory : public testing::Test {
 protected:
  bool Bytes(uint64_t expected) const {
    return server_->Until(kBytes, static_cast<double>(expected));
  }
  void Begin(int32_t id, absl::string_view method) {
    client_->Say(transport::CallHead(id, Path(method)));
  }
  // Occupies both cores, and returns what these calls hold.
  double TakeBothCores() {
    other_ = server_->Connect();
    for (const int32_t id : {1, 3}) {
      other_->Say(transport::CallHead(id, Path("Quantize")));
      Send(*other_, id, Quantize(Floats({kLong})));
    }
    EXPECT_TRUE(gate_.Reached(2));
    EXPECT_TRUE(server_->Until("quantd_busy_cores", 2));
    return server_->Metric(kBytes);
  }
  // Expects that the waiting call holds `expected` more; then it is cancelled.
  void WaitsWith(double before, uint64_t expected) {
    EXPECT_TRUE(server_->Until(kQueued, 1));
    EXPECT_EQ(server_->Metric(kBytes) - before, static_cast<double>(expected));
    client_->Say(transport::Rst(1));
    EXPECT_TRUE(client_->Heard());
    EXPECT_TRUE(server_->Until(kQueued, 0));
    EXPECT_TRUE(server_->Until(kBytes, before));
    EXPECT_EQ(server_->Metric("quantd_busy_cores"), 2);
    gate_.Open();
    for (const int32_t id : {1, 3}) EXPECT_EQ(other_->Status(id), 0);
    EXPECT_TRUE(server_->Until("quantd_busy_cores", 0));
    EXPECT_TRUE(Bytes(0));
  }

  void Restart(const std::vector<std::string>& flags) {
    client_.reset();
    server_ = std::make_unique<TestServer>(flags);
    client_ = server_->Connect(0);
  }

  std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>();
  // Its windows let nothing of the responses through: they stay in the server.
  std::unique_ptr<transport::Client> client_ = server_->Connect(0);
  std::unique_ptr<transport::Client> other_;
  Gate gate_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_TESTS_SERVER_RPC_MEMORY_TESTING_H_
