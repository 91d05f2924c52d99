// Which instruction set the kernels use.
//
// The best one that the CPU has is chosen once, at the first use. QUANTD_SIMD in the environment,
// or SelectTarget, forces another one. Names: "avx512", "avx2", "neon", "scalar" (plain loops, on
// every machine).
#ifndef QUANTD_TARGETS_H_
#define QUANTD_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace quantd {

// Every target that this build has and this CPU can run, best first. Never empty: "scalar" is
// always there.
std::vector<std::string> SupportedTargets();

// Forces a target for plans made from now on. INVALID_ARGUMENT that lists the valid names when
// `name` is not one of SupportedTargets(); empty means the best one. Safe from any thread.
absl::Status SelectTarget(std::string_view name);

// The target in use. The first use reads QUANTD_SIMD; a wrong name there is left for
// CheckEnvironmentTarget to report and the best one is used.
std::string_view CurrentTarget();

// The error of QUANTD_SIMD, if it names no valid target. A program calls it when it starts.
absl::Status CheckEnvironmentTarget();

}  // namespace quantd

#endif  // QUANTD_TARGETS_H_
