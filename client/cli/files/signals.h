// Signals that end the program, and the cleanup before that.
//
// SIGINT, SIGTERM and every other signal that ends a program by default remove incomplete files and
// exit with 128 + the signal's number. Exceptions are signals that the caller ignores, and those of
// faults, which leave a core. A SIGBUS, which is raised when a mapped file was truncated meanwhile,
// also removes the files, prints a line with the file's name, and exits with 2. SIGXFSZ is ignored:
// the write that is too large fails instead.
#ifndef QUANTD_CLI_FILES_SIGNALS_H_
#define QUANTD_CLI_FILES_SIGNALS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace quantd::cli {

// Call once, when the program starts.
void HandleSignals();

// Adds or removes a file that signals delete. At most 16 at a time; others are not deleted.
void RemoveOnSignal(const std::string& path);
void KeepOnSignal(const std::string& path);

// While an object of this class lives, signals are blocked, for work that must not be interrupted.
// One at a time.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
};

// Adds or removes a mapping whose file is named if it was truncated. At most 16 at a time.
void NameOnSignal(absl::Span<const uint8_t> mapping, const std::string& path);
void ForgetMapping(absl::Span<const uint8_t> mapping);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_SIGNALS_H_
