// The core, called where the tensors are mapped.
//
// What the core allocates grows with the number of scales alone: a few floats each. So a tensor
// with more of them than a limit goes through it in slabs.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "engine/slabs.h"
#include "quantd/dequantize.h"
#include "quantd/executor.h"
#include "quantd/field_error.h"
#include "quantd/quantize.h"
#include "quantd/quantize_embeddings.h"
#include "quantd/targets.h"
#include "quantd/values.h"

namespace quantd::cli {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements looked at at a time

bool Never() { return false; }

int64_t Elements(const Shape& shape) { return ElementCount(shape, "shape").value_or(0); }

bool HasAllBytes(const TensorView& tensor) {
  const absl::StatusOr<int64_t> elements = ElementCount(tensor.shape, "shape");
  return elements.ok() && ByteSize(tensor.data_type, *elements) == BytesOf(tensor).size();
}

// Adds up the error reports of slabs.
class SlabErrors {
 public:
  void Add(const QuantizationError& error, const TensorView& x) {
    ErrorSums sums;
    sums.non_finite_elements = error.non_finite_elements;
    sums.saturated_elements = error.saturated_elements;
    sums.max_absolute_error = error.max_absolute_error;
    sums.finite_elements = Elements(x.shape) - error.non_finite_elements;
    sums.noise = error.mean_squared_error * static_cast<double>(sums.finite_elements);
    const bool told = sums.noise > 0 && std::isfinite(sums.noise) && std::isfinite(error.sqnr_db);
    sums.signal = told ? sums.noise * std::pow(10, error.sqnr_db / 10) : SignalOf(x);
    sums_.Add(sums);
  }
  QuantizationError Finish() const { return sums_.Finish(); }

 private:
  static double SignalOf(const TensorView& x) {
    double signal = 0;
    const int64_t elements = Elements(x.shape);
    const int bits = Info(x.data_type).bits;
    for (int64_t first = 0; first < elements; first += kChunk) {
      const int64_t count = std::min(kChunk, elements - first);
      const ByteChunks bytes(BytesOf(x).subspan(first * bits / 8, count * bits / 8));
      const auto add = [&signal](double value) {
        if (std::isfinite(value)) signal += value * value;
      };
      if (Info(x.data_type).kind == DataTypeKind::kInteger) {
        for (const int64_t v : UnpackIntegers(x.data_type, count, bytes)) add(v);
      } else {
        for (const float v : UnpackFloats(x.data_type, count, bytes)) add(v);
      }
    }
    return signal;
  }
  ErrorSums sums_;
};

// Says from where an index counts.
absl::Status InSlab(const absl::Status& status, const Slab& slab) {
  if (status.ok() || slab.first_element == 0) return status;
  return FieldError(
      ErrorField(status),
      absl::StrCat("of the elements from ", slab.first_element, " on: ", status.message()),
      status.code());
}

// Of bins, when there are very many channels.
constexpr uint64_t kMostCalibratorBytes = uint64_t{1} << 30;

class LocalCalibration : public CalibrationRun {
 public:
  LocalCalibration(Calibrator calibrator, bool return_state, const Executor& executor)
      : calibrator_(std::move(calibrator)), return_state_(return_state), executor_(executor) {}

  absl::Status Add(const TensorView& x) override {
    const absl::Status fits = Fits(calibrator_.BytesWith(x));
    return fits.ok() ? calibrator_.Add(x, executor_, Never) : fits;
  }
  absl::Status AddState(absl::string_view state) override {
    const absl::Span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(state.data()),
                                          state.size());
    const absl::Status fits = Fits(calibrator_.BytesWithState(bytes));
    return fits.ok() ? calibrator_.Merge(bytes) : fits;
  }
  absl::StatusOr<Calibrated> Finish() override {
    absl::StatusOr<Calibration> result = calibrator_.Result(executor_, Never);
    if (!result.ok()) return result.status();
    return Calibrated{*std::move(result), return_state_ ? calibrator_.State() : ""};
  }

 private:
  static absl::Status Fits(const absl::StatusOr<uint64_t>& bytes) {
    if (!bytes.ok() || *bytes <= kMostCalibratorBytes) return bytes.status();
    return absl::ResourceExhaustedError(absl::StrCat(
        "so many channels would take ", *bytes, " bytes, ", kMostCalibratorBytes, " are allowed"));
  }

  Calibrator calibrator_;
  const bool return_state_;
  const Executor& executor_;
};

class LocalEngine : public Engine {
 public:
  LocalEngine(int threads, const SlabLimits& limits) : executor_(threads), limits_(limits) {}

