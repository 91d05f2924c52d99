// Converts models to and from the layouts of other software, for quantd.checkpoints.
#ifndef QUANTD_PYTHON_CORE_CHECKPOINTS_H_
#define QUANTD_PYTHON_CORE_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "checkpoints/convert.h"
#include "numpy_api.h"

namespace quantd::python {

// Returns the report as JSON. `progress`: None, or a function of (done, total, file), which is
// called with the GIL on the caller's thread, at most twenty times a second; an exception from it
// ends the conversion. `fail` as in arguments.h.
std::string ConvertCheckpoint(const checkpoints::ConvertOptions& options, bool dry_run, int threads,
                              const nb::object& progress, const nb::object& fail);

// The names of a model's shards.
std::vector<std::string> ShardsOfCheckpoint(const std::string& model, const nb::object& fail);

}  // namespace quantd::python

#endif  // QUANTD_PYTHON_CORE_CHECKPOINTS_H_
