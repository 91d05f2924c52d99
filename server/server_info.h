// What a server says of itself, which does not change while it runs.
#ifndef QUANTD_SERVER_SERVER_INFO_H_
#define QUANTD_SERVER_SERVER_INFO_H_

#include <string>

#include "server/options/options.h"

namespace quantd::server {

// The encoded GetServerInfoResponse.
std::string ServerInfo(const Options& options);

// The machine's, or the container's; "" when it has none.
std::string HostName();

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_INFO_H_
