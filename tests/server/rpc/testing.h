// A server in this process, what its page of metrics says, and a gate before its kernels: what a
// call has, and on which thread, is looked at while it stands there.
#ifndef QUANTD_TESTS_SERVER_RPC_TESTING_H_
#define QUANTD_TESTS_SERVER_RPC_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "quantd/v1/quantization.pb.h"
#include "server/server.h"

namespace quantd::rpc {

class TestServer {
 public:
  explicit TestServer(const std::vector<std::string>& flags = {});
  ~TestServer();

  // A connection that grants so many bytes of every response.
  std::unique_ptr<transport::Client> Connect(uint32_t window = 1 << 30) const;

  // As at the end of its life, which then has nothing to do.
  void Drain();

  // The number of a sample, by name and labels as they are written; NaN: there is none.
  double Metric(absl::string_view sample) const;
  // Until it is that number. False: not in 60 s.
  bool Until(absl::string_view sample, double value) const;

 private:
  std::unique_ptr<server::Server> server_;
  bool drained_ = false;
};

// Open at first. One at a time.
class Gate {
 public:
  Gate();
  ~Gate();
  void Close();
  void Open();
  // Lets one through.
  void Pass();
  // Until so many calls have come to it since it was made. False: not in 60 s.
  bool Reached(int calls) const;
  // Whether the one that came last was on a thread that leads a loop.
  bool led() const;
};

// The path of a method of QuantizationService.
std::string Path(absl::string_view method);
// A call's only message, or one of several.
void Send(transport::Client& client, int32_t id, const google::protobuf::MessageLite& message,
          bool ends = true);
// The same of a message's bytes.
void SendBytes(transport::Client& client, int32_t id, const std::string& message, bool ends = true);
// The whole of a call with one message; its grpc-status.
int Call(transport::Client& client, int32_t id, absl::string_view method,
         const google::protobuf::MessageLite& message);

// FLOAT, as bytes and as values.
v1::Tensor Floats(const std::vector<int64_t>& shape, float value = 1);
v1::Tensor FloatValues(const std::vector<int64_t>& shape, float value = 1);
v1::QuantizeRequest Quantize(v1::Tensor x);
v1::CalibrateRequest Calibrate(v1::Tensor x, v1::CalibrationMethod method);

}  // namespace quantd::rpc

#endif  // QUANTD_TESTS_SERVER_RPC_TESTING_H_
