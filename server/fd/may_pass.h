// File errors that are caused by the machine or this process, not by the file.
#ifndef QUANTD_SERVER_FD_MAY_PASS_H_
#define QUANTD_SERVER_FD_MAY_PASS_H_

#include <cerrno>

namespace quantd {

// Whether an errno of open, fstat or read says nothing about the file, which may be readable later.
inline bool MayPass(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == ESTALE ||
         error == ETIMEDOUT || error == EAGAIN;
}

}  // namespace quantd

#endif  // QUANTD_SERVER_FD_MAY_PASS_H_
