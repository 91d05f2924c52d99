// What can be wrong with a set whichever x it is used with.
#ifndef QUANTD_SERVER_STORED_PARAMETERS_CHECK_H_
#define QUANTD_SERVER_STORED_PARAMETERS_CHECK_H_

#include "absl/status/status.h"
#include "quantd/parameters.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::stored_parameters {

// `parameters`: what the message was converted to, without x. INVALID_ARGUMENT with the field. What
// depends on the shape of x, blocks of scales above all, is left to the request that uses it.
absl::Status Check(const v1::QuantizeRequest& message, const QuantizeParameters& parameters);
absl::Status Check(const v1::QuantizeEmbeddingsRequest& message,
                   const QuantizeEmbeddingsParameters& parameters);

}  // namespace quantd::stored_parameters

#endif  // QUANTD_SERVER_STORED_PARAMETERS_CHECK_H_
