// A server in this process, its metrics, and a gate before its kernels: while a call waits there,
// tests look at what it has, and on which thread it is.
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

  // A connection with a window of `window` bytes for every response.
  std::unique_ptr<transport::Client> Connect(uint32_t window = 1 << 30) const;

  // What its destructor does; the destructor then has nothing left to do.
  void Drain();

  // The value of a sample, by name and labels as they are written; NaN: it does not exist.
  double Metric(absl::string_view sample) const;
  // Waits until the sample has this value. False: not within 60 s.
  bool Until(absl::string_view sample, double value) const;

 private:
  std::unique_ptr<server::Server> server_;
  bool drained_ = false;
};

// Open at first. There is one at a time.
class Gate {
 public:
  Gate();
  ~Gate();
  void Close();
  void Open();
  // Lets one call through.
  void Pass();
  // Waits until `calls` calls have come to it since it was made. False: not within 60 s.
  bool Reached(int calls) const;
  // Whether the last call came on a thread that leads a loop.
  bool led() const;
};

// The path of a method of QuantizationService.
std::string Path(absl::string_view method);
// The headers of a call of Quantize, whose response is to be compressed or not.
std::string QuantizeHead(int32_t id, bool compressed);
// Sends a call's only message, or one of several.
void Send(transport::Client& client, int32_t id, const google::protobuf::MessageLite& message,
          bool ends = true);
// The same for a message's bytes.
void SendBytes(transport::Client& client, int32_t id, const std::string& message, bool ends = true);
// Begins a call with this message.
void Begin(transport::Client& client, int32_t id, absl::string_view method,
           const google::protobuf::MessageLite& message, bool ends = true);
// Makes a whole call with one message, and returns its grpc-status.
int Call(transport::Client& client, int32_t id, absl::string_view method,
         const google::protobuf::MessageLite& message);

// FLOAT tensors, as bytes and as values.
v1::Tensor Floats(const std::vector<int64_t>& shape, float value = 1);
v1::Tensor FloatValues(const std::vector<int64_t>& shape, float value = 1);
v1::QuantizeRequest Quantize(v1::Tensor x);

}  // namespace quantd::rpc

#endif  // QUANTD_TESTS_SERVER_RPC_TESTING_H_
