// Reads parameters that are stored on a server, to plan requests that name
// them.
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

  // Complete except for x; they view `set`. Returns an operation's error if the set is of the other
  // kind, or has no scale.
  absl::StatusOr<QuantizeParameters> ForQuantize() const;
  absl::StatusOr<QuantizeEmbeddingsParameters> ForEmbeddings() const;
};

// Returns an operation's error (errors.h) if the server does not have the set.
absl::StatusOr<StoredSet> ReadStoredSet(const std::string& reference, const std::string& address,
                                        const client::ClientOptions& options);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_STORED_SET_H_
