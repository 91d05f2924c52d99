// The flags that say who may come in. See options.h.
#ifndef QUANTD_SERVER_OPTIONS_ACCESS_H_
#define QUANTD_SERVER_OPTIONS_ACCESS_H_

#include <string>

#include "absl/status/status.h"
#include "server/options/options.h"

namespace quantd::server {

// What is wrong with them, in one line.
absl::Status CheckAccess();
// REQUIRES: CheckAccess() is OK.
void FillAccess(Options& options);
// "0660".
std::string SocketModeText(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_ACCESS_H_
