#include "range_scales.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace quantd::cli {
namespace {

// Elements of a row: two hold a range, a block of NVFP4 has 16.
constexpr int64_t kRow = 2;
constexpr int64_t kTwoLevelRow = 16;

absl::Status Append(v1::Tensor* part, absl::string_view field, int64_t rows, int64_t kept,
                    ScaleTensor* whole) {
  const DataTypeInfo* info = FindDataType(part->data_type());
  if (info == nullptr) return absl::InternalError("the server's scale is of an unknown type");
  absl::StatusOr<std::string> bytes = TakeBytes(part, field, info->type, rows);
  if (!bytes.ok()) return bytes.status();
  whole->type = info->type;
  // Parts end at whole bytes: the rows of all but the last are a multiple of 8.
  whole->bytes.append(*bytes, 0, ByteSize(info->type, kept));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RangeScales> ScalesOfRanges(client::Client& client,
                                           const v1::DynamicQuantizeRequest& method,
                                           absl::Span<const Range> ranges,
                                           std::optional<float> largest, uint64_t message_bytes) {
  const int64_t row = largest.has_value() ? kTwoLevelRow : kRow;
  const auto count = static_cast<int64_t>(ranges.size());
  // A row and its answer take less than 8 bytes an element.
  const int64_t most =
      std::max<int64_t>(8, static_cast<int64_t>(message_bytes / (row * 8)) / 8 * 8);
  RangeScales result;
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t kept = std::min(most, count - begin);
    const int64_t rows = kept + (largest.has_value() ? 1 : 0);
    std::vector<float> values(rows * row, 0.0f);
    for (int64_t i = 0; i < kept; ++i) {
      values[i * row] = ranges[begin + i].minimum;
      values[i * row + 1] = ranges[begin + i].maximum;
    }
    if (largest.has_value()) values[kept * row] = *largest;

    v1::DynamicQuantizeRequest request = method;
    request.set_report_error(false);
    request.clear_block_shape();
    request.clear_block_size();
    request.set_axis(0);
    if (largest.has_value()) {
      request.set_axis(1);
      request.set_block_size(row);
    }
    SetTensor(DataType::kFloat, {rows, row},
              std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4),
              request.mutable_x());
    absl::StatusOr<v1::DynamicQuantizeResponse> answer = client.Call(request);
    if (!answer.ok()) return answer.status();
    absl::Status status = Append(answer->mutable_y_scale(), "y_scale", rows, kept, &result.scale);
    if (status.ok() && answer->has_y_zero_point()) {
      status =
          Append(answer->mutable_y_zero_point(), "y_zero_point", rows, kept, &result.zero_point);
    }
    if (status.ok() && answer->has_y_tensor_scale()) {
      result.tensor_scale.bytes.clear();
      status =
          Append(answer->mutable_y_tensor_scale(), "y_tensor_scale", 1, 1, &result.tensor_scale);
    }
    if (!status.ok()) return status;
  }
  return result;
}

}  // namespace quantd::cli
