// Three operations of the server, without a server and with a limit of messages: the pieces of the
// client are sent to it.
#ifndef QUANTD_TESTS_CLIENT_FAKE_SERVER_H_
#define QUANTD_TESTS_CLIENT_FAKE_SERVER_H_

#include <atomic>

#include "absl/status/statusor.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::client {

// Safe from any thread.
class FakeServer {
 public:
  explicit FakeServer(size_t message_bytes) : message_bytes_(message_bytes) {}

  absl::StatusOr<v1::QuantizeResponse> Answer(const v1::QuantizeRequest& request);
  absl::StatusOr<v1::DequantizeResponse> Answer(const v1::DequantizeRequest& request);
  absl::StatusOr<v1::DynamicQuantizeResponse> Answer(const v1::DynamicQuantizeRequest& request);

  int calls() const { return calls_; }

 private:
  const size_t message_bytes_;
  std::atomic<int> calls_{0};
};

}  // namespace quantd::client

#endif  // QUANTD_TESTS_CLIENT_FAKE_SERVER_H_
