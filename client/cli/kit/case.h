// A case of the conformance kit: a request, and what the oracle says that its answer is.
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

// The figures of an error report that a case names; an absent one is not compared.
struct ReportFigures {
  std::optional<int64_t> saturated_elements, non_finite_elements;
  std::optional<double> mean_squared_error, max_absolute_error, sqnr_db;
};

// What came back, or must: tensors as raw_data by name ("y", "y_scale", "y_zero_point",
// "y_tensor_scale"), or a refusal.
struct KitAnswer {
  std::string name;  // of a known answer to what the specification leaves open; else ""
  std::map<std::string, v1::Tensor> tensors;
  bool refused = false;
  ReportFigures report;
};

using KitRequest = std::variant<v1::QuantizeRequest, v1::DequantizeRequest,
                                v1::DynamicQuantizeRequest, v1::QuantizeEmbeddingsRequest>;

struct KitCase {
  std::string name;   // with its family: "node/test_..." or "mx/..."
  std::string rule;   // whose sentence the case shows
  bool open = false;  // the specification leaves it open: `wanted` has every known answer
  // None: an operation that servers do not have (encode_layout, decode_layout). Then `wanted` is
  // empty.
  std::optional<KitRequest> request;
  std::vector<KitAnswer> wanted;  // the oracle's first; of a case that is not open it alone
};

}  // namespace quantd::cli

#endif  // QUANTD_CLI_KIT_CASE_H_
