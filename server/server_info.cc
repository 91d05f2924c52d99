#include "server/server_info.h"

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
  if (!options.shared_memory_dir.empty()) info.add_extensions("shared_memory");
  return info.SerializeAsString();
}

}  // namespace quantd::server
