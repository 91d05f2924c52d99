// Any types, shapes, axes, blocks and bytes as a task for the core: requests without a message.
// Most of them have tensors that fit, which a fuzzer of messages hardly ever finds.
//
// Checked: no crash and no sanitizer's complaint; never more memory than was announced before the
// plan, or by it; the scalar kernels and several threads write the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "counted_memory.h"
#include "fuzzing.h"
#include "quantd/data_type.h"
#include "quantd/executor.h"
#include "quantd/targets.h"
#include "server/memory/buffer.h"
#include "server/operations/memory.h"
#include "server/operations/operation.h"
#include "server/wire/encode.h"
#include "server/wire/request.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

std::string RandomInput(Random& random) {
  std::string input(64 + Below(random, 200), '\0');
  const bool plain = OneIn(random, 2);  // short shapes, few choices that are refused
  for (char& byte : input) byte = static_cast<char>(plain ? Below(random, 240) : random());
  return input;
}

namespace {

// A tensor that claims more gets no bytes, and a plan refuses it.
constexpr uint64_t kMostBytes = 128 << 10;
constexpr uint64_t kMostResponse = 1 << 20;
// The text of an error, and the objects that own what is large.
constexpr uint64_t kFixed = 4096;

class Parameters {
 public:
  explicit Parameters(Reader& in) : in_(in) {}

  wire::Request Take() {
    wire::Request request;
    const int method = in_.Below(4);
    if (in_.Below(4) == 0) request.output_encoding = wire::Encoding::kValues;
    const Shape shape = TakeShape();
    const Granularity granularity = TakeGranularity(shape);
    const Shape scales = ScaleShape(shape, granularity);
    if (method == 0) {
      QuantizeParameters parameters;
      parameters.x = Tensor(Wide(), shape);
      parameters.scale = Tensor(ScaleType(), scales);
      parameters.granularity = granularity;
      parameters.output_type = AnyType(true);
      parameters.saturate = in_.Bit();
      if (in_.Below(3) == 0) parameters.precision = AnyType(true);
      if (in_.Below(3) == 0) parameters.zero_point_order = ZeroPointOrder::kBeforeRounding;
      parameters.report_error = in_.Bit();
      if (in_.Bit()) {
        const bool same = parameters.output_type != DataType::kUnspecified && in_.Below(8) != 0;
        parameters.zero_point = Tensor(same ? parameters.output_type : AnyType(false), scales);
      }
      request.parameters = std::move(parameters);
    } else if (method == 1) {
      DequantizeParameters parameters;
      const DataType type = AnyType(false);
      parameters.x = Tensor(type, shape);
      parameters.scale = Tensor(ScaleType(), scales);
      parameters.granularity = granularity;
      if (in_.Below(3) == 0) parameters.output_type = Wide();
      if (in_.Below(3) == 0) {
        parameters.zero_point = Tensor(in_.Below(8) == 0 ? AnyType(false) : type, scales);
      }
      if (in_.Below(4) == 0) parameters.tensor_scale = Tensor(DataType::kFloat, {});
      request.parameters = std::move(parameters);
    } else if (method == 3) {
      request.parameters = Embeddings(shape);
    } else {
      DynamicQuantizeParameters parameters;
      parameters.x = Tensor(Wide(), shape);
      parameters.granularity = granularity;
      parameters.output_type = AnyType(true);
      parameters.saturate = in_.Bit();
      if (in_.Below(3) == 0) parameters.scale_type = AnyType(true);
      parameters.symmetry = static_cast<Symmetry>(in_.Below(3));
      parameters.non_finite = in_.Bit() ? NonFinite::kReject : NonFinite::kIgnore;
      parameters.report_error = in_.Bit();
      request.parameters = std::move(parameters);
    }
    return request;
  }

 private:
  DataType AnyType(bool or_none) {
    const int choice = in_.Below(static_cast<int>(kDataTypes.size()) + (or_none ? 6 : 0));
    if (choice >= static_cast<int>(kDataTypes.size())) return DataType::kUnspecified;
    return kDataTypes[static_cast<size_t>(choice)].type;
  }
  DataType Wide() {
    constexpr DataType kTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                   DataType::kInt32};
    const int choice = in_.Below(16);
    return choice < 15 ? kTypes[choice % 4] : AnyType(false);
  }
  DataType ScaleType() { return in_.Below(8) == 0 ? AnyType(false) : DataType::kFloat; }

