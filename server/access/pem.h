// Reads and checks PEM files. Errors are one line that names the file and the flag.
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

// The largest file that is read.
inline constexpr size_t kMostFileBytes = 4 << 20;

// Returns INVALID_ARGUMENT, in one line that names the file and its flag. `why` says what is wrong.
absl::Status Wrong(absl::string_view path, absl::string_view why, absl::string_view flag);

// The whole file. Returns INVALID_ARGUMENT if it can't be read, is not a regular file or is larger
// than kMostFileBytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, absl::string_view flag);

// All certificates in the file, at least one.
absl::StatusOr<std::vector<X509Pointer>> ReadCertificates(const std::string& path,
                                                          absl::string_view flag);
// The private key in the file. It must not be encrypted: nobody could enter the password.
absl::StatusOr<KeyPointer> ReadKey(const std::string& path, absl::string_view flag);

// Returns the text of OpenSSL's last error and clears it.
std::string TakeError();

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_PEM_H_
