// A case of the conformance kit: a request, and the oracle's result for it.
#ifndef QUANTD_CLI_KIT_CASE_H_
#define QUANTD_CLI_KIT_CASE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "quantd/v1/quantization.pb.h"

namespace quantd::cli {

// The values of an error report that a case specifies; absent ones are not compared.
struct ReportFigures {
  std::optional<int64_t> saturated_elements, non_finite_elements;
  std::optional<double> mean_squared_error, max_absolute_error, sqnr_db;
};

// An actual or expected result: tensors as raw_data by name ("y", "y_scale", "y_zero_point",
// "y_tensor_scale"), or a refusal.
struct KitAnswer {
  std::string name;  // of a known answer to an open question of the specification; else ""
  std::map<std::string, v1::Tensor> tensors;
  bool refused = false;
  ReportFigures report;
};

using KitRequest = std::variant<v1::QuantizeRequest, v1::DequantizeRequest,
                                v1::DynamicQuantizeRequest, v1::QuantizeEmbeddingsRequest>;

struct KitCase {
  std::string name;   // with its family: "node/test_..." or "mx/..."
  std::string rule;   // the source of the rule that the case tests
  bool open = false;  // the specification leaves it open: `wanted` has every known answer
  // nullopt for operations that servers do not have (encode_layout, decode_layout). `wanted` is
  // empty then.
  std::optional<KitRequest> request;
  std::vector<KitAnswer> wanted;  // the oracle's is first; the only one if the case is not open
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_CASE_H_
