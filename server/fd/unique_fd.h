// A file descriptor that is closed when its owner goes: of files, folders, sockets, epolls.
#ifndef QUANTD_SERVER_FD_UNIQUE_FD_H_
#define QUANTD_SERVER_FD_UNIQUE_FD_H_

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace quantd {

class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes it over. -1, which system calls return with errno: none.
  explicit UniqueFd(int number) : number_(number) {}
  UniqueFd(UniqueFd&& other) noexcept : number_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  // Leaves errno alone.
  ~UniqueFd() {
    const int error = errno;
    if (number_ >= 0) close(number_);
    errno = error;
  }

  // The number that system calls take; -1 when there is none.
  int get() const { return number_; }
  // Whether there is one.
  bool is_open() const { return number_ >= 0; }
  // Gives it away.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace quantd

#endif  // QUANTD_SERVER_FD_UNIQUE_FD_H_
