// While it lives, std::thread fails, because the requested stacks are too large for any system.
#ifndef QUANTD_TESTS_CLIENT_THREADS_FAIL_H_
#define QUANTD_TESTS_CLIENT_THREADS_FAIL_H_

#include <pthread.h>

#include <cstddef>

namespace quantd::client {

class ThreadsFail {
 public:
  ThreadsFail() {
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &before_);
    pthread_attr_destroy(&attributes);
    Set(size_t{1} << 50);
  }
  ~ThreadsFail() { Set(before_); }
  ThreadsFail(const ThreadsFail&) = delete;
  ThreadsFail& operator=(const ThreadsFail&) = delete;

 private:
  static void Set(size_t stack) {
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  size_t before_ = 0;
};

}  // namespace quantd::client

#endif  // QUANTD_TESTS_CLIENT_THREADS_FAIL_H_
