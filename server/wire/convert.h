// Fields as read -> the core's parameters. Whatever one field alone can have wrong is found here.
#ifndef QUANTD_SERVER_WIRE_CONVERT_H_
#define QUANTD_SERVER_WIRE_CONVERT_H_

#include "absl/status/statusor.h"
#include "server/wire/fields.h"
#include "server/wire/method.h"
#include "server/wire/request.h"

namespace quantd::wire {

// The errors of decode.h. Takes raw tensors' views out of `fields` and packs values.
absl::StatusOr<Request> ConvertRequest(Method method, RequestFields fields);

}  // namespace quantd::wire

#endif  // QUANTD_SERVER_WIRE_CONVERT_H_