  QuantizeEmbeddingsParameters Embeddings(const Shape& shape) {
    QuantizeEmbeddingsParameters parameters;
    parameters.x = Tensor(Wide(), shape);
    parameters.recipe = static_cast<EmbeddingRecipe>(in_.Below(5));
    int64_t used = shape.empty() ? 0 : shape.back();
    if (in_.Below(3) == 0) parameters.dimensions = in_.Length();
    if (parameters.dimensions > 0) used = parameters.dimensions;
    const bool ranges = parameters.recipe == EmbeddingRecipe::kRanges;
    if (ranges != (in_.Below(32) == 0)) {
      parameters.ranges = Tensor(in_.Below(32) == 0 ? AnyType(false) : DataType::kFloat, {2, used});
    }
    if (in_.Bit()) parameters.output_type = in_.Bit() ? DataType::kInt8 : AnyType(true);
    parameters.normalize = in_.Bit();
    if (parameters.recipe == EmbeddingRecipe::kBits || in_.Below(32) == 0) {
      parameters.bit_order = static_cast<BitOrder>(in_.Below(3));
      parameters.bit_threshold = static_cast<BitThreshold>(in_.Below(3));
      if (in_.Below(4) == 0) parameters.signed_bits = static_cast<SignedBits>(in_.Below(3));
    }
    parameters.non_finite = in_.Bit() ? NonFinite::kReject : NonFinite::kIgnore;
    parameters.report_error = in_.Below(4) == 0;
    return parameters;
  }

  Shape TakeShape() {
    Shape shape;
    for (int rank = in_.Below(5); rank > 0; --rank) shape.push_back(in_.Length());
    if (in_.Below(32) == 0) shape.resize(static_cast<size_t>(in_.Below(12)), 1);
    return shape;
  }
  Granularity TakeGranularity(const Shape& x) {
    Granularity granularity;
    const int kind = in_.Below(5);
    if (kind == 1 || kind == 2) {
      granularity.axis = in_.Below(16) == 0 ? in_.Length() : in_.Below(5) - 2;
      if (!x.empty() && in_.Below(8) != 0) {
        granularity.axis = in_.Below(static_cast<int>(std::min<size_t>(x.size(), 200)));
      }
    }
    if (kind == 2 || in_.Below(32) == 0) granularity.block_size = in_.Length();
    if (kind == 3) {
      for (size_t i = 0; i < x.size(); ++i) granularity.block_shape.push_back(in_.Length() - 1);
    }
    if (in_.Below(32) == 0) granularity.block_shape.push_back(in_.Length());
    return granularity;
  }
  // Mostly one that fits.
  Shape ScaleShape(const Shape& x, const Granularity& granularity) {
    if (in_.Below(16) == 0) return TakeShape();
    const auto blocks = [](int64_t length, int64_t block) {
      return block < 1 || length < 1 ? int64_t{1} : length / block + (length % block != 0 ? 1 : 0);
    };
    Shape shape = x;
    if (granularity.axis.has_value()) {
      const int64_t axis = *granularity.axis;
      if (axis < 0 || axis >= static_cast<int64_t>(x.size())) return {};
      int64_t& length = shape[static_cast<size_t>(axis)];
      if (granularity.block_size == 0) return {length};
      length = blocks(length, granularity.block_size);
    } else if (!granularity.block_shape.empty()) {
      for (size_t i = 0; i < std::min(x.size(), granularity.block_shape.size()); ++i) {
        shape[i] = blocks(x[i], granularity.block_shape[i]);
      }
    } else {
      return in_.Bit() ? Shape{} : Shape{1};
    }
    return shape;
  }

  TensorView Tensor(DataType type, const Shape& shape) {
    TensorView view;
    view.data_type = type;
    view.shape = shape;
    const absl::StatusOr<int64_t> elements = ElementCount(shape, "shape");
    if (!elements.ok() || ByteSize(type, *elements) > kMostBytes) return view;
    uint64_t bytes = ByteSize(type, *elements);
    if (in_.Below(32) == 0) bytes += static_cast<uint64_t>(in_.Below(9)) - 4;  // a few too many
    if (bytes > kMostBytes) return view;
    const int fill = in_.Below(4);  // 0x38 is a valid number in every type
    std::vector<uint8_t> all(bytes, fill == 0 ? 0 : 0x38);
    if (fill > 1) {
      uint64_t word = in_.Word();
      for (uint8_t& byte : all) {
        byte = static_cast<uint8_t>(word >> 56);
        if (fill == 2) word = word * 6364136223846793005 + 1442695040888963407;
      }
    }
    // At any address; the allocation ends behind the last byte.
    const size_t skipped = in_.Below(4) == 0 ? static_cast<size_t>(in_.Below(16)) : 0;
    all.insert(all.begin(), skipped, 0);
    all.shrink_to_fit();
    kept_.push_back(std::move(all));
    view.bytes = absl::MakeConstSpan(kept_.back()).subspan(skipped);
    return view;
  }

