// A stored set that a program uses. It is stored if it is missing.
//
//   StoredParameters stored(client, "layer.0", set);
//   absl::StatusOr<Quantized> result = stored.Use([&](const std::string& reference) {
//     options.parameters = reference;
//     return client.Quantize(x, Tensor(), std::nullopt, options);
//   });
//
// Servers that do not share a folder have separate sets. If a server does not have this set, it
// says so; the set is then stored there, and the call is repeated.
#ifndef QUANTD_CLIENT_PARAMETERS_H_
#define QUANTD_CLIENT_PARAMETERS_H_

#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quantd/client/client.h"
#include "quantd/v1/parameters.pb.h"

namespace quantd::client {

// Whether a call failed because the server does not have the stored set that it names.
bool ParametersAreMissing(const absl::Status& status);

// Thread-safe.
class StoredParameters {
 public:
  // `client` must outlive it. Nothing is sent before the first use.
  StoredParameters(Client& client, std::string name, v1::ParameterSet parameters)
      : client_(client), name_(std::move(name)), parameters_(std::move(parameters)) {}

  // The full reference; stores the set unless that was done before, or if `again`.
  absl::StatusOr<std::string> Put(bool again = false);

  // Returns the result of `call`, an absl::StatusOr; `call` gets the reference. It is called a
  // second time if the server does not have the set. Also returns errors of PutParameters.
  template <typename Call>
  auto Use(Call call) -> decltype(call(std::string())) {
    absl::StatusOr<std::string> reference = Put();
    if (!reference.ok()) return reference.status();
    auto result = call(*reference);
    if (!ParametersAreMissing(result.status())) return result;
    reference = Put(true);
    if (!reference.ok()) return reference.status();
    return call(*reference);
  }

 private:
  Client& client_;
  const std::string name_;
  const v1::ParameterSet parameters_;
  std::mutex mutex_;
  std::string reference_;  // guarded by mutex_; empty: not stored yet
};

}  // namespace quantd::client

#endif  // QUANTD_CLIENT_PARAMETERS_H_
