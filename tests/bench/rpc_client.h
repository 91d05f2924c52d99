// The load: keeps a number of calls in flight to one server, over gRPC's raw completion queue, with
// messages that are made once.
#ifndef QUANTD_TESTS_BENCH_RPC_CLIENT_H_
#define QUANTD_TESTS_BENCH_RPC_CLIENT_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace quantd::bench {

// What a run of one configuration saw.
struct Load {
  uint64_t calls = 0;
  uint64_t errors = 0;
  double seconds = 0;
  std::vector<double> latencies;  // seconds, of each call or item
};

class Client {
 public:
  explicit Client(const std::string& address);

  // One call of `method` ("/service/Method"): the answer's bytes, empty on an error.
  std::string Call(const std::string& method, const std::string& request);

  // For `seconds`: `in_flight` calls at a time. Sends `request` again and again.
  Load Unary(const std::string& method, const std::string& request, int in_flight, double seconds);
  // The same over `in_flight` streams, one item in flight on each, or `window` items.
  Load Stream(const std::string& method, const std::string& request, int in_flight, double seconds);

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_RPC_CLIENT_H_
