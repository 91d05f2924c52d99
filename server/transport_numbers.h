// The options' limits for the transport, and the transport's counters for a metrics page.
#ifndef QUANTD_SERVER_TRANSPORT_NUMBERS_H_
#define QUANTD_SERVER_TRANSPORT_NUMBERS_H_

#include "server/metrics/metrics.h"
#include "server/options/options.h"
#include "server/transport/transport.h"

namespace quantd::server {

transport::Limits TransportLimits(const Options& options);

// Sets everything that `context` counts. The last of guard_actions does not come from it.
void ReadCounters(const transport::TransportContext& context, metrics::Readings& now);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_TRANSPORT_NUMBERS_H_
