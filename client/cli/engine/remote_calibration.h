// A calibration on a server, through quantd::client.
#ifndef QUANTD_CLI_ENGINE_REMOTE_CALIBRATION_H_
#define QUANTD_CLI_ENGINE_REMOTE_CALIBRATION_H_

#include <memory>
#include <string>

#include "engine/engine.h"
#include "quantd/client/client.h"

namespace quantd::cli {

// REQUIRES: the client outlives it. `address` is for errors.
std::unique_ptr<CalibrationRun> MakeRemoteCalibration(client::Client& client,
                                                      const std::string& address,
                                                      const CalibrationOptions& options,
                                                      bool return_state);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_ENGINE_REMOTE_CALIBRATION_H_
