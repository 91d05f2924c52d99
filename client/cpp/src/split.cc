#include "split.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "messages.h"
#include "status_macros.h"

namespace quantd::client {
namespace {

using Shape = std::vector<int64_t>;

constexpr uint64_t kEnvelopeBytes = 4096;  // everything in a message except tensors
constexpr uint64_t kPieceBytes = 4 << 20;  // of x, if the limit allows it and a row is smaller
constexpr size_t kThreads = 3;             // one piece is made while others are on their way
constexpr int64_t kMostElements = INT64_MAX / 64;

// Bits of an element, by the number of its type; 0: there is no such type.
constexpr std::array<int, 29> kBits = {
    0,  32, 8, 8, 16, 16, 32, 0, 0, 0,  // -, FLOAT, UINT8, INT8, UINT16, INT16, INT32, -, -, -
    16, 0,  0, 0, 0,  0,                // FLOAT16, -
    16, 8,  8, 8, 8,                    // BFLOAT16, FLOAT8
    4,  4,  4, 8, 2,  2,  6,  6,        // UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2, FLOAT6
};
static_assert(v1::DataType_ARRAYSIZE == kBits.size(), "a new type needs its bits");

int64_t BitsOf(v1::DataType type) {
  const auto number = static_cast<size_t>(type);
  return number < kBits.size() ? kBits[number] : 0;
}

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

std::string Text(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// -1 if a length is below 1 or the product is too large: no tensor with bytes has such a shape.
int64_t ElementsOf(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t length : shape) {
    if (length < 1 || elements > kMostElements / length) return -1;
    elements *= length;
  }
  return elements;
}

absl::Status FieldError(const char* field, const std::string& message) {
  v1::ItemError error;
  error.set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
  error.set_message(message);
  v1::FieldViolation* const violation = error.add_field_violations();
  violation->set_field(field);
  violation->set_description(message);
  return FromItemError(error);
}

absl::Status CheckTensor(const Tensor& tensor, const char* field) {
  const int64_t elements = ElementsOf(tensor.shape);
  const int64_t bytes = elements < 0 ? -1 : CeilDivide(elements * BitsOf(tensor.data_type), 8);
  if (bytes > 0 && static_cast<uint64_t>(bytes) == tensor.data.size()) return absl::OkStatus();
  return FieldError(
      field, absl::StrCat(field, " has ", tensor.data.size(), " bytes, type ", tensor.data_type,
                          " of shape ", Text(tensor.shape), " takes ",
                          bytes < 0 ? "another number" : absl::StrCat(bytes)));
}

// How the rows of x go with those of its scales.
struct Rows {
  int64_t count = 0;      // of x
  int64_t per_scale = 0;  // rows of x to a row of the scales; 0: the scales belong to all rows
};

absl::Status CannotCut(const Tensor& x, const ServerLimits& limits, absl::string_view why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "x of shape ", Text(x.shape), " has ", x.data.size(), " bytes, the server's messages ",
      limits.message_bytes, " (--max_message_bytes), and it cannot be cut: ", why,
      "; the library quantd::core computes it in this process, without a limit"));
}