  absl::Status Quantize(const QuantizeParameters& p, absl::Span<uint8_t> y,
                        QuantizationError* error) override {
    const std::optional<Shape> blocks = BlocksOf(p);
    if (!blocks.has_value()) return QuantizeWhole(p, y, error);
    SlabErrors errors;
    const int bits = Info(p.output_type).bits;
    const absl::Status status =
        InSlabs(p, *blocks, [&](const QuantizeParameters& part, const Slab& slab) {
          PartToFill to(y, bits, slab.first_element, slab.elements);
          QuantizationError slab_error;
          absl::Status done = QuantizeWhole(part, to.bytes(), &slab_error);
          if (done.ok()) to.Finish();
          if (done.ok() && p.report_error) errors.Add(slab_error, part.x);
          return done;
        });
    if (status.ok() && p.report_error && error != nullptr) *error = errors.Finish();
    return status;
  }

  absl::Status Dequantize(const DequantizeParameters& p, absl::Span<uint8_t> y) override {
    const std::optional<Shape> blocks = BlocksOf(p);
    if (!blocks.has_value()) return DequantizeWhole(p, y);
    const int bytes = Info(p.output_type).bits / 8;
    return InSlabs(p, *blocks, [&](const DequantizeParameters& part, const Slab& slab) {
      return DequantizeWhole(part, y.subspan(slab.first_element * bytes, slab.elements * bytes));
    });
  }

  absl::Status QuantizeEmbeddings(const QuantizeEmbeddingsParameters& p, absl::Span<uint8_t> y,
                                  QuantizationError* error) override {
    const absl::StatusOr<QuantizeEmbeddingsPlan> plan = PlanQuantizeEmbeddings(p);
    if (!plan.ok()) return plan.status();
    return quantd::QuantizeEmbeddings(*plan, p.x.bytes, executor_, Never, y, error);
  }

  absl::StatusOr<std::unique_ptr<CalibrationRun>> Calibrate(const CalibrationOptions& options,
                                                            bool return_state) override {
    absl::StatusOr<Calibrator> calibrator = Calibrator::Create(options);
    if (!calibrator.ok()) return calibrator.status();
    return std::make_unique<LocalCalibration>(*std::move(calibrator), return_state, executor_);
  }

  absl::Status DynamicQuantize(const DynamicQuantizeParameters& p,
                               const DynamicQuantizeOutput& output,
                               QuantizationError* error) override {
    const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(p);
    if (!plan.ok()) return plan.status();
    if (plan->layout.scale_count <= limits_.scales) {
      return quantd::DynamicQuantize(*plan, p.x.bytes, executor_, Never, output, error);
    }
    // What comes before each slab of a tensor with a second scale: a block with the largest of all.
    const float largest = plan->has_tensor_scale ? LargestOf(p.x) : 0;
    SlabErrors errors;
    absl::Status status =
        ForEachSlab(p.x.shape, plan->block_shape, limits_, true, [&](const Slab& slab) {
          SlabPart part;
          DynamicQuantizeParameters request = p;
          request.x = part.OfElements(p.x, slab);
          request.granularity = {.block_shape = slab.block_shape};
          QuantizationError slab_error;
          absl::Status done = plan->has_tensor_scale
                                  ? TwoLevelSlab(request, slab, largest, output, &slab_error)
                                  : OneLevelSlab(request, slab, output, &slab_error);
          if (done.ok() && p.report_error) errors.Add(slab_error, request.x);
          return InSlab(done, slab);
        });
    if (status.ok() && p.report_error && error != nullptr) *error = errors.Finish();
    return status;
  }

 private:
  absl::Status QuantizeWhole(const QuantizeParameters& p, absl::Span<uint8_t> y,
                             QuantizationError* error) {
    const absl::StatusOr<QuantizePlan> plan = PlanQuantize(p);
    if (!plan.ok()) return plan.status();
    return quantd::Quantize(*plan, p.x.bytes, executor_, Never, y, error);
  }

  absl::Status DequantizeWhole(const DequantizeParameters& p, absl::Span<uint8_t> y) {
    const absl::StatusOr<DequantizePlan> plan = PlanDequantize(p);
    if (!plan.ok()) return plan.status();
    return quantd::Dequantize(*plan, p.x.bytes, executor_, Never, y);
  }

  // The blocks of a request that is to be cut: it has many scales, and what it says fits together.
  template <typename Parameters>
  std::optional<Shape> BlocksOf(const Parameters& p) const {
    if (Elements(p.scale.shape) <= limits_.scales || !HasAllBytes(p.x) || !HasAllBytes(p.scale) ||
        p.output_type == DataType::kUnspecified) {
      return std::nullopt;
    }
    if (p.zero_point.has_value() &&
        (p.zero_point->shape != p.scale.shape || !HasAllBytes(*p.zero_point))) {
      return std::nullopt;
    }
    return BlocksOfScales(p.x.shape, p.scale.shape, p.granularity);
  }

  template <typename Parameters, typename Run>
  absl::Status InSlabs(const Parameters& p, const Shape& blocks, const Run& run) {
    return ForEachSlab(p.x.shape, blocks, limits_, false, [&](const Slab& slab) {
      const SlabRequest<Parameters> part(p, slab);
      return InSlab(run(part.parameters, slab), slab);
    });
  }