  Reader& in_;
  std::vector<std::vector<uint8_t>> kept_;  // the elements do not move
};

memory::Pool& Pool() {
  static auto* const pool = new memory::Pool;
  return *pool;
}

bool Never() { return false; }

struct Answered {
  absl::Status status;
  DataType type = DataType::kUnspecified;  // of y
  std::string y, others;
  uint64_t pieces = 0;  // of the response, outside of operator new
};

Answered Execute(const operations::Operation& operation, const Executor& executor, bool keep) {
  Answered answered;
  wire::Response response(operation.response_layout(), Pool());
  Require(response.has_memory(), "there is memory for a small answer");
  const wire::ResponseContents& contents = response.contents();
  answered.pieces = contents.y.size() + contents.y_scale.size() + contents.y_zero_point.size();
  answered.status = operation.Execute(executor, Never, response.contents());
  if (keep && answered.status.ok()) {
    answered.type = operation.response_layout().y.data_type;
    answered.y = wire::ToString(contents.y);
    for (const auto& bytes : {contents.y_scale, contents.y_zero_point, contents.y_tensor_scale}) {
      absl::StrAppend(&answered.others, wire::ToString(bytes));
    }
  }
  const bool raw = operation.response_layout().encoding == wire::Encoding::kRaw;
  if (!answered.status.ok()) return answered;
  const memory::Piece piece = std::move(response).Finish();
  Require(piece.size <= wire::MaxEncodedBytes(operation.response_layout()),
          "the answer is as long as the plan said at most");
  answered.pieces = piece.size + (raw ? 0 : answered.pieces);
  return answered;
}

// `bits`: those of a float of 16 or 32 bits.
bool IsNan(DataType type, uint32_t bits) {
  if (type == DataType::kFloat) return (bits & 0x7fffffff) > 0x7f800000;
  if (type == DataType::kFloat16) return (bits & 0x7fff) > 0x7c00;
  return type == DataType::kBfloat16 && (bits & 0x7fff) > 0x7f80;
}

// Bit for bit; but a NaN may be any NaN.
bool Same(const Answered& a, const Answered& b) {
  if (a.others != b.others || a.y.size() != b.y.size()) return false;
  if (a.y == b.y || a.type == DataType::kUnspecified) return a.y == b.y;
  const size_t width = static_cast<size_t>(Info(a.type).bits) / 8;
  if (width < 2) return false;
  for (size_t at = 0; at < a.y.size(); at += width) {
    uint32_t one = 0, other = 0;
    std::memcpy(&one, a.y.data() + at, width);
    std::memcpy(&other, b.y.data() + at, width);
    if (one != other && !(IsNan(a.type, one) && IsNan(a.type, other))) return false;
  }
  return true;
}

// True if there was a response.
bool Serve(const wire::Request& request) {
  static const Executor* const alone = new Executor(1);
  static const Executor* const together = new Executor(2);
  const uint64_t bound = operations::MemoryBound(request);
  bool small = false;
  uint64_t pieces = 0;
  const wire::MemoryUsed used = wire::Measure([&] {
    const absl::StatusOr<operations::Operation> operation = operations::Plan(request);
    if (!operation.ok()) {
      const absl::StatusCode code = operation.status().code();
      Require(code == absl::StatusCode::kInvalidArgument ||
                  code == absl::StatusCode::kUnimplemented ||
                  code == absl::StatusCode::kResourceExhausted,
              "a bad request is the client's fault");
      return;
    }
    Require(operation->memory_bytes() <= bound, "the plan takes no more than was told before it");
    small = operation->memory_bytes() <= kMostResponse;
    if (small) pieces = Execute(*operation, *alone, false).pieces;
  });
  Require(used.peak_bytes + pieces <= bound + kFixed, "no more is taken than was told");
  if (!small) return false;
  const Answered first = Execute(*operations::Plan(request), *together, true);
  Require(SelectTarget("scalar").ok(), "scalar loops are everywhere");
  const Answered second = Execute(*operations::Plan(request), *alone, true);
  Require(SelectTarget("").ok(), "the best ones, too");
  Require(first.status == second.status, "all kernels find the same wrong");
  Require(Same(first, second), "all kernels write the same bytes");
  return first.status.ok();
}

}  // namespace
}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd::fuzz;
  Reader in(data, size);
  Parameters parameters(in);
  const quantd::wire::Request request = parameters.Take();
  static const bool warm = [&request] { return Serve(request); }();  // what it makes for all
  (void)warm;
  if (Serve(request)) ++useful_inputs;
  return 0;
}
