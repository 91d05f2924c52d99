#include "server/server_info.h"

#include <unistd.h>

#include <cstdint>

#include "quantd/targets.h"
#include "quantd/v1/quantization.pb.h"

namespace quantd::server {

std::string ServerInfo(const Options& options) {
  v1::GetServerInfoResponse info;
  info.set_version(QUANTD_VERSION);
  info.set_target(std::string(CurrentTarget()));
  for (const std::string& target : SupportedTargets()) info.add_supported_targets(target);
  info.set_threads(options.threads);
  info.set_max_message_bytes(options.memory.max_message);
  info.set_memory_budget_bytes(options.memory.requests);
  info.add_extensions("stream");
  info.add_extensions("embeddings");
  info.add_extensions("calibrate");
  if (!options.parameters_dir.empty()) info.add_extensions("parameters");
  if (!options.shared_memory_dir.empty()) info.add_extensions("shared_memory");
  return info.SerializeAsString();
}

trace::Resource SpanResource() {
  char name[256] = {};
  const std::string host = gethostname(name, sizeof(name) - 1) == 0 ? name : "";
  return {QUANTD_VERSION,
          {{"service.name", "quantd"},
           {"service.version", QUANTD_VERSION},
           {"host.name", host},
           {"process.pid", int64_t{getpid()}}}};
}

}  // namespace quantd::server
