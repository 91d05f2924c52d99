// The flags of quantctl. Which command takes which: arguments.cc.
#ifndef QUANTD_CLI_FLAGS_H_
#define QUANTD_CLI_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/types/optional.h"

ABSL_DECLARE_FLAG(std::string, address);
ABSL_DECLARE_FLAG(double, timeout);
ABSL_DECLARE_FLAG(bool, json);
ABSL_DECLARE_FLAG(bool, quiet);
ABSL_DECLARE_FLAG(std::string, output);
ABSL_DECLARE_FLAG(std::vector<std::string>, tensor);
ABSL_DECLARE_FLAG(std::string, type);
ABSL_DECLARE_FLAG(std::string, output_type);
ABSL_DECLARE_FLAG(std::vector<std::string>, shape);
ABSL_DECLARE_FLAG(absl::optional<long>, axis);
ABSL_DECLARE_FLAG(long, block_size);
ABSL_DECLARE_FLAG(std::vector<std::string>, block_shape);
ABSL_DECLARE_FLAG(bool, symmetric);
ABSL_DECLARE_FLAG(std::string, scale_type);
ABSL_DECLARE_FLAG(std::string, scale);
ABSL_DECLARE_FLAG(std::string, zero_point);
ABSL_DECLARE_FLAG(std::string, tensor_scale);
ABSL_DECLARE_FLAG(std::string, precision);
ABSL_DECLARE_FLAG(std::string, zero_point_order);
ABSL_DECLARE_FLAG(bool, saturate);
ABSL_DECLARE_FLAG(std::string, non_finite);
ABSL_DECLARE_FLAG(bool, report_error);
ABSL_DECLARE_FLAG(unsigned long, piece_bytes);
ABSL_DECLARE_FLAG(int, bins);
ABSL_DECLARE_FLAG(std::string, service);

#endif  // QUANTD_CLI_FLAGS_H_
