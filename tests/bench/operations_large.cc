// See operations_large.h.
#include "operations_large.h"

#include <algorithm>
#include <memory>

#include "kernels_limits.h"
#include "operations_tensors.h"
#include "quantd/calibration.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::bench {
namespace {

bool Never() { return false; }

struct Tensors {
  explicit Tensors(int64_t elements)
      : floats(MakeInput(DataType::kFloat, {elements})),
        codes(MakeInput(DataType::kUint8, {elements})),
        scale(MakeScale(DataType::kFloat, {})),
        zero_point(MakeZeroPoint(DataType::kUint8, {})),
        y(static_cast<size_t>(elements) * sizeof(float)) {}

  OwnedTensor floats, codes, scale, zero_point;
  Memory y;
};

// A copy or a read of the same shape, a piece a task.
std::function<void(const Executor&, int, bool)> LimitOf(std::shared_ptr<Tensors> tensors,
                                                        Limit limit) {
  return [tensors, limit](const Executor& executor, int tasks, bool stream) {
    const bool widens = limit == Limit::kWiden8;
    const uint8_t* from = (widens ? tensors->codes : tensors->floats).memory->data();
    const auto size = static_cast<size_t>(tensors->codes.bytes.size());
    const size_t in = widens ? 1 : sizeof(float), out = widens ? sizeof(float) : 1;
    const size_t piece = (size / static_cast<size_t>(tasks) + 1023) / 1024 * 1024;
    executor.ParallelFor(static_cast<size_t>(tasks), [&](size_t task) {
      const size_t begin = std::min(size, task * piece);
      const size_t some = std::min(size - begin, piece);
      if (some == 0) return;
      RunLimit(limit, from + begin * in, some, tensors->y.data() + begin * out, stream);
    });
  };
}

// A tensor more for a calibrator that has seen it.
std::function<absl::Status(const Executor&)> CalibrateOf(std::shared_ptr<Tensors> tensors,
                                                         const CalibrationOptions& options) {
  const auto calibrator = std::make_shared<Calibrator>(*Calibrator::Create(options));
  return [tensors, calibrator](const Executor& executor) {
    return calibrator->Add(tensors->floats.view(), executor, Never);
  };
}

}  // namespace

std::vector<LargeCase> LargeCases(size_t bytes) {
  const auto tensors = std::make_shared<Tensors>(static_cast<int64_t>(bytes / sizeof(float)));
  const auto quantize = [tensors](const Executor& executor) {
    const QuantizeParameters p = {.x = tensors->floats.view(),
                                  .scale = tensors->scale.view(),
                                  .zero_point = tensors->zero_point.view()};
    const auto plan = PlanQuantize(p);
    if (!plan.ok()) return plan.status();
    return Quantize(*plan, p.x.bytes, executor, Never, {tensors->y.data(), plan->output_bytes},
                    nullptr);
  };
  const auto dynamic_quantize = [tensors](const Executor& executor) {
    const DynamicQuantizeParameters p = {.x = tensors->floats.view()};
    const auto plan = PlanDynamicQuantize(p);
    if (!plan.ok()) return plan.status();
    float scale;
    uint8_t zero_point;
    const DynamicQuantizeOutput answer = {{tensors->y.data(), plan->output_bytes},
                                          {reinterpret_cast<uint8_t*>(&scale), sizeof(scale)},
                                          {&zero_point, 1},
                                          {}};
    return DynamicQuantize(*plan, p.x.bytes, executor, Never, answer, nullptr);
  };
  const auto dequantize = [tensors](const Executor& executor) {
    const DequantizeParameters p = {.x = tensors->codes.view(),
                                    .scale = tensors->scale.view(),
                                    .zero_point = tensors->zero_point.view()};
    const auto plan = PlanDequantize(p);
    if (!plan.ok()) return plan.status();
    return Dequantize(*plan, p.x.bytes, executor, Never, {tensors->y.data(), plan->output_bytes});
  };
  const auto narrow = LimitOf(tensors, Limit::kNarrow8);
  return {{"Quantize", "narrowing copy", quantize, {narrow}},
          {"DynamicQuantize",
           "read, then narrowing copy",
           dynamic_quantize,
           {LimitOf(tensors, Limit::kRead), narrow}},
          {"Dequantize", "widening copy", dequantize, {LimitOf(tensors, Limit::kWiden8)}},
          {"Calibrate, range", "read", CalibrateOf(tensors, {}), {LimitOf(tensors, Limit::kRead)}},
          {"Calibrate, bins",
           "read",
           CalibrateOf(tensors, {.method = CalibrationMethod::kMse}),
           {LimitOf(tensors, Limit::kRead)}}};
}

}  // namespace quantd::bench
