// Cancels a call that runs on several threads or asynchronously.
#ifndef QUANTD_CLIENT_CPP_CANCELLATION_H_
#define QUANTD_CLIENT_CPP_CANCELLATION_H_

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace quantd::client {

// Thread-safe.
class Cancellation {
 public:
  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
    if (alarm_ != nullptr) alarm_->Cancel();
    woken_.notify_all();
  }
  bool cancelled() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cancelled_;
  }
  // From now on, until Remove, Cancel ends the context's call.
  void Add(grpc::ClientContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts_.insert(context);
    if (cancelled_) context->TryCancel();
  }
  void Remove(grpc::ClientContext* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    contexts_.erase(context);
  }
  // Waits for `wait`, or until Cancel.
  void Sleep(absl::Duration wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    const absl::Duration most = std::min(wait, absl::Hours(1 << 20));  // limit of chrono
    woken_.wait_for(lock, absl::ToChronoNanoseconds(most), [this] { return cancelled_; });
  }
  // Like Sleep, but without a waiting thread: gRPC calls `then`, which must first call Forget.
  void Set(grpc::Alarm* alarm, absl::Duration wait, std::function<void(bool)> then) {
    const std::lock_guard<std::mutex> lock(mutex_);
    alarm_ = alarm;
    alarm->Set(absl::ToChronoTime(cancelled_ ? absl::Now() : absl::Now() + wait), std::move(then));
  }
  void Forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    alarm_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  bool cancelled_ = false;                   // guarded by mutex_, like the next
  std::set<grpc::ClientContext*> contexts_;  // of calls in progress
  grpc::Alarm* alarm_ = nullptr;             // the alarm that is set
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_CANCELLATION_H_
