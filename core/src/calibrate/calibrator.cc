// The public interface: quantd/calibration.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calibrate/channels.h"
#include "calibrate/count.h"
#include "calibrate/methods.h"
#include "calibrate/state.h"
#include "plan/operands.h"
#include "pool/watch.h"
#include "quantd/calibration.h"
#include "quantd/field_error.h"

namespace quantd {

using calibrate::Channels;
using calibrate::ChannelView;
using calibrate::Extents;
using calibrate::Scaling;

// The options, and the values seen so far.
struct Calibrator::Seen {
  CalibrationOptions options;  // with its defaults filled in
  bool symmetric = false;
  bool has_bins = false;
  bool started = false;  // whether `channels` are valid
  Channels channels;
};

namespace {

constexpr DataType kInputTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                    DataType::kInt32};

// A state may contain 2^62 elements for each of many channels.
uint64_t AddUpToMost(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

bool IsInteger(DataType type) { return Info(type).kind == DataTypeKind::kInteger; }

absl::Status CheckMethod(const CalibrationOptions& options) {
  const bool integers_only =
      options.method == CalibrationMethod::kMse || options.method == CalibrationMethod::kEntropy;
  if (integers_only && !IsInteger(options.output_type)) {
    return FieldError("method",
                      absl::StrCat("method MSE and ENTROPY are for integers, output_type is ",
                                   Name(options.output_type)));
  }
  if (options.symmetry == Symmetry::kAsymmetric && !IsInteger(options.output_type)) {
    return FieldError("symmetry",
                      absl::StrCat("symmetry ASYMMETRIC is for integers, output_type is ",
                                   Name(options.output_type)));
  }
  if (options.percentile == 0) return absl::OkStatus();
  if (options.method != CalibrationMethod::kPercentile) {
    return FieldError("percentile", absl::StrCat("percentile is ", options.percentile,
                                                 " and the method is not PERCENTILE"));
  }
  if (!(options.percentile > 50 && options.percentile <= 100)) {
    return FieldError("percentile", absl::StrCat("percentile is ", options.percentile,
                                                 ", it must be above 50 and at most 100"));
  }
  return absl::OkStatus();
}

// x as channels; its bytes are those of its type and shape.
absl::StatusOr<Extents> ExtentsOf(const TensorView& x, std::optional<int64_t> axis) {
  absl::Status status = CheckType(x.data_type, "x", "Calibrate takes", kInputTypes);
  if (!status.ok()) return status;
  absl::StatusOr<int64_t> elements = CheckTensor(x, "x");
  if (!elements.ok()) return elements.status();
  if (!axis.has_value()) return Extents{1, 1, *elements};
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (*axis < -rank || *axis >= rank) {
    return FieldError("axis", absl::StrCat("axis is ", *axis, ", x has ", rank, " dimensions"));
  }
  const auto at = static_cast<size_t>(*axis < 0 ? *axis + rank : *axis);
  Extents extents{1, x.shape[at], 1};
  for (size_t i = 0; i < at; ++i) extents.outer *= x.shape[i];
  for (size_t i = at + 1; i < x.shape.size(); ++i) extents.inner *= x.shape[i];
  return extents;
}

calibrate::Range RangeOf(const CalibrationOptions& options, const ChannelView& seen,
                         const Scaling& scaling, Watch& watch) {
  switch (options.method) {
    case CalibrationMethod::kMinMax:
      return calibrate::MinMaxRange(seen, scaling.symmetric());
    case CalibrationMethod::kPercentile:
      return calibrate::PercentileRange(seen, options.percentile, scaling.symmetric());
    case CalibrationMethod::kEntropy:
      return calibrate::EntropyRange(seen, scaling, watch);
    case CalibrationMethod::kMse:
      return calibrate::MseRange(seen, scaling, watch);
  }
  return {};
}

}  // namespace

Calibrator::Calibrator(std::unique_ptr<Seen> seen) : seen_(std::move(seen)) {}
Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator& Calibrator::operator=(Calibrator&&) noexcept = default;
Calibrator::~Calibrator() = default;

absl::StatusOr<Calibrator> Calibrator::Create(const CalibrationOptions& options) {
  auto seen = std::make_unique<Seen>();
  seen->options = options;
  CalibrationOptions& o = seen->options;
  if (o.output_type == DataType::kUnspecified) o.output_type = DataType::kUint8;
  absl::Status status =
      CheckType(o.output_type, "output_type", "Calibrate gives scales of", QuantizedTypes());
  if (!status.ok()) return status;
  if (status = CheckMethod(o); !status.ok()) return status;
  if (o.percentile == 0) o.percentile = 99.99;
  seen->symmetric = o.symmetry == Symmetry::kSymmetric || !IsInteger(o.output_type);
  seen->has_bins = o.method != CalibrationMethod::kMinMax;
  return Calibrator(std::move(seen));
}

absl::StatusOr<uint64_t> Calibrator::BytesWith(const TensorView& x) const {
  const absl::StatusOr<Extents> extents = ExtentsOf(x, seen_->options.axis);
  if (!extents.ok()) return extents.status();
  if (seen_->started && static_cast<uint64_t>(extents->channels) != seen_->channels.size()) {
    return FieldError("x", absl::StrCat("x has ", extents->channels, " elements along axis ",
                                        seen_->options.axis.value_or(0),
                                        ", the data before it had ", seen_->channels.size()));
  }
  // An empty tensor could claim any number of channels, so this is the limit for it.
  constexpr int64_t kChannelsOfEmptyTensor = 65536;
  if (extents->elements() == 0 && extents->channels > kChannelsOfEmptyTensor) {
    return FieldError("x",
                      absl::StrCat("x of shape ", ShapeString(x.shape), " is empty and would have ",
                                   extents->channels, " channels, at most ", kChannelsOfEmptyTensor,
                                   " are kept for an empty tensor"));
  }
  return Channels::Bytes(static_cast<uint64_t>(extents->channels), seen_->has_bins);
}

absl::StatusOr<uint64_t> Calibrator::BytesWithState(absl::Span<const uint8_t> state) const {
  const absl::StatusOr<calibrate::StateHead> head = calibrate::ReadStateHead(state);
  if (!head.ok()) return head.status();
  if (head->per_axis != seen_->options.axis.has_value()) {
    return FieldError("state", absl::StrCat("state is ", head->per_axis ? "" : "not ",
                                            "along an axis, options.axis is ",
                                            head->per_axis ? "not set" : "set"));
  }
  if (seen_->started && head->channels != seen_->channels.size()) {
    return FieldError(
        "state", absl::StrCat("state has ", head->channels, " channels, the data before it had ",
                              seen_->channels.size()));
  }
  // The channels of the state exist in addition until they are merged.
  return 2 * Channels::Bytes(head->channels, seen_->has_bins);
}

absl::Status Calibrator::Add(const TensorView& x, const Executor& executor,
                             Interrupted interrupted) {
  if (const auto bytes = BytesWith(x); !bytes.ok()) return bytes.status();
  const absl::StatusOr<Extents> extents = ExtentsOf(x, seen_->options.axis);
  if (!extents.ok()) return extents.status();
  if (seen_->started) {
    return calibrate::Count(x, *extents, seen_->options.non_finite, &executor, interrupted,
                            seen_->channels);
  }
  Channels channels(static_cast<size_t>(extents->channels), seen_->has_bins);
  absl::Status status =
      calibrate::Count(x, *extents, seen_->options.non_finite, &executor, interrupted, channels);
  if (!status.ok()) return status;
  seen_->channels = std::move(channels);
  seen_->started = true;
  return absl::OkStatus();
}

absl::Status Calibrator::Merge(absl::Span<const uint8_t> state) {
  if (const auto bytes = BytesWithState(state); !bytes.ok()) return bytes.status();
  absl::StatusOr<Channels> channels = calibrate::ReadState(state, seen_->has_bins);
  if (!channels.ok()) return channels.status();
  if (!seen_->started) {
    seen_->channels = *std::move(channels);
    seen_->started = true;
    return absl::OkStatus();
  }
  for (size_t i = 0; i < channels->size(); ++i) {
    if (channels->finite[i] + seen_->channels.finite[i] <= calibrate::kMostValues &&
        channels->non_finite[i] + seen_->channels.non_finite[i] <= calibrate::kMostValues) {
      continue;
    }
    return FieldError("state", absl::StrCat("channel ", i, " would have over 2^62 elements"));
  }
  seen_->channels.Merge(*channels);
  return absl::OkStatus();
}

absl::StatusOr<Calibration> Calibrator::Result(const Executor& executor,
                                               Interrupted interrupted) const {
  if (!seen_->started) return FieldError("x", "x is missing: there was neither data nor a state");
  const Channels& channels = seen_->channels;
  const size_t size = channels.size();
  const Scaling scaling(seen_->options.output_type, seen_->symmetric);
  Calibration result;
  result.has_zero_point = IsInteger(seen_->options.output_type);
  result.scale.resize(size);
  if (result.has_zero_point) result.zero_point.resize(size);
  result.range.resize(2 * size);
  result.range_shape = {2};
  if (seen_->options.axis.has_value()) {
    result.shape = {static_cast<int64_t>(size)};
    result.range_shape = {2, static_cast<int64_t>(size)};
  }
  Watch watch(interrupted);
  // A search takes some 10 ms per channel, everything else microseconds.
  const bool searches = seen_->options.method == CalibrationMethod::kMse ||
                        seen_->options.method == CalibrationMethod::kEntropy;
  const size_t per_task = searches ? 1 : 64;
  executor.ParallelFor((size + per_task - 1) / per_task, [&](size_t task) {
    for (size_t i = task * per_task; i < std::min(size, (task + 1) * per_task); ++i) {
      if (watch.Stopped()) return;
      const ChannelView seen{channels.finite[i], channels.LowOf(i), channels.HighOf(i),
                             channels.has_bins() ? channels.FindBins(i) : nullptr};
      const calibrate::Range range = RangeOf(seen_->options, seen, scaling, watch);
      const calibrate::Scale scale = scaling.Of(range);
      result.scale[i] = scale.scale;
      if (result.has_zero_point) result.zero_point[i] = scale.zero_point;
      result.range[i] = range.low;
      result.range[size + i] = range.high;
    }
  });
  if (absl::Status status = watch.Status(); !status.ok()) return status;
  for (size_t i = 0; i < size; ++i) {
    result.elements = AddUpToMost(result.elements, channels.finite[i]);
    result.non_finite_elements = AddUpToMost(result.non_finite_elements, channels.non_finite[i]);
  }
  return result;
}

size_t Calibrator::channels() const { return seen_->started ? seen_->channels.size() : 0; }

uint64_t Calibrator::StateBytes() const {
  return calibrate::StateBytes(seen_->channels, seen_->options.axis.has_value());
}

std::string Calibrator::State() const {
  return calibrate::WriteState(seen_->channels, seen_->options.axis.has_value());
}

}  // namespace quantd
