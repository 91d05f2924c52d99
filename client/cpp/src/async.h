// Asynchronous calls: they use gRPC's callbacks, or a thread if several messages are
// needed.
#ifndef QUANTD_CLIENT_CPP_ASYNC_H_
#define QUANTD_CLIENT_CPP_ASYNC_H_

#include <grpcpp/alarm.h>

#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "cancellation.h"
#include "connection.h"
#include "operations.h"

namespace quantd::client {

inline void StartRpc(v1::QuantizationService::Stub& stub, grpc::ClientContext* context,
                     const v1::QuantizeRequest* request, v1::QuantizeResponse* response,
                     std::function<void(grpc::Status)> done) {
  stub.async()->Quantize(context, request, response, std::move(done));
}
inline void StartRpc(v1::QuantizationService::Stub& stub, grpc::ClientContext* context,
                     const v1::DequantizeRequest* request, v1::DequantizeResponse* response,
                     std::function<void(grpc::Status)> done) {
  stub.async()->Dequantize(context, request, response, std::move(done));
}
inline void StartRpc(v1::QuantizationService::Stub& stub, grpc::ClientContext* context,
                     const v1::DynamicQuantizeRequest* request,
                     v1::DynamicQuantizeResponse* response,
                     std::function<void(grpc::Status)> done) {
  stub.async()->DynamicQuantize(context, request, response, std::move(done));
}

// One call. Owned by its callbacks: gRPC's, or those of the alarm between two attempts. `Owned`
// holds the arguments: its View() is the input of operations.h.
template <typename Owned>
class AsyncOperation : public std::enable_shared_from_this<AsyncOperation<Owned>> {
 public:
  using Arguments = decltype(std::declval<const Owned&>().View());
  using Result = typename Arguments::Result;
  using Done = std::function<void(absl::StatusOr<Result>)>;

  AsyncOperation(Connection& connection, Owned owned, std::shared_ptr<Cancellation> cancellation,
                 Done done)
      : connection_(connection),
        owned_(std::move(owned)),
        cancellation_(std::move(cancellation)),
        done_(std::move(done)),
        attempts_(connection.options()) {}

  void Start() {
    connection_.JobBegan();
    if (!connection_.status().ok() || MayBeTooLarge(connection_, owned_.View())) {
      RunOnThread();
    } else {
      request_ = WholeRequest(owned_.View());
      Attempt();
    }
  }

 private:
  // If several messages are needed, a thread of its own sends them and waits. Its cost is
  // negligible for a tensor of that size.
  void RunOnThread() {
    try {
      connection_.Start([self = this->shared_from_this()] {
        self->Finish(Run(self->connection_, self->owned_.View(), self->cancellation_.get()));
      });
    } catch (const std::system_error& error) {
      Finish(absl::ResourceExhaustedError(error.what()));
    }
  }

  void Attempt() {
    context_.emplace();
    connection_.Prepare(*context_, attempts_);
    cancellation_->Add(&*context_);
    response_.Clear();
    StartRpc(connection_.stub_for(attempts_), &*context_, &request_, &response_,
             [self = this->shared_from_this()](const grpc::Status& status) {
               self->cancellation_->Remove(&*self->context_);
               // It holds the channel, whose last owner must not be a thread of gRPC, which would
               // wait for itself. So it is released while the client still waits for this job.
               self->context_.reset();
               self->Answered(self->connection_.Explain(status));
             });
  }

  void Answered(absl::Status status) {
    if (status.ok()) return Finish(ResultOf(owned_.View(), std::move(response_)));
    // It may be a small request for a server with an even lower limit. That is checked on a thread,
    // which can wait.
    if (absl::IsResourceExhausted(status)) return RunOnThread();
    const std::optional<absl::Duration> wait = connection_.WaitAfter(status, attempts_);
    if (!wait.has_value()) return Finish(status);
    alarm_.emplace();
    cancellation_->Set(&*alarm_, *wait, [self = this->shared_from_this()](bool) {
      // An alarm keeps its callback, and with it this operation, as long as it lives.
      const std::shared_ptr<AsyncOperation> operation = self->shared_from_this();
      operation->cancellation_->Forget();
      operation->alarm_.reset();
      if (operation->cancellation_->cancelled()) {
        operation->Finish(absl::CancelledError("cancelled"));
      } else {
        operation->Attempt();
      }
    });
  }

  // The last step before destruction.
  void Finish(absl::StatusOr<Result> result) {
    std::exchange(done_, nullptr)(std::move(result));
    connection_.JobEnded();
  }

  Connection& connection_;
  const Owned owned_;
  const std::shared_ptr<Cancellation> cancellation_;
  Done done_;
  typename Arguments::Request request_;
  typename Arguments::Response response_;
  std::optional<grpc::ClientContext> context_;
  std::optional<grpc::Alarm> alarm_;
  Attempts attempts_;
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_ASYNC_H_
