// Copies the counters of connections to a metrics page.
#ifndef QUANTD_SERVER_TRANSPORT_READINGS_H_
#define QUANTD_SERVER_TRANSPORT_READINGS_H_

#include "server/metrics/metrics.h"
#include "server/transport/transport.h"

namespace quantd::server {

// Sets everything that `counters` has. The last of guard_actions does not come from them.
void ReadCounters(const transport::Counters& counters, metrics::Readings& now);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_TRANSPORT_READINGS_H_
