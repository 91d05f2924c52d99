// The three operations behind the contract's messages, in this process and with limits: the
// client's pieces are sent to it.
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

  absl::StatusOr<v1::QuantizeResponse> Quantize(const v1::QuantizeRequest& request);
  absl::StatusOr<v1::DequantizeResponse> Dequantize(const v1::DequantizeRequest& request);
  absl::StatusOr<v1::DynamicQuantizeResponse> DynamicQuantize(
      const v1::DynamicQuantizeRequest& request);

  int calls() const { return calls_; }
  // From now on it accepts messages of `message_bytes`.
  void Take(size_t message_bytes) { message_bytes_ = message_bytes; }

 private:
  absl::Status Fits(const google::protobuf::MessageLite& message) const;

  std::atomic<size_t> message_bytes_;
  std::atomic<int> calls_{0};
};

}  // namespace quantd::client

#endif  // QUANTD_TESTS_CLIENT_FAKE_SERVER_H_
