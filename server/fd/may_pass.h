// Errors of files that are the machine's or this process's, not the file's.
#ifndef QUANTD_SERVER_FD_MAY_PASS_H_
#define QUANTD_SERVER_FD_MAY_PASS_H_

#include <cerrno>

namespace quantd {

// Whether an errno of open, fstat or read says nothing about the file: it may be read later.
inline bool MayPass(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == ESTALE ||
         error == ETIMEDOUT || error == EAGAIN;
}

}  // namespace quantd

#endif  // QUANTD_SERVER_FD_MAY_PASS_H_
