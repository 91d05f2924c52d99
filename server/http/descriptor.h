// A file descriptor that is closed when its owner goes.
#ifndef QUANTD_SERVER_HTTP_DESCRIPTOR_H_
#define QUANTD_SERVER_HTTP_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace quantd::http {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  // The number that system calls take; -1 when there is none.
  int get() const { return number_; }
  // Whether there is one.
  bool open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace quantd::http

#endif  // QUANTD_SERVER_HTTP_DESCRIPTOR_H_
