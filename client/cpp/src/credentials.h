// TLS: makes gRPC credentials from PEM files that the options or the environment name.
#ifndef QUANTD_CLIENT_CPP_CREDENTIALS_H_
#define QUANTD_CLIENT_CPP_CREDENTIALS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "quantd/client/options.h"

namespace grpc {
class ChannelCredentials;
}

namespace quantd::client {

struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  bool tls = false;
};

// Returns INVALID_ARGUMENT for a file that can't be read or is not a PEM file, and for a
// certificate without its key.
absl::StatusOr<Credentials> CredentialsOf(const TlsOptions& tls);

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_CPP_CREDENTIALS_H_
