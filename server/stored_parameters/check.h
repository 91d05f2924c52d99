// Checks what is wrong with a set for every x.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_CHECK_H_
#define QUANTD_SERVER_STORED_PARAMETERS_CHECK_H_

#include "absl/status/status.h"
#include "quantd/parameters.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::stored_parameters {

// `parameters`: the converted message, without x. Returns INVALID_ARGUMENT with the field. What
// depends on the shape of x, mainly blocks of scales, is checked by the request that uses the set.
absl::Status Check(const v1::QuantizeRequest& message, const QuantizeParameters& parameters);
absl::Status Check(const v1::QuantizeEmbeddingsRequest& message,
                   const QuantizeEmbeddingsParameters& parameters);

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_CHECK_H_
