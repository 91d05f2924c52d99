// What the tests of permits share.
#ifndef QUANTD_TESTS_SERVER_ADMISSION_ADMISSION_TESTING_H_
#define QUANTD_TESTS_SERVER_ADMISSION_ADMISSION_TESTING_H_

#include <gtest/gtest.h>

#include "../loop/loop_testing.h"
#include "server/admission/admission.h"

namespace quantd::admission {

using loop::LedLoop;

inline constexpr uint64_t kMiB = 1 << 20;
inline constexpr uint64_t kSmall = Admission::kSmallBytes;

// A request, and the answer to it.
class Asker {
 public:
  Asker() = default;
  Asker(const Asker&) = delete;
  // The loop may be about to complete its event, or completes it now because of Cancel.
  ~Asker() {
    if (loop_ == nullptr) return;
    admission_->Cancel(waiting_);
    permit.Release();
    RunOn(*loop_, [] {});
  }

  // Returns whether it got its permit at once.
  bool Ask(Admission& admission, LedLoop& loop, uint64_t bytes, uint64_t peer = 1) {
    admission_ = &admission;
    loop_ = loop.get();
    const absl::StatusOr<bool> now =
        admission.Request({bytes, peer, loop.get(), &granted_}, waiting_, permit);
    EXPECT_TRUE(now.ok()) << now.status();
    return now.value_or(false);
  }
  absl::Status Refusal(Admission& admission, LedLoop& loop, uint64_t bytes) {
    return admission.Request({bytes, 1, loop.get(), &granted_}, waiting_, permit).status();
  }
  bool Cancel(Admission& admission) { return admission.Cancel(waiting_); }
  // Its event has been completed; see Deliver.
  bool got() const { return granted_.ready() && granted_.await_resume(); }

  Permit permit;

 private:
  Admission* admission_ = nullptr;
  loop::Loop* loop_ = nullptr;
  Admission::Waiting waiting_;
  loop::Event granted_;
};

// Waits until the loop has run everything that was posted to it.
inline void Deliver(LedLoop& loop) {
  RunOn(*loop, [] {});
}

}  // namespace quantd::admission

#endif  // QUANTD_TESTS_SERVER_ADMISSION_ADMISSION_TESTING_H_
