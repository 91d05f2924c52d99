// The C++ core for engine_bench.py, which loads it beside quantd_core's module: DynamicQuantize of
// FLOAT to UINT8 with one scale, called as a program would call it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "quantd/dynamic_quantize.h"

namespace {

bool Call(const quantd::DynamicQuantizeParameters& parameters, const quantd::Executor& executor,
          uint8_t* reused) {
  const auto plan = quantd::PlanDynamicQuantize(parameters);
  if (!plan.ok()) return false;
  const auto made =
      reused == nullptr ? std::make_unique_for_overwrite<uint8_t[]>(plan->output_bytes) : nullptr;
  uint8_t* const y = reused == nullptr ? made.get() : reused;
  float scale = 0;
  uint8_t zero_point = 0;
  const quantd::DynamicQuantizeOutput output = {{y, plan->output_bytes},
                                                {reinterpret_cast<uint8_t*>(&scale), sizeof(scale)},
                                                {&zero_point, 1},
                                                {}};
  return quantd::DynamicQuantize(
             *plan, parameters.x.bytes, executor, [] { return false; }, output, nullptr)
      .ok();
}

}  // namespace

// The seconds for `calls` calls; negative if one fails. `y` has `elements` bytes, or is null: then
// each call allocates memory for the response and frees it.
extern "C" __attribute__((visibility("default"))) double EngineCoreDynamicQuantize(
    const float* x, int64_t elements, uint8_t* y, int threads, int calls) {
  static const auto* const executor = new quantd::Executor(threads);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    quantd::DynamicQuantizeParameters parameters;
    parameters.x.data_type = quantd::DataType::kFloat;
    parameters.x.shape = {elements};
    parameters.x.bytes = {reinterpret_cast<const uint8_t*>(x),
                          static_cast<size_t>(elements) * sizeof(float)};
    if (!Call(parameters, *executor, y)) return -1;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
