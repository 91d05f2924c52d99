// A channel, and single calls over it: deadlines, retries, cancellation, the server's limits.
#ifndef QUANTD_CLIENT_CPP_CONNECTION_H_
#define QUANTD_CLIENT_CPP_CONNECTION_H_

#include <grpcpp/client_context.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "cancellation.h"
#include "credentials.h"
#include "quantd/client/options.h"
#include "quantd/client/status.h"
#include "quantd/v1/quantization.grpc.pb.h"

namespace quantd::client {

// The limits of a server.
struct ServerLimits {
  uint64_t message_bytes = UINT64_MAX;  // of a request, and of a response
  uint64_t budget_bytes = UINT64_MAX;   // of both together
  bool operator==(const ServerLimits& other) const {
    return message_bytes == other.message_bytes && budget_bytes == other.budget_bytes;
  }
};

// The attempts of one call.
struct Attempts {
  explicit Attempts(const ClientOptions& options) : deadline(absl::Now() + options.timeout) {}
  absl::Time deadline;
  int failed = 0;    // all of them, for the waits
  int lost = 0;      // those whose connection was lost on the way
  bool any = false;  // health has refused every server: it chooses among servers and vetoes none
  // Set when nobody listened. The next attempt then waits for a connection, and does not sleep:
  // only a waiting call lets gRPC see that there is one; without it gRPC looks every 5 s.
  absl::Status nobody;
};

// Thread-safe.
class Connection {
 public:
  using Stub = v1::QuantizationService::Stub;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  Connection(const std::string& address, const ClientOptions& options);
  // Waits for the jobs.
  ~Connection();

  const ClientOptions& options() const { return options_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // That of a server whose health is SERVING, unless none was.
  Stub& stub_for(const Attempts& attempts) { return attempts.any ? *any_stub_ : *stub_; }
  // The error of the address or the files; all calls fail with it.
  const absl::Status& status() const { return status_; }

  // One call, repeated as WaitAfter says. `cancellation` may be null. All attempts together have
  // the client's timeout.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method, const Request& request,
                                Cancellation* cancellation = nullptr) {
    if (!status_.ok()) return status_;
    Attempts attempts(options_);
    for (;;) {
      Stub& stub = stub_for(attempts);
      grpc::ClientContext context;
      Prepare(context, attempts);
      if (options_.on_timing) context.AddMetadata("quantd-timing", "1");
      if (cancellation != nullptr) cancellation->Add(&context);
      Response response;
      absl::Status status = Explain((stub.*method)(&context, request, &response));
      if (cancellation != nullptr) cancellation->Remove(&context);
      if (options_.on_timing) TellTiming(context);
      if (status.ok()) return response;
      const std::optional<absl::Duration> wait = WaitAfter(status, attempts);
      if (!wait.has_value()) return status;
      if (cancellation != nullptr) {
        cancellation->Sleep(*wait);
      } else {
        absl::SleepFor(*wait);
      }
    }
  }

  // Sets the deadline, the token, and whether the call waits for a connection.
  void Prepare(grpc::ClientContext& context, const Attempts& attempts) const;
  // Converts gRPC's status to ours, and adds other possible causes.
  absl::Status Explain(const grpc::Status& status) const;
  // How long to wait before the next attempt; nullopt if there must be none: the status is not
  // UNAVAILABLE, or the server wants more time than is left. A call of which the server has surely
  // processed nothing (nobody listens, or the server refused it) is repeated until its deadline;
  // one whose connection was lost on the way max_attempts times, as it may be what ends the server.
  // A status that only says how long nobody listened becomes the one that says so.
  std::optional<absl::Duration> WaitAfter(absl::Status& status, Attempts& attempts) const;

  // Calls on_timing, if the call has an answer to it.
  void TellTiming(const grpc::ClientContext& context) const;

  // The server's limits: asked for once, and again if `refresh`. A server that can't report them
  // has none.
  absl::StatusOr<ServerLimits> Limits(bool refresh, Cancellation* cancellation);
  // The limits that are known without asking.
  std::optional<ServerLimits> KnownLimits() const;

  // Runs a job on a thread of its own.
  void Start(std::function<void()> job);
  // A job that runs elsewhere has begun, or has ended.
  void JobBegan();
  void JobEnded();

 private:
  const ClientOptions options_;
  bool tls_ = false;
  std::unique_ptr<TokenFile> token_;  // may be null
  absl::Status status_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stub> stub_;
  std::unique_ptr<Stub> any_stub_;  // of a channel that connects when it is first used

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::optional<ServerLimits> limits_;  // guarded by mutex_, like the next
  size_t jobs_ = 0;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_CONNECTION_H_
