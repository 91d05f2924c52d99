#include "server/stored_parameters/hash.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"

namespace quantd::stored_parameters {

std::string Sha256(absl::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) return "";
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace quantd::stored_parameters
