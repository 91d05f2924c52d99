// What ends the program from outside, and what must then be cleaned up.
//
// SIGINT, SIGTERM and every other signal that ends a program by default remove the files that are
// not complete and exit with 128 + the signal's number; but not those that the caller ignores, nor
// those of faults, which leave a core. So does a SIGBUS, which is what reading a mapped file gives
// that was cut off meanwhile, with a line that names the file, and exit code 2. SIGXFSZ is ignored:
// the write that was too large fails instead.
#ifndef QUANTD_CLI_FILES_SIGNALS_H_
#define QUANTD_CLI_FILES_SIGNALS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace quantd::cli {

// Once, when the program starts.
void HandleSignals();

// A file that a signal removes, and no longer. Up to 16 at a time; others are not removed.
void RemoveOnSignal(const std::string& path);
void KeepOnSignal(const std::string& path);

// While it lives, signals wait: what must be done whole is. One at a time.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
};

// A mapping whose file is named when it turns out to be gone, and no longer. Up to 16 at a time.
void NameOnSignal(absl::Span<const uint8_t> mapping, const std::string& path);
void ForgetMapping(absl::Span<const uint8_t> mapping);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_SIGNALS_H_
