// See folders.h.
#include "server/options/folders.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, shared_memory_dir, "",
          "Directory, on tmpfs, whose files clients on this node may name as tensors "
          "(SharedMemoryReference); empty: none");
ABSL_FLAG(std::string, parameters_dir, "",
          "Directory of stored sets of parameters (ParametersService), which servers may share and "
          "may have for reading only; empty: none");

namespace quantd::server {

void FillFolders(Options& options, memory::Wanted& wanted) {
  options.shared_memory_dir = absl::GetFlag(FLAGS_shared_memory_dir);
  options.parameters_dir = absl::GetFlag(FLAGS_parameters_dir);
  wanted.shared_memory = !options.shared_memory_dir.empty();
  wanted.parameters = !options.parameters_dir.empty();
}

}  // namespace quantd::server
