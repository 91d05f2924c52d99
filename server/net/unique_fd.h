// Owns a file descriptor (of a file, folder, socket or epoll) and closes it when it is destroyed.
#ifndef QUANTD_SERVER_NET_UNIQUE_FD_H_
#define QUANTD_SERVER_NET_UNIQUE_FD_H_

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace quantd {

class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes ownership. -1 (what system calls return with errno) means no descriptor.
  explicit UniqueFd(int number) : number_(number) {}
  UniqueFd(UniqueFd&& other) noexcept : number_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  // Does not change errno.
  ~UniqueFd() {
    const int error = errno;
    if (number_ >= 0) close(number_);
    errno = error;
  }

  // The descriptor's number, or -1 if there is none.
  int get() const { return number_; }
  // Whether it owns a descriptor.
  bool is_open() const { return number_ >= 0; }
  // Gives up ownership.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace quantd

#endif  // QUANTD_SERVER_NET_UNIQUE_FD_H_
