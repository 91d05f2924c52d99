#include "parameters.h"

#include <algorithm>
#include <utility>

#include "quantd/data_type.h"
#include "quantd/parameters.h"
#include "quantd/shape.h"

namespace quantd::fuzz {
namespace {

// A tensor that claims more gets no bytes, and a plan refuses it.
constexpr uint64_t kMostBytes = 128 << 10;

// Reads an input from its start; after its end there are zeros.
class Reader {
 public:
  explicit Reader(wire::BytesView bytes) : bytes_(bytes) {}

  uint8_t Byte() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }
  // A number in [0, end). REQUIRES: 0 < end <= 256.
  int Below(int end) { return Byte() % end; }
  bool Bit() { return (Byte() & 1) != 0; }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
    return word;
  }
  // Mostly small, sometimes any number.
  int64_t Length() {
    const uint8_t byte = Byte();
    if (byte < 250) return byte % 40;
    return byte == 250 ? -1 : static_cast<int64_t>(Word() >> Below(64));
  }

 private:
  const wire::BytesView bytes_;
  size_t at_ = 0;
};

class Maker {
 public:
  Maker(wire::BytesView bytes, std::deque<std::vector<uint8_t>>& kept) : in_(bytes), kept_(kept) {}

  wire::Request Make() {
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

  Reader in_;
  std::deque<std::vector<uint8_t>>& kept_;
};

}  // namespace

std::string ParameterBytes(wire::Random& random) {
  std::string bytes(64 + wire::Below(random, 200), '\0');
  const bool plain = wire::OneIn(random, 2);  // short shapes, few choices that are refused
  for (char& byte : bytes) {
    byte = static_cast<char>(plain ? wire::Below(random, 240) : random());
  }
  return bytes;
}

TensorView ViewOf(DataType type, const Shape& shape) {
  static const auto* const zeros = new std::vector<uint8_t>(1 << 20);
  TensorView view{type, shape, {}};
  const absl::StatusOr<int64_t> elements = ElementCount(shape, "shape");
  if (!elements.ok() || ByteSize(type, *elements) > zeros->size()) return view;
  view.bytes = absl::MakeConstSpan(zeros->data(), ByteSize(type, *elements));
  return view;
}

Parameters::Parameters(wire::BytesView bytes) { request_ = Maker(bytes, kept_).Make(); }

}  // namespace quantd::fuzz
