// An upload that does nothing but note what it is told.
#ifndef QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_
#define QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_

#include <atomic>
#include <functional>

#include "../loop/loop_testing.h"
#include "server/admission/receiving.h"

namespace quantd::admission {

class TestUpload final : public Upload {
 public:
  std::atomic<int> rooms{0};
  std::atomic<bool> given_up{false};
  std::function<void()> on_told;  // on its loop

 private:
  void OnRoom() override {
    ++rooms;
    if (on_told) on_told();
  }
  void OnGivenUp() override {
    given_up = true;
    if (on_told) on_told();
  }
};

}  // namespace quantd::admission

#endif  // QUANTD_TESTS_SERVER_ADMISSION_RECEIVING_TESTING_H_
