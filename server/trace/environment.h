// What OpenTelemetry's variables ask for: those of OTLP's exporter, of the resource and of the
// sampler, as its specification has them, and as every other program of a cluster is told.
// deploy/OPERATIONS.md has the table.
#ifndef QUANTD_SERVER_TRACE_ENVIRONMENT_H_
#define QUANTD_SERVER_TRACE_ENVIRONMENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/trace/tracer.h"

namespace quantd::trace {

// What quantd's own flags say. They win over the variables.
struct Flags {
  std::optional<Endpoint> endpoint;
  double sample_ratio = 0;  // 0: not said
};

// A variable that can't be followed. Its text is one line without the variable's value, where that
// may be a secret.
struct Ignored {
  std::string variable;
  std::string reason;
};

struct Asked {
  std::optional<Settings> settings;  // unset: nothing is traced
  std::vector<Ignored> ignored;
};

// `get` is getenv. `resource` is what is true of this process; OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME win over it. A variable that is wrong never keeps the server from starting:
// these are often set for a whole cluster, for other programs.
Asked Ask(const Flags& flags, Resource resource,
          const std::function<const char*(const char*)>& get);

// The tracer that flags and environment ask for, and a line of the log for what it does and for
// each variable that can't be followed. Null: nothing is traced.
std::unique_ptr<Tracer> MakeTracer(const Flags& flags, Resource resource);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_ENVIRONMENT_H_
