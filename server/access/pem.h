// What PEM files hold, read once and checked, with errors in one line that name file and flag.
#ifndef QUANTD_SERVER_ACCESS_PEM_H_
#define QUANTD_SERVER_ACCESS_PEM_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quantd::access {

template <auto free>
struct Free {
  template <typename Type>
  void operator()(Type* object) const {
    free(object);
  }
};
using X509Pointer = std::unique_ptr<X509, Free<X509_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

// Of the most that such a file holds.
inline constexpr size_t kMostFileBytes = 4 << 20;

// INVALID_ARGUMENT: what is wrong with a file, in one line that names it and its flag.
absl::Status Wrong(absl::string_view path, absl::string_view why, absl::string_view flag);

// All of a file. INVALID_ARGUMENT when it can't be read or is not a regular file of a sensible
// size.
absl::StatusOr<std::string> ReadFile(const std::string& path, absl::string_view flag);

// Every certificate in it, one at least.
absl::StatusOr<std::vector<X509Pointer>> ReadCertificates(const std::string& path,
                                                          absl::string_view flag);
// The key in it, which must not be encrypted: nobody is there to say the password.
absl::StatusOr<KeyPointer> ReadKey(const std::string& path, absl::string_view flag);

absl::Time NotBefore(const X509* certificate);
absl::Time NotAfter(const X509* certificate);
// In hexadecimal, as openssl prints it.
std::string Serial(const X509* certificate);

// What OpenSSL says of its last error; it is forgotten then.
std::string TakeError();

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_PEM_H_
