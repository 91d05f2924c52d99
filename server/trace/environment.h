// OpenTelemetry's environment variables, of the OTLP exporter, the resource and the
// sampler, as in the OpenTelemetry specification. deploy/OPERATIONS.md has the
// table.
#ifndef QUANTD_SERVER_TRACE_ENVIRONMENT_H_
#define QUANTD_SERVER_TRACE_ENVIRONMENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/trace/tracer.h"

namespace quantd::trace {

// The settings from quantd's own flags. They override the variables.
struct Flags {
  std::optional<Endpoint> endpoint;
  double sample_ratio = 0;  // 0: not given
};

// A variable that was ignored. Its text is one line, without the variable's value if that may be a
// secret.
struct Ignored {
  std::string variable;
  std::string reason;
};

struct Asked {
  std::optional<Settings> settings;  // nullopt: no tracing
  std::vector<Ignored> ignored;
};

// `get` is getenv. `resource` describes this process; OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME override it. An invalid variable never keeps the server from starting, because
// these variables are often set for a whole cluster, for other programs.
Asked Ask(const Flags& flags, Resource resource,
          const std::function<const char*(const char*)>& get);

// The tracer that flags and environment ask for. Logs a line about what it does, and one for each
// ignored variable. Null: no tracing.
std::unique_ptr<Tracer> MakeTracer(const Flags& flags, Resource resource);

}  // namespace quantd::trace

#endif  // QUANTD_SERVER_TRACE_ENVIRONMENT_H_
