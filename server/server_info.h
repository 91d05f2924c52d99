// Facts about the server that do not change while it runs.
#ifndef QUANTD_SERVER_SERVER_INFO_H_
#define QUANTD_SERVER_SERVER_INFO_H_

#include <string>

#include "server/options/options.h"
#include "server/trace/span.h"

namespace quantd::server {

// The encoded GetServerInfoResponse.
std::string ServerInfo(const Options& options);

// The process as its spans describe it: the version, and the name of the machine or the container
// ("" if it has none).
trace::Resource SpanResource();

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_INFO_H_
