#include "server/wire/calibrate.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "quantd/v1/quantization.pb.h"
#include "quantd/values.h"
#include "server/wire/convert.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"
#include "server/wire/split.h"

namespace quantd::wire {
namespace {

// Fields other than the bytes of tensors: types, shapes, lengths, counts.
constexpr uint64_t kFieldsBytes = 256;

void Fill(DataType type, const Shape& shape, const void* bytes, size_t size, v1::Tensor& tensor) {
  tensor.set_data_type(static_cast<v1::DataType>(type));
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_raw_data(bytes, size);
}

void FillFloats(const Shape& shape, const std::vector<float>& values, v1::Tensor& tensor) {
  Fill(DataType::kFloat, shape, values.data(), values.size() * sizeof(float), tensor);
}

}  // namespace

absl::StatusOr<CalibrateMessage> DecodeCalibrate(BytesView message) {
  const Split split = SplitRequest(Method::kCalibrate, message);
  v1::CalibrateRequest parsed;
  if (absl::Status status = Parse(split, parsed); !status.ok()) return status;
  absl::StatusOr<CalibrateMessage> converted = Convert(parsed, split.of(Method::kCalibrate));
  if (converted.ok()) converted->state = split.state;
  return converted;
}

uint64_t MaxCalibrationBytes(uint64_t channels, uint64_t state_bytes) {
  // Scale, zero point of 2 bytes at most, and both ends of the range.
  constexpr uint64_t kChannelBytes = 4 + 2 + 2 * 4;
  return kFieldsBytes + kChannelBytes * channels + state_bytes;
}

uint64_t CalibrationMemoryBytes(uint64_t channels, uint64_t state_bytes) {
  // The computed values, with zero points of 4 bytes, then of 8 bytes and packed; their message,
  // and its bytes.
  constexpr uint64_t kComputedBytes = 4 + 4 + 2 * 4 + 8 + 2;
  return kComputedBytes * channels + 2 * MaxCalibrationBytes(channels, state_bytes);
}

memory::Piece EncodeCalibration(const Calibration& calibration, DataType output_type,
                                std::string state, memory::Pool& pool) {
  v1::CalibrateResponse response;
  FillFloats(calibration.shape, calibration.scale, *response.mutable_scale());
  if (calibration.has_zero_point) {
    const std::vector<int64_t> wide(calibration.zero_point.begin(), calibration.zero_point.end());
    // Zero points are always in range of their type.
    const std::vector<uint8_t> packed = *PackIntegers(output_type, wide, "zero_point");
    Fill(output_type, calibration.shape, packed.data(), packed.size(),
         *response.mutable_zero_point());
  }
  FillFloats(calibration.range_shape, calibration.range, *response.mutable_range());
  response.set_elements(calibration.elements);
  response.set_non_finite_elements(calibration.non_finite_elements);
  response.set_state(std::move(state));
  return Serialize(response, pool);
}

}  // namespace quantd::wire
