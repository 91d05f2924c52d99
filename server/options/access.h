// The flags that say who may come in. See options.h.
#ifndef QUANTD_SERVER_OPTIONS_ACCESS_H_
#define QUANTD_SERVER_OPTIONS_ACCESS_H_

#include <string>

#include "absl/status/status.h"
#include "server/memory/shares.h"
#include "server/options/options.h"

namespace quantd::server {

// What is wrong with them, in one line.
absl::Status CheckAccess();
// Fills them in, also what TLS wants of memory. REQUIRES: CheckAccess() is OK.
void FillAccess(Options& options, memory::Wanted& wanted);
// "0660".
std::string SocketModeText(const Options& options);

}  // namespace quantd::server

#endif  // QUANTD_SERVER_OPTIONS_ACCESS_H_