// `scale`: null if the server finds the scales.
absl::StatusOr<Rows> RowsOf(const Tensor& x, const Granularity& granularity, const Tensor* scale) {
  const auto rank = static_cast<int64_t>(x.shape.size());
  Rows rows;
  if (rank == 0) return rows;
  rows.count = x.shape[0];
  if (!granularity.block_shape.empty()) {
    if (static_cast<int64_t>(granularity.block_shape.size()) != rank) {
      return FieldError("block_shape",
                        absl::StrCat("block_shape has ", granularity.block_shape.size(),
                                     " lengths, x has ", rank, " dimensions"));
    }
    const int64_t block = granularity.block_shape[0];
    rows.per_scale = block < 1 || block >= rows.count ? 0 : block;
    return rows;
  }
  const bool blocks = granularity.block_size > 0;
  if (scale != nullptr && !blocks) {
    if (ElementsOf(scale->shape) == 1 && scale->shape.size() <= 1) return rows;
    if (scale->shape.size() > 1) {  // blocks that follow from the shapes
      if (rows.count % scale->shape[0] != 0) {
        return FieldError("scale", absl::StrCat("scale has length ", scale->shape[0],
                                                " in dimension 0, which does not divide the ",
                                                rows.count, " of x"));
      }
      if (scale->shape[0] > 1) rows.per_scale = rows.count / scale->shape[0];
      return rows;
    }
  }
  if (scale == nullptr && !blocks && !granularity.axis.has_value()) return rows;
  const int64_t axis = granularity.axis.value_or(1);
  if (axis < -rank || axis >= rank) {
    return FieldError("axis", absl::StrCat("axis is ", axis, ", x has ", rank, " dimensions"));
  }
  if (axis == 0 || axis == -rank) {
    const int64_t block = blocks ? granularity.block_size : 1;
    rows.per_scale = block >= rows.count && blocks ? 0 : block;
  } else if (blocks) {
    rows.per_scale = 1;
  }
  return rows;
}

// The bits of a row of a tensor whose first dimension has `count` rows.
int64_t RowBits(const Tensor& tensor, int64_t count) {
  return ElementsOf(tensor.shape) / count * BitsOf(tensor.data_type);
}

// The least multiple of `rows` whose bits are whole bytes.
int64_t WholeBytes(int64_t rows, int64_t row_bits) {
  while (rows * row_bits % 8 != 0) rows *= 2;
  return rows;
}

void SetRows(const Tensor& tensor, int64_t begin, int64_t end, v1::Tensor* to) {
  const int64_t bits = RowBits(tensor, tensor.shape[0]);
  const auto from = static_cast<size_t>(begin * bits / 8);
  const auto until = static_cast<size_t>(CeilDivide(end * bits, 8));
  to->set_data_type(tensor.data_type);
  to->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  to->set_shape(0, end - begin);
  to->set_raw_data(tensor.data.substr(from, until - from));
}

// How x is cut: into pieces of `each` rows, the last may have fewer.
struct Cut {
  Rows rows;
  int64_t each = 0;
  size_t pieces() const { return static_cast<size_t>(CeilDivide(rows.count, each)); }
};

// `unit`: pieces have a multiple of this many rows. `sent_bits`, `answered_bits`: of each row, with
// its scales. `fixed`: bytes of what every piece has.
absl::StatusOr<Cut> CutOf(const Tensor& x, const Rows& rows, int64_t unit, int64_t sent_bits,
                          int64_t answered_bits, uint64_t fixed, const ServerLimits& limits) {
  if (rows.count == 0) return CannotCut(x, limits, "it has no dimension");
  const auto fits = [&](int64_t count) {
    const uint64_t sent = static_cast<uint64_t>(count) * static_cast<uint64_t>(sent_bits) / 8;
    const uint64_t answered =
        static_cast<uint64_t>(count) * static_cast<uint64_t>(answered_bits) / 8;
    const uint64_t request = sent + fixed + kEnvelopeBytes, response = answered + kEnvelopeBytes;
    return request <= limits.message_bytes && response <= limits.message_bytes &&
           request + response <= limits.budget_bytes && (count == unit || sent <= kPieceBytes);
  };
  if (unit >= rows.count || !fits(unit)) {
    return CannotCut(x, limits,
                     unit == 1 ? "a row of it does not fit into a message"
                               : "the rows of a scale do not fit into a message");
  }
  int64_t good = 1;  // multiples of unit
  for (int64_t bad = CeilDivide(rows.count, unit) + 1; bad - good > 1;) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle * unit) ? good : bad) = middle;
  }
  return Cut{rows, good * unit};
}

