// Quantizes a few numbers and shows what came back:  client_example [ADDRESS]
// Without an address: QUANTD_ADDRESS, or else 127.0.0.1:50051.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "quantd/client/client.h"
#include "quantd/client/options.h"
#include "quantd/client/status.h"

namespace v1 = quantd::v1;
using quantd::client::Client;
using quantd::client::FieldViolation;
using quantd::client::Tensor;

int main(int argc, char** argv) {
  quantd::client::ClientOptions options;
  options.timeout = absl::Seconds(5);  // also the time to wait for a server that is not there yet
  Client client(argc > 1 ? argv[1] : "", options);
  const std::vector<float> values = {-1.5f, 0.0f, 0.25f, 3.0f};
  const auto result = client.DynamicQuantize(
      Tensor::Of<float>(values, {2, 2}), {.output_type = v1::DATA_TYPE_INT8, .report_error = true});
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    for (const FieldViolation& violation : quantd::client::FieldViolations(result.status())) {
      std::fprintf(stderr, "  %s: %s\n", violation.field.c_str(), violation.description.c_str());
    }
    return 1;
  }
  const auto y = result->y.Values<int8_t>();
  const auto scale = result->scale.Values<float>();
  if (!y.ok() || !scale.ok() || !result->error.has_value()) return 1;
  for (size_t i = 0; i < y->size(); ++i) std::printf("%g -> %d\n", values[i], (*y)[i]);
  std::printf("scale %g, SQNR %.1f dB\n", scale->front(), result->error->sqnr_db());
  return 0;
}
