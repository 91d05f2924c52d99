// How a call that is in several threads, or on its way, is ended from outside.
#ifndef QUANTD_CLIENT_CPP_CANCELLATION_H_
#define QUANTD_CLIENT_CPP_CANCELLATION_H_

#include <grpcpp/client_context.h>

#include <mutex>
#include <set>

namespace quantd::client {

// Thread safe.
class Cancellation {
 public:
  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }
  bool cancelled() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cancelled_;
  }
  // From now on, until Remove, the context's call ends with Cancel.
  void Add(grpc::ClientContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts_.insert(context);
    if (cancelled_) context->TryCancel();
  }
  void Remove(grpc::ClientContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts_.erase(context);
  }

 private:
  mutable std::mutex mutex_;
  bool cancelled_ = false;                   // guarded by mutex_, as the next
  std::set<grpc::ClientContext*> contexts_;  // whose calls are under way
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_CANCELLATION_H_