// Runs work(0) to work(count - 1) on a few threads. After a failure no further one starts; returns
// the error with the smallest index.
absl::Status RunPieces(size_t count, const std::function<absl::Status(size_t index)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  size_t first_failed = count;  // guarded by mutex, like status
  absl::Status status;
  const auto run = [&] {
    while (!failed) {
      const size_t index = next++;
      if (index >= count) return;
      absl::Status result = work(index);
      if (result.ok()) continue;
      failed = true;
      const std::lock_guard<std::mutex> lock(mutex);
      if (index < first_failed) {
        first_failed = index;
        status = std::move(result);
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(count, kThreads); ++i) {
    try {
      threads.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // the system has no more; the existing threads do the rest
    }
  }
  run();
  for (std::thread& thread : threads) thread.join();
  return status;
}

// The error of a piece; an index in it is one within the piece.
absl::Status OfPiece(const absl::Status& status, int64_t begin) {
  if (!absl::IsInvalidArgument(status) || begin == 0) return status;
  absl::Status result(status.code(), absl::StrCat(status.message(), " (in the piece of x that ",
                                                  "begins with row ", begin, ")"));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

// A tensor of the pieces' tensors, one after the other. INTERNAL if the server's do not go
// together.
class Joined {
 public:
  explicit Joined(size_t pieces) : parts_(pieces) {}
  void Set(size_t piece, v1::Tensor&& part) { parts_[piece] = std::move(part); }

  // `rows`: of the first dimension. nullopt: no piece has this tensor.
  absl::StatusOr<std::optional<Tensor>> Take(const char* name, int64_t rows) {
    const v1::Tensor& first = parts_.front();
    if (first.data_type() == v1::DATA_TYPE_UNSPECIFIED) return std::nullopt;
    Tensor whole{first.data_type(), {first.shape().begin(), first.shape().end()}, {}};
    int64_t seen = 0;
    for (v1::Tensor& part : parts_) {
      Shape shape(part.shape().begin(), part.shape().end());
      const int64_t bytes = CeilDivide(ElementsOf(shape) * BitsOf(part.data_type()), 8);
      const int64_t count = shape.empty() ? 0 : std::exchange(shape[0], whole.shape[0]);
      if (count == 0 || part.data_type() != whole.data_type || shape != whole.shape ||
          bytes != static_cast<int64_t>(part.raw_data().size())) {
        return absl::InternalError(
            absl::StrCat("the server's answers to pieces have a ", name, " of different kinds"));
      }
      seen += count;
      whole.data += part.raw_data();
      part.Clear();
    }
    if (seen != rows) {
      return absl::InternalError(
          absl::StrCat("the server's ", name, " has ", seen, " rows in all, expected ", rows));
    }
    whole.shape[0] = rows;
    return whole;
  }

 private:
  std::vector<v1::Tensor> parts_;
};

// A block that is longer than the piece's first dimension becomes as long as that.
template <typename Request>
void ShortenBlocks(int64_t rows, Request* request) {
  if (request->block_shape_size() > 0 && request->block_shape(0) >= rows) {
    request->set_block_shape(0, -1);
  }
  const int64_t axis = request->has_axis() ? request->axis() : 1;
  if (request->block_size() > rows && (axis == 0 || axis == -request->x().shape_size())) {
    request->set_block_size(rows);
  }
}

// Sends the pieces: `fill` adds what belongs to rows [begin, end), `keep` takes an answer.
template <typename Arguments>
absl::Status Send(const Arguments& a, const Cut& cut, const Sender<Arguments>& send,
                  const std::function<void(int64_t, int64_t, typename Arguments::Request*)>& fill,
                  const std::function<void(size_t, typename Arguments::Response&&)>& keep) {
  return RunPieces(cut.pieces(), [&](size_t index) {
    const int64_t begin = static_cast<int64_t>(index) * cut.each;
    const int64_t end = std::min(begin + cut.each, cut.rows.count);
    typename Arguments::Request request = RequestOf(a.options);
    SetRows(a.x, begin, end, request.mutable_x());
    fill(begin, end, &request);
    absl::StatusOr<typename Arguments::Response> response = send(request);
    if (!response.ok()) return OfPiece(response.status(), begin);
    keep(index, *std::move(response));
    return absl::OkStatus();
  });
}

v1::DataType OutputType(v1::DataType given, const std::optional<Tensor>& zero_point) {
  if (given != v1::DATA_TYPE_UNSPECIFIED) return given;
  // With BEFORE_ROUNDING zero points may be INT32, which is never the output type.
  if (zero_point.has_value() && zero_point->data_type != v1::DATA_TYPE_INT32) {
    return zero_point->data_type;
  }
  return v1::DATA_TYPE_UINT8;
}
int64_t OutputBits(const QuantizeArguments& a) {
  return BitsOf(OutputType(a.options.output_type, a.zero_point));
}
int64_t OutputBits(const DequantizeArguments& a) {
  const v1::DataType given = a.options.output_type;
  return BitsOf(given == v1::DATA_TYPE_UNSPECIFIED ? a.scale.data_type : given);
}
int64_t OutputBits(const DynamicQuantizeArguments& a) {
  return BitsOf(OutputType(a.options.output_type, std::nullopt));
}

// Scales that the server finds for each row of them.
int64_t ScalesOfRow(const Shape& shape, const Granularity& granularity) {
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = granularity.axis.value_or(1);
  if (axis < 0) axis += rank;
  int64_t scales = 1;
  for (int64_t d = 1; d < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    int64_t block = shape[at];
    if (granularity.block_size > 0) block = d == axis ? granularity.block_size : 1;
    if (at < granularity.block_shape.size()) block = granularity.block_shape[at];
    if (block > 0) scales *= CeilDivide(shape[at], block);
  }
  return scales;
}

// `y_bits`: of an element. `more`: bytes in the answer besides y.
bool FitsIn(const Tensor& x, size_t request, int64_t y_bits, uint64_t more,
            const ServerLimits& limits) {
  const auto y = static_cast<uint64_t>(std::max<int64_t>(ElementsOf(x.shape), 0) * y_bits / 8);
  const uint64_t sent = x.data.size() + request + kEnvelopeBytes;
  const uint64_t answered = y + more + kEnvelopeBytes;
  return sent <= limits.message_bytes && answered <= limits.message_bytes &&
         sent + answered <= limits.budget_bytes;
}

template <typename Arguments>
bool FitsWithScale(const Arguments& a, const ServerLimits& limits) {
  const size_t zero_point = a.zero_point.has_value() ? a.zero_point->data.size() : 0;
  return FitsIn(a.x, a.scale.data.size() + zero_point, OutputBits(a), 0, limits);
}

// y of a call with given scales.
template <typename Arguments>
absl::StatusOr<Tensor> WithGivenScale(const Arguments& a, const ServerLimits& limits,
                                      const Sender<Arguments>& send) {
  QUANTD_RETURN_IF_ERROR(CheckTensor(a.x, "x"));
  QUANTD_RETURN_IF_ERROR(CheckTensor(a.scale, "scale"));
  std::vector<const Tensor*> scales = {&a.scale};
  if (a.zero_point.has_value()) {
    QUANTD_RETURN_IF_ERROR(CheckTensor(*a.zero_point, "zero_point"));
    const Shape& shape = a.zero_point->shape;
    if (shape != a.scale.shape && (ElementsOf(shape) != 1 || ElementsOf(a.scale.shape) != 1)) {
      return FieldError("zero_point", absl::StrCat("zero_point has shape ", Text(shape),
                                                   ", scale has ", Text(a.scale.shape)));
    }
    scales.push_back(&*a.zero_point);
  }
  QUANTD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(a.x, a.options.granularity, &a.scale));
  const int64_t per = rows.per_scale;
  const int64_t wanted = per == 0 ? 0 : CeilDivide(rows.count, per);
  if (per > 0 && (a.scale.shape.empty() || a.scale.shape[0] != wanted)) {
    return FieldError("scale",
                      absl::StrCat("scale has shape ", Text(a.scale.shape), ", the ", rows.count,
                                   " rows of x need ", wanted, " in its first dimension"));
  }
  const int64_t x_bits = rows.count == 0 ? 0 : RowBits(a.x, rows.count);
  const int64_t y_bits = rows.count == 0 ? 0 : ElementsOf(a.x.shape) / rows.count * OutputBits(a);
  int64_t unit = WholeBytes(WholeBytes(std::max<int64_t>(per, 1), x_bits), y_bits);
  int64_t sent = x_bits;
  uint64_t fixed = 0;
  for (const Tensor* scale : scales) {
    if (per == 0) {
      fixed += scale->data.size();
    } else {
      const int64_t bits = RowBits(*scale, wanted);
      while (unit / per * bits % 8 != 0) unit *= 2;
      sent += CeilDivide(bits, per);
    }
  }
  QUANTD_ASSIGN_OR_RETURN(const Cut cut, CutOf(a.x, rows, unit, sent, y_bits, fixed, limits));
  Joined y(cut.pieces());
  QUANTD_RETURN_IF_ERROR(Send<Arguments>(
      a, cut, send,
      [&](int64_t begin, int64_t end, typename Arguments::Request* request) {
        const auto set = [&](const Tensor& scale, v1::Tensor* to) {
          if (per == 0) {
            SetTensor(scale, to);
          } else {
            SetRows(scale, begin / per, CeilDivide(end, per), to);
          }
        };
        set(a.scale, request->mutable_scale());
        if (a.zero_point.has_value()) set(*a.zero_point, request->mutable_zero_point());
        ShortenBlocks(end - begin, request);
      },
      [&](size_t index, typename Arguments::Response&& response) {
        y.Set(index, std::move(*response.mutable_y()));
      }));
  QUANTD_ASSIGN_OR_RETURN(std::optional<Tensor> joined, y.Take("y", rows.count));
  if (!joined.has_value()) return absl::InternalError("the server's answers have no y");
  return *std::move(joined);
}

constexpr char kReportIsOfOneMessage[] = "report_error is of one message";

}  // namespace

bool Fits(const QuantizeArguments& a, const ServerLimits& limits) {
  return FitsWithScale(a, limits);
}
bool Fits(const DequantizeArguments& a, const ServerLimits& limits) {
  return FitsWithScale(a, limits);
}

bool Fits(const DynamicQuantizeArguments& a, const ServerLimits& limits) {
  const int64_t rows = a.x.shape.empty() ? 1 : std::max<int64_t>(a.x.shape[0], 1);
  const auto scales = static_cast<uint64_t>(rows * ScalesOfRow(a.x.shape, a.options.granularity));
  return FitsIn(a.x, 0, OutputBits(a), 6 * scales, limits);
}

bool Fits(const QuantizeEmbeddingsArguments& a, const ServerLimits& limits) {
  const size_t ranges = a.options.ranges.has_value() ? a.options.ranges->data.size() : 0;
  return FitsIn(a.x, ranges, 8, 0, limits);
}

absl::StatusOr<Quantized> InPieces(const QuantizeArguments& a, const ServerLimits& limits,
                                   const Sender<QuantizeArguments>& send) {
  if (a.options.report_error) return CannotCut(a.x, limits, kReportIsOfOneMessage);
  Quantized result;
  QUANTD_ASSIGN_OR_RETURN(result.y, WithGivenScale(a, limits, send));
  result.scale = a.scale;
  result.zero_point = a.zero_point;
  result.granularity = a.options.granularity;
  result.original_type = a.x.data_type;
  return result;
}

absl::StatusOr<Tensor> InPieces(const DequantizeArguments& a, const ServerLimits& limits,
                                const Sender<DequantizeArguments>& send) {
  return WithGivenScale(a, limits, send);
}

absl::StatusOr<Quantized> InPieces(const DynamicQuantizeArguments& a, const ServerLimits& limits,
                                   const Sender<DynamicQuantizeArguments>& send) {
  if (a.options.report_error) return CannotCut(a.x, limits, kReportIsOfOneMessage);
  QUANTD_RETURN_IF_ERROR(CheckTensor(a.x, "x"));
  QUANTD_ASSIGN_OR_RETURN(const Rows rows, RowsOf(a.x, a.options.granularity, nullptr));
  if (rows.per_scale == 0) return CannotCut(a.x, limits, "a scale belongs to all of its rows");
  if (a.options.scale_type == v1::DATA_TYPE_FLOAT8E4M3FN) {
    return CannotCut(a.x, limits, "NVFP4's second scale belongs to the whole");
  }
  const int64_t elements = ElementsOf(a.x.shape) / rows.count;
  const int64_t x_bits = elements * BitsOf(a.x.data_type), y_bits = elements * OutputBits(a);
  const int64_t scales_of_row = ScalesOfRow(a.x.shape, a.options.granularity);
  // The zero points of a piece, which have the width of y, are whole bytes, too.
  int64_t unit = WholeBytes(WholeBytes(rows.per_scale, x_bits), y_bits);
  while (unit / rows.per_scale * scales_of_row * OutputBits(a) % 8 != 0) unit *= 2;
  const int64_t answered =
      y_bits + CeilDivide(scales_of_row * (32 + OutputBits(a)), rows.per_scale);
  QUANTD_ASSIGN_OR_RETURN(const Cut cut, CutOf(a.x, rows, unit, x_bits, answered, 0, limits));
  Joined y(cut.pieces()), scale(cut.pieces()), zero_point(cut.pieces());
  QUANTD_RETURN_IF_ERROR(Send<DynamicQuantizeArguments>(
      a, cut, send,
      [&](int64_t begin, int64_t end, v1::DynamicQuantizeRequest* request) {
        ShortenBlocks(end - begin, request);
      },
      [&](size_t index, v1::DynamicQuantizeResponse&& response) {
        y.Set(index, std::move(*response.mutable_y()));
        scale.Set(index, std::move(*response.mutable_y_scale()));
        zero_point.Set(index, std::move(*response.mutable_y_zero_point()));
      }));
  const int64_t scales = CeilDivide(rows.count, rows.per_scale);
  QUANTD_ASSIGN_OR_RETURN(std::optional<Tensor> joined, y.Take("y", rows.count));
  QUANTD_ASSIGN_OR_RETURN(std::optional<Tensor> found, scale.Take("y_scale", scales));
  Quantized result;
  QUANTD_ASSIGN_OR_RETURN(result.zero_point, zero_point.Take("y_zero_point", scales));
  if (!joined.has_value() || !found.has_value()) {
    return absl::InternalError("the server's answers have no y or no y_scale");
  }
  result.y = *std::move(joined);
  result.scale = *std::move(found);
  result.granularity = a.options.granularity;
  result.original_type = a.x.data_type;
  return result;
}

absl::StatusOr<QuantizedEmbeddings> InPieces(const QuantizeEmbeddingsArguments& a,
                                             const ServerLimits& limits,
                                             const Sender<QuantizeEmbeddingsArguments>& send) {
  if (a.options.report_error) return CannotCut(a.x, limits, kReportIsOfOneMessage);
  QUANTD_RETURN_IF_ERROR(CheckTensor(a.x, "x"));
  if (a.x.shape.size() < 2) return CannotCut(a.x, limits, "it is one embedding");
  const Rows rows{a.x.shape[0], 1};
  const int64_t x_bits = RowBits(a.x, rows.count);
  const int64_t y_bits = ElementsOf(a.x.shape) / rows.count * 8;
  const uint64_t ranges = a.options.ranges.has_value() ? a.options.ranges->data.size() : 0;
  QUANTD_ASSIGN_OR_RETURN(const Cut cut,
                          CutOf(a.x, rows, WholeBytes(1, x_bits), x_bits, y_bits, ranges, limits));
  Joined y(cut.pieces());
  QUANTD_RETURN_IF_ERROR(Send<QuantizeEmbeddingsArguments>(
      a, cut, send, [](int64_t, int64_t, v1::QuantizeEmbeddingsRequest*) {},
      [&](size_t index, v1::QuantizeEmbeddingsResponse&& response) {
        y.Set(index, std::move(*response.mutable_y()));
      }));
  QUANTD_ASSIGN_OR_RETURN(std::optional<Tensor> joined, y.Take("y", rows.count));
  if (!joined.has_value()) return absl::InternalError("the server's answers have no y");
  QuantizedEmbeddings result;
  result.y = *std::move(joined);
  return result;
}

}  // namespace quantd::client
