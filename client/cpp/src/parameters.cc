// Stored sets of parameters.
#include "quantd/client/parameters.h"

#include <algorithm>

#include "connection.h"
#include "quantd/client/client.h"
#include "quantd/client/status.h"
#include "status_macros.h"

namespace quantd::client {

using ParametersStub = v1::ParametersService::Stub;

absl::StatusOr<std::string> Client::PutParameters(const std::string& name,
                                                  const v1::ParameterSet& parameters) {
  v1::PutParametersRequest request;
  request.set_name(name);
  *request.mutable_parameters() = parameters;
  QUANTD_ASSIGN_OR_RETURN(v1::PutParametersResponse response,
                          connection_->Call(&ParametersStub::PutParameters, request));
  return std::move(*response.mutable_reference());
}

absl::StatusOr<v1::GetParametersResponse> Client::GetParameters(const std::string& reference) {
  v1::GetParametersRequest request;
  request.set_reference(reference);
  return connection_->Call(&ParametersStub::GetParameters, request);
}

absl::StatusOr<std::vector<std::string>> Client::ListParameters(const std::string& prefix) {
  v1::ListParametersRequest request;
  request.set_prefix(prefix);
  QUANTD_ASSIGN_OR_RETURN(const v1::ListParametersResponse response,
                          connection_->Call(&ParametersStub::ListParameters, request));
  return std::vector<std::string>(response.references().begin(), response.references().end());
}

bool ParametersAreMissing(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return false;
  const std::vector<FieldViolation> fields = FieldViolations(status);
  return std::any_of(fields.begin(), fields.end(), [](const FieldViolation& violation) {
    return violation.field == "parameters";
  });
}

absl::StatusOr<std::string> StoredParameters::Put(bool again) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reference_.empty() && !again) return reference_;
  }
  QUANTD_ASSIGN_OR_RETURN(std::string reference, client_.PutParameters(name_, parameters_));
  const std::lock_guard<std::mutex> lock(mutex_);
  reference_ = reference;
  return reference;
}

}  // namespace quantd::client
