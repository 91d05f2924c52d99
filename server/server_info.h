// Facts about the server that do not change while it runs.
#ifndef QUANTD_SERVER_SERVER_INFO_H_
#define QUANTD_SERVER_SERVER_INFO_H_

#include <string>

#include "server/options/options.h"

namespace quantd::server {

// The encoded GetServerInfoResponse.
std::string ServerInfo(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_SERVER_INFO_H_
