// QuantizeEmbeddings in pieces of whole rows, which depend only on themselves and the
// ranges.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "messages.h"
#include "pieces.h"
#include "status_macros.h"
#include "sums.h"

namespace quantd::client::split {
namespace {

// The sizes of a request; all 0 if the server would refuse it.
struct Rows {
  int64_t count = 0;      // embeddings
  int64_t row_bytes = 0;  // of x
  int64_t used = 0;       // values of each that are used
  int64_t y_bytes = 0;    // of y, for each

  Rows(const Tensor& x, const EmbeddingOptions& options) {
    if (x.shape.empty() || x.shape.back() <= 0 || options.dimensions < 0 ||
        options.dimensions > x.shape.back() || BitsOf(x.data_type) % 8 != 0) {
      return;
    }
    row_bytes = x.shape.back() * BitsOf(x.data_type) / 8;
    if (row_bytes == 0) return;
    count = static_cast<int64_t>(x.data.size()) / row_bytes;
    used = options.dimensions == 0 ? x.shape.back() : options.dimensions;
    y_bytes = options.recipe == v1::EMBEDDING_RECIPE_BITS ? (used + 7) / 8 : used;
  }

  MessageSizes Of(int64_t rows, const EmbeddingOptions& options) const {
    const uint64_t ranges = options.ranges.has_value() ? options.ranges->data.size() : 0;
    return {static_cast<uint64_t>(rows * row_bytes) + ranges + kEnvelopeBytes,
            static_cast<uint64_t>(rows * y_bytes) + kEnvelopeBytes};
  }
};

v1::DataType OutputTypeOf(const EmbeddingOptions& options) {
  if (options.output_type != v1::DATA_TYPE_UNSPECIFIED) return options.output_type;
  const bool both =
      options.recipe == v1::EMBEDDING_RECIPE_RANGES || options.recipe == v1::EMBEDDING_RECIPE_BITS;
  return both ? v1::DATA_TYPE_UINT8 : v1::DATA_TYPE_INT8;
}

// The signal's energy. The report of a piece contains it unless the piece is exact; then it matters
// only for the sum over other pieces.
double SignalOf(const v1::QuantizationError& report, int64_t finite, const Tensor& x,
                const EmbeddingOptions& options, const std::string& rows, int64_t count) {
  const double noise = report.mean_squared_error() * static_cast<double>(finite);
  if (noise > 0) return noise * std::pow(10, report.sqnr_db() / 10);
  const int64_t width = x.shape.back();
  const int64_t used = options.dimensions == 0 ? width : options.dimensions;
  double signal = 0;
  for (int64_t row = 0; row < count; ++row) {
    const double energy = ScanElements(x.data_type, rows, row * width, used).signal;
    // Zeros, and vectors that are not finite, are not normalised to length 1.
    signal += options.normalize && energy > 0 && std::isfinite(energy) ? 1 : energy;
  }
  return signal;
}

absl::Status OfRows(const absl::Status& status, int64_t begin) {
  if (!absl::IsInvalidArgument(status) || begin == 0) return status;
  absl::Status result(status.code(), absl::StrCat(status.message(), " (in the piece of x that ",
                                                  "begins with embedding ", begin, ")"));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace

MessageSizes SizesOf(const Tensor& x, const EmbeddingOptions& options) {
  const Rows rows(x, options);
  if (rows.count == 0) return {x.data.size() + kEnvelopeBytes, 0};
  return rows.Of(rows.count, options);
}

absl::StatusOr<QuantizedEmbeddings> QuantizeEmbeddings(const Sender& sender, const Tensor& x,
                                                       const EmbeddingOptions& options) {
  QUANTD_RETURN_IF_ERROR(CheckTensor(x, "x").status());
  const Rows rows(x, options);
  int64_t each = 0;
  for (int64_t bad = rows.count + 1; bad - each > 1;) {
    const int64_t middle = each + (bad - each) / 2;
    (rows.Of(middle, options).Fit(sender.limits) ? each : bad) = middle;
  }
  if (each == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an embedding of ", x.shape.empty() ? 1 : x.shape.back(),
                     " values does not fit into a message of ", sender.limits.message_bytes,
                     " bytes; start the server with a larger --max_message_bytes"));
  }
  QuantizedEmbeddings result;
  result.y = {OutputTypeOf(options), x.shape,
              std::string(static_cast<size_t>(rows.count * rows.y_bytes), '\0')};
  result.y.shape.back() = rows.y_bytes;
  std::mutex mutex;
  Sums sums;  // guarded by mutex
  const auto pieces = static_cast<size_t>((rows.count + each - 1) / each);
  absl::Status status = RunPieces(pieces, [&](size_t index) {
    const int64_t begin = static_cast<int64_t>(index) * each;
    const int64_t count = std::min(each, rows.count - begin);
    v1::QuantizeEmbeddingsRequest request = RequestOf(options);
    SetMessage(x.data_type, {count, x.shape.back()},
               x.data.substr(static_cast<size_t>(begin * rows.row_bytes),
                             static_cast<size_t>(count * rows.row_bytes)),
               request.mutable_x());
    const absl::StatusOr<v1::QuantizeEmbeddingsResponse> response =
        sender.quantize_embeddings(request);
    if (!response.ok()) return OfRows(response.status(), begin);
    absl::Status right =
        CheckResponse(response->y(), "y", result.y.data_type, count * rows.y_bytes);
    if (!right.ok()) return right;
    // Rows are whole bytes, so pieces share none.
    const std::string& bytes = response->y().raw_data();
    std::copy(bytes.begin(), bytes.end(), result.y.data.begin() + begin * rows.y_bytes);
    if (!options.report_error) return right;
    const v1::QuantizationError& error = response->quantization_error();
    const int64_t finite = count * rows.used - static_cast<int64_t>(error.non_finite_elements());
    const double signal = SignalOf(error, finite, x, options, request.x().raw_data(), count);
    const std::lock_guard<std::mutex> lock(mutex);
    sums.Add(error, signal, finite);
    return right;
  });
  if (!status.ok()) return status;
  if (options.report_error) result.error = sums.Finish();
  return result;
}

}  // namespace quantd::client::split
