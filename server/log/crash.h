// The log of a crash: one line with the signal, the address, the version and the build id, then one
// line per stack frame, in the log's format. The process then ends by the same signal, so its exit
// status and core dump are as usual.
//
//   2026-11-22T19:54:25Z quantd: error: crashed signal=SIGSEGV number=11 address=0x0 version=0.1.0
//     build_id=3f2a... thread=4711                                                      (one line)
//   2026-11-22T19:54:25Z quantd: error: frame n=0 module=quantd offset=0x1a2b3 symbol=main
//
// Frame 0 is the instruction where the signal was raised; the offsets of the others are of the
// calls, not of the instructions after them. deploy/OPERATIONS.md, "Crashes", says how to find
// symbols by build id.
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

// Handles SIGSEGV, SIGABRT, SIGBUS, SIGFPE and SIGILL from now on. Call this once, before other
// threads start and before other handlers of these signals are installed; those pass on what is not
// theirs.
void InstallCrashHandler(const CrashSettings& settings);

}  // namespace quantd::log

#endif  // QUANTD_SERVER_LOG_CRASH_H_
