// What connections have counted, for a page of metrics.
#ifndef QUANTD_SERVER_REPORTS_TRANSPORT_READINGS_H_
#define QUANTD_SERVER_REPORTS_TRANSPORT_READINGS_H_

#include "server/metrics/metrics.h"
#include "server/transport/transport.h"

namespace quantd::reports {

// All that `counters` have; of guard_actions the last one is not theirs.
void ReadCounters(const transport::Counters& counters, metrics::Readings& now);

}  // namespace quantd::reports

#endif  // QUANTD_SERVER_REPORTS_TRANSPORT_READINGS_H_
