// The instruction set of the kernels.
//
// The best one of the CPU is chosen once, on first use. QUANTD_SIMD in the environment, or
// SelectTarget, selects another one. Names: "avx512", "avx2", "neon", "scalar" (plain loops, on
// every machine).
#ifndef QUANTD_TARGETS_H_
#define QUANTD_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace quantd {

// All targets that this build contains and this CPU can run, best first. Never empty, because
// "scalar" is always included.
std::vector<std::string> SupportedTargets();

// Selects a target for plans made from now on; empty: the best one. Returns INVALID_ARGUMENT, with
// the valid names, if `name` is not one of SupportedTargets(). Thread-safe.
absl::Status SelectTarget(std::string_view name);

// The target in use. The first use reads QUANTD_SIMD. If its value is invalid, the best target is
// used, and CheckEnvironmentTarget reports the error.
std::string_view CurrentTarget();

// The error of QUANTD_SIMD if it is not a valid target. Programs call it when they start.
absl::Status CheckEnvironmentTarget();

}  // namespace quantd

#endif  // QUANTD_TARGETS_H_
