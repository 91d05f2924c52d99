// Quantizes three floats with an installed quantd::core; exits with 0 if the result is right.
#include <bit>
#include <cstdio>
#include <cstring>
#include <vector>

#include "quantd/executor.h"
#include "quantd/quantize.h"

int main() {
  static_assert(std::endian::native == std::endian::little);
  const float values[] = {-1.5f, 0.25f, 100.0f};
  const float scale = 0.5f;
  quantd::QuantizeParameters parameters;
  parameters.x = {
      quantd::DataType::kFloat, {3}, {reinterpret_cast<const uint8_t*>(values), sizeof values}};
  parameters.scale = {
      quantd::DataType::kFloat, {}, {reinterpret_cast<const uint8_t*>(&scale), sizeof scale}};
  parameters.output_type = quantd::DataType::kInt8;
  absl::StatusOr<quantd::QuantizePlan> plan = quantd::PlanQuantize(parameters);
  if (!plan.ok()) {
    std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
    return 1;
  }
  const quantd::Executor executor(1);
  std::vector<uint8_t> y(plan->output_bytes);
  const absl::Status status = quantd::Quantize(
      *plan, parameters.x.bytes, executor, [] { return false; }, absl::MakeSpan(y), nullptr);
  const std::vector<uint8_t> expected = {0xFD, 0x00, 0x7F};
  return status.ok() && y == expected ? 0 : 1;
}
