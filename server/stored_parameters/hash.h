// SHA-256, as sha256sum prints it.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_HASH_H_
#define QUANTD_SERVER_STORED_PARAMETERS_HASH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::stored_parameters {

// 64 digits in lower case; empty if OpenSSL can't compute it (its configuration forbids it, or it
// is out of memory).
std::string Sha256(absl::string_view bytes);

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_HASH_H_
