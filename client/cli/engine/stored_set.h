// Parameters that are stored on a server, read from there: what requests that name them will do is
// planned with them.
#ifndef QUANTD_CLI_ENGINE_STORED_SET_H_
#define QUANTD_CLI_ENGINE_STORED_SET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "quantd/client/options.h"
#include "quantd/parameters.h"
#include "quantd/v1/parameters.pb.h"

namespace quantd::cli {

struct StoredSet {
  std::string reference;  // "name@sha256:HEX"
  std::shared_ptr<const v1::ParameterSet> set;

  // Whole but for x; they view `set`. An operation's error when it is of the other kind, or lacks
  // the scale.
  absl::StatusOr<QuantizeParameters> ForQuantize() const;
  absl::StatusOr<QuantizeEmbeddingsParameters> ForEmbeddings() const;
};

// An operation's error (errors.h) when the server does not have it.
absl::StatusOr<StoredSet> ReadStoredSet(const std::string& reference, const std::string& address,
                                        const client::ClientOptions& options);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_STORED_SET_H_
