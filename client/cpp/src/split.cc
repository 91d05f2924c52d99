#include "split.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// How x is cut, and how its rows go with those of its scales.
struct Cut {
  int64_t count = 0;      // rows of x
  int64_t per_scale = 0;  // rows of x to a row of the scales; 0: the scales belong to all rows
  int64_t each = 0;       // rows of a piece; the last one may have fewer
  size_t pieces() const { return static_cast<size_t>(CeilDivide(count, each)); }
  int64_t scale_rows() const { return per_scale == 0 ? 0 : CeilDivide(count, per_scale); }
};

absl::Status CannotCut(const Tensor& x, const ServerLimits& limits, absl::string_view why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "x of shape ", Text(x.shape), " has ", x.data.size(), " bytes, the server's messages ",
      limits.message_bytes, " (--max_message_bytes), and it cannot be cut: ", why,
      "; the library quantd::core computes it in this process, without a limit"));
}

// `scale`: null if the server finds the scales.
absl::StatusOr<Cut> RowsOf(const Tensor& x, const Granularity& granularity, const Tensor* scale) {
  const auto rank = static_cast<int64_t>(x.shape.size());
  Cut rows;
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

// `unit`: pieces have a multiple of this many rows. `sent_bits`, `answered_bits`: of each row, with
// its scales. `fixed`: bytes of what every piece has.
absl::StatusOr<Cut> WithPieces(const Tensor& x, Cut rows, int64_t unit, int64_t sent_bits,
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
  rows.each = good * unit;
  return rows;
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

// Makes `whole` of the answers' tensors, one after the other; leaves it empty if no answer has one.
// INTERNAL if they do not go together. `rows`: of the first dimension.
template <typename Response>
absl::Status Join(std::vector<Response>& answers, v1::Tensor* (Response::*tensor)(),
                  const char* name, int64_t rows, v1::Tensor* whole) {
  const v1::Tensor first = *(answers.front().*tensor)();
  if (first.data_type() == v1::DATA_TYPE_UNSPECIFIED) return absl::OkStatus();
  Shape shape(first.shape().begin(), first.shape().end());
  int64_t seen = 0;
  for (Response& answer : answers) {
    v1::Tensor& part = *(answer.*tensor)();
    Shape of_part(part.shape().begin(), part.shape().end());
    const int64_t bytes = CeilDivide(ElementsOf(of_part) * BitsOf(part.data_type()), 8);
    const int64_t count = of_part.empty() ? 0 : std::exchange(of_part[0], shape[0]);
    if (count == 0 || part.data_type() != first.data_type() || of_part != shape ||
        bytes != static_cast<int64_t>(part.raw_data().size())) {
      return absl::InternalError(
          absl::StrCat("the server's answers to pieces have a ", name, " of different kinds"));
    }
    seen += count;
    *whole->mutable_raw_data() += part.raw_data();
    part.Clear();
  }
  if (seen != rows) {
    return absl::InternalError(
        absl::StrCat("the server's ", name, " has ", seen, " rows in all, expected ", rows));
  }
  shape[0] = rows;
  whole->set_data_type(first.data_type());
  whole->mutable_shape()->Add(shape.begin(), shape.end());
  return absl::OkStatus();
}

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

v1::DataType OutputType(v1::DataType given, const std::optional<Tensor>& zero_point) {
  if (given != v1::DATA_TYPE_UNSPECIFIED) return given;
  // With BEFORE_ROUNDING zero points may be INT32, which is never the output type.
  if (zero_point.has_value() && zero_point->data_type != v1::DATA_TYPE_INT32) {
    return zero_point->data_type;
  }
  return v1::DATA_TYPE_UINT8;
}
template <typename Arguments>
int64_t OutputBits(const Arguments& a) {
  if constexpr (std::is_same_v<Arguments, QuantizeArguments>) {
    return BitsOf(OutputType(a.options.output_type, a.zero_point));
  } else if constexpr (std::is_same_v<Arguments, DequantizeArguments>) {
    const v1::DataType given = a.options.output_type;
    return BitsOf(given == v1::DATA_TYPE_UNSPECIFIED ? a.scale.data_type : given);
  } else if constexpr (kFindsScale<Arguments>) {
    return BitsOf(OutputType(a.options.output_type, std::nullopt));
  } else {
    return 8;
  }
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

// How a call is cut whose scales are given.
template <typename Arguments>
absl::StatusOr<Cut> CutOf(const Arguments& a, const ServerLimits& limits) {
  QUANTD_RETURN_IF_ERROR(CheckTensor(a.scale, "scale"));
  if (a.zero_point.has_value()) {
    QUANTD_RETURN_IF_ERROR(CheckTensor(*a.zero_point, "zero_point"));
    const Shape& shape = a.zero_point->shape;
    if (shape != a.scale.shape && (ElementsOf(shape) != 1 || ElementsOf(a.scale.shape) != 1)) {
      return FieldError("zero_point", absl::StrCat("zero_point has shape ", Text(shape),
                                                   ", scale has ", Text(a.scale.shape)));
    }
  }
  QUANTD_ASSIGN_OR_RETURN(const Cut rows, RowsOf(a.x, a.options.granularity, &a.scale));
  const int64_t per = rows.per_scale, wanted = rows.scale_rows();
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
  for (const Tensor* scale : TensorsBeside(a)) {
    if (per == 0) {
      fixed += scale->data.size();
    } else {
      const int64_t bits = RowBits(*scale, wanted);
      while (unit / per * bits % 8 != 0) unit *= 2;
      sent += CeilDivide(bits, per);
    }
  }
  return WithPieces(a.x, rows, unit, sent, y_bits, fixed, limits);
}

absl::StatusOr<Cut> CutOf(const DynamicQuantizeArguments& a, const ServerLimits& limits) {
  QUANTD_ASSIGN_OR_RETURN(const Cut rows, RowsOf(a.x, a.options.granularity, nullptr));
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
  return WithPieces(a.x, rows, unit, x_bits, answered, 0, limits);
}

absl::StatusOr<Cut> CutOf(const QuantizeEmbeddingsArguments& a, const ServerLimits& limits) {
  if (a.x.shape.size() < 2) return CannotCut(a.x, limits, "it is one embedding");
  Cut rows;
  rows.count = a.x.shape[0];
  rows.per_scale = 1;
  const int64_t x_bits = RowBits(a.x, rows.count);
  const int64_t y_bits = ElementsOf(a.x.shape) / rows.count * 8;
  const uint64_t ranges = a.options.ranges.has_value() ? a.options.ranges->data.size() : 0;
  return WithPieces(a.x, rows, WholeBytes(1, x_bits), x_bits, y_bits, ranges, limits);
}

// The request for rows [begin, end).
template <typename Arguments>
typename Arguments::Request PieceOf(const Arguments& a, const Cut& cut, int64_t begin,
                                    int64_t end) {
  typename Arguments::Request request = RequestOf(a.options);
  SetRows(a.x, begin, end, request.mutable_x());
  if constexpr (kGivesScale<Arguments>) {
    const auto set = [&](const Tensor& scale, v1::Tensor* to) {
      if (cut.per_scale == 0) return SetTensor(scale, to);
      SetRows(scale, begin / cut.per_scale, CeilDivide(end, cut.per_scale), to);
    };
    set(a.scale, request.mutable_scale());
    if (a.zero_point.has_value()) set(*a.zero_point, request.mutable_zero_point());
  }
  if constexpr (requires { request.block_size(); }) ShortenBlocks(end - begin, &request);
  return request;
}

}  // namespace

template <typename Arguments>
bool Fits(const Arguments& a, const ServerLimits& limits) {
  const int64_t y_bits = std::max<int64_t>(ElementsOf(a.x.shape), 0) * OutputBits(a);
  uint64_t sent = a.x.data.size() + kEnvelopeBytes;
  for (const Tensor* tensor : TensorsBeside(a)) sent += tensor->data.size();
  uint64_t answered = static_cast<uint64_t>(y_bits / 8) + kEnvelopeBytes;
  if constexpr (kFindsScale<Arguments>) {
    const int64_t rows = a.x.shape.empty() ? 1 : std::max<int64_t>(a.x.shape[0], 1);
    answered += 6 * static_cast<uint64_t>(rows * ScalesOfRow(a.x.shape, a.options.granularity));
  }
  return sent <= limits.message_bytes && answered <= limits.message_bytes &&
         sent + answered <= limits.budget_bytes;
}

template <typename Arguments>
absl::StatusOr<typename Arguments::Result> InPieces(const Arguments& a, const ServerLimits& limits,
                                                    const Sender<Arguments>& send) {
  using Response = typename Arguments::Response;
  if constexpr (requires { a.options.report_error; }) {
    if (a.options.report_error) return CannotCut(a.x, limits, "report_error is of one message");
  }
  QUANTD_RETURN_IF_ERROR(CheckTensor(a.x, "x"));
  QUANTD_ASSIGN_OR_RETURN(const Cut cut, CutOf(a, limits));
  std::vector<Response> answers(cut.pieces());
  QUANTD_RETURN_IF_ERROR(RunPieces(cut.pieces(), [&](size_t index) {
    const int64_t begin = static_cast<int64_t>(index) * cut.each;
    absl::StatusOr<Response> response =
        send(PieceOf(a, cut, begin, std::min(begin + cut.each, cut.count)));
    if (!response.ok()) return OfPiece(response.status(), begin);
    answers[index] = *std::move(response);
    return absl::OkStatus();
  }));
  Response whole;
  QUANTD_RETURN_IF_ERROR(Join(answers, &Response::mutable_y, "y", cut.count, whole.mutable_y()));
  bool complete = whole.y().data_type() != v1::DATA_TYPE_UNSPECIFIED;
  if constexpr (kFindsScale<Arguments>) {
    v1::Tensor zero_point;
    QUANTD_RETURN_IF_ERROR(Join(answers, &Response::mutable_y_scale, "y_scale", cut.scale_rows(),
                                whole.mutable_y_scale()));
    QUANTD_RETURN_IF_ERROR(Join(answers, &Response::mutable_y_zero_point, "y_zero_point",
                                cut.scale_rows(), &zero_point));
    complete = complete && whole.y_scale().data_type() != v1::DATA_TYPE_UNSPECIFIED;
    if (zero_point.data_type() != v1::DATA_TYPE_UNSPECIFIED) {
      *whole.mutable_y_zero_point() = std::move(zero_point);
    }
    if (!complete) return absl::InternalError("the server's answers have no y or no y_scale");
  }
  if (!complete) return absl::InternalError("the server's answers have no y");
  return ResultOf(a, std::move(whole));
}

#define QUANTD_SPLIT(Arguments)                                                              \
  template bool Fits(const Arguments&, const ServerLimits&);                                 \
  template absl::StatusOr<Arguments::Result> InPieces(const Arguments&, const ServerLimits&, \
                                                      const Sender<Arguments>&)
QUANTD_SPLIT(QuantizeArguments);
QUANTD_SPLIT(DequantizeArguments);
QUANTD_SPLIT(DynamicQuantizeArguments);
QUANTD_SPLIT(QuantizeEmbeddingsArguments);
#undef QUANTD_SPLIT

}  // namespace quantd::client
