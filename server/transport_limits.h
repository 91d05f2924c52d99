// Converts the options to the transport's limits.
#ifndef QUANTD_SERVER_TRANSPORT_LIMITS_H_
#define QUANTD_SERVER_TRANSPORT_LIMITS_H_

#include "server/options/options.h"
#include "server/transport/transport_context.h"

namespace quantd::server {

transport::Limits TransportLimits(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_TRANSPORT_LIMITS_H_