  absl::Status OneLevelSlab(const DynamicQuantizeParameters& request, const Slab& slab,
                            const DynamicQuantizeOutput& output, QuantizationError* error) {
    const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(request);
    if (!plan.ok()) return plan.status();
    const int y_bits = Info(plan->output_type).bits, scale_bits = Info(plan->scale_type).bits;
    PartToFill y(output.y, y_bits, slab.first_element, slab.elements);
    PartToFill scale(output.scale, scale_bits, slab.first_scale, slab.scales);
    PartToFill zero_point(output.zero_point, y_bits, plan->has_zero_point ? slab.first_scale : 0,
                          plan->has_zero_point ? slab.scales : 0);
    absl::Status status =
        quantd::DynamicQuantize(*plan, request.x.bytes, executor_, Never,
                                {y.bytes(), scale.bytes(), zero_point.bytes(), {}}, error);
    if (!status.ok()) return status;
    for (PartToFill* part : {&y, &scale, &zero_point}) part->Finish();
    return absl::OkStatus();
  }

  // The second scale comes from the largest of the whole tensor, so a block that holds it stands
  // before the slab when its scales are found. With their products the codes are those of Quantize.
  absl::Status TwoLevelSlab(const DynamicQuantizeParameters& request, const Slab& slab,
                            float largest, const DynamicQuantizeOutput& output,
                            QuantizationError* error) {
    const absl::StatusOr<std::vector<uint8_t>> value =
        PackFloats(request.x.data_type, {largest}, "x");
    if (!value.ok()) return value.status();
    DynamicQuantizeParameters longer = request;
    longer.report_error = false;
    longer.x.shape[0] += slab.block_shape[0];
    std::vector<uint8_t> front(slab.elements / slab.shape[0] * slab.block_shape[0] * value->size());
    std::copy(value->begin(), value->end(), front.begin());
    longer.x.bytes = ByteChunks(front);
    longer.x.bytes.Append(BytesOf(request.x));
    const absl::StatusOr<DynamicQuantizePlan> plan = PlanDynamicQuantize(longer);
    if (!plan.ok()) return plan.status();
    std::vector<uint8_t> y(plan->output_bytes), scale(plan->scale_bytes);
    absl::Status status = quantd::DynamicQuantize(
        *plan, longer.x.bytes, executor_, Never,
        {absl::MakeSpan(y), absl::MakeSpan(scale), {}, output.tensor_scale}, nullptr);
    if (!status.ok()) return status;

    const int64_t scale_bytes = Info(plan->scale_type).bits / 8;
    const auto scales = absl::MakeConstSpan(scale).last(slab.scales * scale_bytes);
    std::copy(scales.begin(), scales.end(), output.scale.begin() + slab.first_scale * scale_bytes);
    const float second = UnpackFloats(DataType::kFloat, 1, ByteChunks(output.tensor_scale))[0];
    std::vector<float> products = UnpackFloats(plan->scale_type, slab.scales, ByteChunks(scales));
    for (float& product : products) product *= second;
    QuantizeParameters known;
    known.x = request.x;
    known.scale = {DataType::kFloat, slab.scale_shape,
                   ByteChunks({reinterpret_cast<const uint8_t*>(products.data()),
                               products.size() * sizeof(float)})};
    known.output_type = request.output_type;
    known.granularity = request.granularity;
    known.saturate = request.saturate;
    known.report_error = request.report_error;
    PartToFill to(output.y, Info(request.output_type).bits, slab.first_element, slab.elements);
    status = QuantizeWhole(known, to.bytes(), error);
    if (status.ok()) to.Finish();
    return status;
  }

  float LargestOf(const TensorView& x) const {
    const int64_t elements = Elements(x.shape);
    const int width = Info(x.data_type).bits / 8;
    std::vector<float> largest((elements + kChunk - 1) / kChunk, 0.0f);
    executor_.ParallelFor(largest.size(), [&](size_t i) {
      const int64_t first = static_cast<int64_t>(i) * kChunk;
      const int64_t count = std::min(kChunk, elements - first);
      const ByteChunks bytes(BytesOf(x).subspan(first * width, count * width));
      for (const float value : UnpackFloats(x.data_type, count, bytes)) {
        if (std::isfinite(value)) largest[i] = std::max(largest[i], std::abs(value));
      }
    });
    return largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
  }

  const Executor executor_;
  const SlabLimits limits_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeLocalEngine(int threads, const std::string& simd,
                                                        const SlabLimits& limits) {
  absl::Status status = CheckEnvironmentTarget();
  if (status.ok() && !simd.empty()) status = SelectTarget(simd);
  if (!status.ok()) return status;
  return std::make_unique<LocalEngine>(threads, limits);
}

}  // namespace quantd::cli
