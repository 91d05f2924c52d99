// What a server says of itself, which does not change while it runs.
#ifndef QUANTD_SERVER_SERVER_INFO_H_
#define QUANTD_SERVER_SERVER_INFO_H_

#include <string>

#include "server/options/options.h"
#include "server/trace/span.h"

namespace quantd::server {

// The encoded GetServerInfoResponse.
std::string ServerInfo(const Options& options);

// What its spans say of the process: the version, and the name of the machine or of the container
// ("" when it has none).
trace::Resource SpanResource();

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_INFO_H_
