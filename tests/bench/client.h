// The load: keeps a number of calls in flight to one server, over gRPC's raw completion queue, with
// messages that are made once.
#ifndef QUANTD_TESTS_BENCH_CLIENT_H_
#define QUANTD_TESTS_BENCH_CLIENT_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "process.h"

namespace quantd::bench {

// The calls that are made again and again.
struct Work {
  std::string method;  // "/service/Method"
  grpc::ByteBuffer request;
  int in_flight = 1;  // calls, or streams
  int window = 0;     // items in flight on each stream; 0: not a stream
};

class Client {
 public:
  // Connects, and stays connected. Calls use the connections in turn. With several threads, each
  // has its share of the calls and its own connections. `certificate`: that of a server with TLS,
  // PEM, the only one that is trusted; empty: plain text.
  explicit Client(const std::string& address, int connections = 1, int threads = 1,
                  const std::string& certificate = {});

  // One call: returns the response's bytes, or nothing on an error.
  std::string Call(const std::string& method, const std::string& request);
  // The same without a copy, over one of the connections; from any thread.
  grpc::Status Call(const std::string& method, const grpc::ByteBuffer& request,
                    grpc::ByteBuffer& response, int connection = 0);

  // A turn of at least `seconds`, longer if only a few calls fit. `server` is the process at the
  // other end. Only the time between two responses counts: the first one when the pipe is full, the
  // last one before it runs empty. So no figure includes the time to fill or to drain it.
  Load Run(const Work& work, double seconds, const Process& server);

 private:
  using Stubs = std::vector<std::unique_ptr<grpc::GenericStub>>;
  static Load RunOne(const Stubs& stubs, const Work& work, double seconds, const Process& server);
  static Load Unary(const Stubs& stubs, const Work& work, double seconds, const Process& server);
  static Load Stream(const Stubs& stubs, const Work& work, double seconds, const Process& server);

  std::vector<Stubs> threads_;
};

grpc::ByteBuffer ToBuffer(const std::string& bytes);

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_CLIENT_H_
