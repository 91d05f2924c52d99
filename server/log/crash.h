// What is said when the process crashes: one line with the signal, the address, the version and the
// build id, then one for each frame of the stack, in the log's format. The process then ends by the
// same signal, so its exit status and its core are what they would be.
//
//   2026-11-22T19:54:25Z quantd: error: crashed signal=SIGSEGV number=11 address=0x0 version=0.1.0
//     build_id=3f2a... thread=4711                                                      (one line)
//   2026-11-22T19:54:25Z quantd: error: frame n=0 module=quantd offset=0x1a2b3 symbol=main
//
// Frame 0 is where the signal came; the offsets of the others lie in their calls, not behind them.
// deploy/OPERATIONS.md, "Crashes", says how symbols are found by the build id.
#ifndef QUANTD_SERVER_LOG_CRASH_H_
#define QUANTD_SERVER_LOG_CRASH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quantd::log {

struct CrashSettings {
  std::string version;
  bool json = false;
  int descriptor = 2;
};

// For SIGSEGV, SIGABRT, SIGBUS, SIGFPE and SIGILL, from now on. Before others that handle one of
// them, for they hand over what is not theirs. Once, before other threads start.
void InstallCrashHandler(const CrashSettings& settings);

// The GNU build id of this program in hexadecimal, or "".
std::string BuildId();

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_CRASH_H_
