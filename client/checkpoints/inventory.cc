#include "checkpoints/inventory.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/strings/substitute.h"
#include "checkpoints/errors.h"
#include "checkpoints/families.h"
#include "checkpoints/selection.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

constexpr uint64_t kMostRead = 1 << 16;

// Names that only quantized models have.
constexpr char kPartNames[] =
    R"((weight|proj|bias|qscale)_scales?(_inv|_2)?$|_scale_inv$|weight_global_scale$|weight_sf)"
    R"(|(^|[._])(zero_points?|scale_weight|qscale_weight|qweight|qzeros|scales|g_idx|SCB|SCBt)$)"
    R"(|(^|[._])(absmax|quant_map|bitmask|compressed|row_offsets|pre_quant_scale|weight_shape)$)"
    R"(|weight_format$|quant_state|(^|[._])(packed|blocks)$|weight_(bitmask|compressed|packed))"
    R"(|weight[._]_?\w*(scale|zero|zeros|shift|offset|amax)$|weight_quantizer\.|(^|\.)zeros$)";
constexpr char kActivationNames[] =
    R"((^|\.|proj_|weight_)(input|output|act|activation|[kvq]|kv|(k|v|kv)_cache|prob|prob_output)_)"
    R"((scale|scale_ub|zero_point|global_scale|amax)$|(input|output|bmm)_quantizer\._amax$)"
    R"(|(^|\.)(qscale_act|scale_input|scale_output|scaled_fp8|input_scale_inv)$)";
// Integers that are no codes, in models that are not quantized.
constexpr char kIndexNames[] =
    R"((^|[._])(ids|id|idx|index|indices|mask|masks|tracked|steps?|length|lengths|bias|tid2eid)"
    R"(|positions?|version|offsets|buckets|counts?)$)";

int64_t DivideUp(int64_t n, int64_t by) { return n / by + (n % by != 0 ? 1 : 0); }

DataType ScaleType(absl::string_view dtype) {
  if (dtype == "F8_E4M3") return DataType::kFloat8E4M3Fn;
  if (dtype == "F8_E8M0" || dtype == "U8") return DataType::kFloat8E8M0;
  return FloatType(dtype);
}

// The shape of a matrix, or of equal matrices one after another.
struct Matrices {
  int64_t rows = 0, columns = 0;  // of one
  int64_t count = 1;
};
std::optional<Matrices> MatricesOf(const Shape& shape) {
  if (shape.size() != 2 && shape.size() != 3) return std::nullopt;
  Matrices result{shape[shape.size() - 2], shape.back(), shape.size() == 3 ? shape[0] : 1};
  const bool good = result.rows > 0 && result.columns > 0 && result.count > 0;
  return good ? std::optional(result) : std::nullopt;
}

// `other`: why the name is not that of a linear layer's weight.
void SetFloats(const Tensor& tensor, std::string other, size_t most_dimensions,
               InventoryEntry* entry) {
  entry->is_named_weight = other.empty();
  const size_t rank = Dimensions(tensor);
  if (other.empty() && (rank < 2 || rank > most_dimensions)) {
    other = absl::StrCat(rank, rank == 1 ? " dimension" : " dimensions");
  }
  entry->role = other.empty() ? TensorRole::kLinear : TensorRole::kFloats;
  entry->reason = std::move(other);
}

InventoryEntry Unknown(std::string reason) {
  return {TensorRole::kUnknown, -1, false, std::move(reason)};
}

// Finds quantized weights, one form of storage after the other. A function returns the weight, or a
// status whose text says why the codes cannot be explained.
class WeightFinder {
 public:
  WeightFinder(const Model& model, Inventory* inventory)
      : model_(model), inventory_(*inventory), quantization_(inventory->quantization) {}

  absl::Status Run() {
    const std::vector<Place> all = model_.All();
    for (const Place place : all) {
      QUANTD_RETURN_IF_ERROR(Find(place));
    }
    const Family family(model_);
    for (const Place place : all) Classify(place, family);
    return absl::OkStatus();
  }

 private:
  using Weight = absl::StatusOr<QuantizedWeight>;

  static absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }
  template <typename... Values>
  static absl::Status Bad(absl::string_view what, const Values&... values) {
    return Bad(absl::Substitute(what, values...));
  }

  InventoryEntry& Entry(Place place) { return inventory_.entries[place.shard][place.tensor]; }

  std::optional<Place> PlaceOf(absl::string_view name) const {
    const auto at = model_.places.find(name);
    return at == model_.places.end() ? std::nullopt : std::optional(at->second);
  }

  // Enters the weight whose codes are at `place`, if they are any.
  absl::Status Find(Place place) {
    const Tensor& codes = model_.tensor(place);
    absl::string_view base = codes.name;
    std::vector<Place> scales;
    Weight weight = Bad("");
    if (absl::ConsumeSuffix(&base, "_packed")) {
      weight = codes.dtype == "I32" ? PackedIntegers(base, place) : PackedFloat4(base, place);
    } else if (codes.dtype == "U8" && absl::ConsumeSuffix(&base, "_blocks")) {
      weight = Blocks(base, place);
    } else if (PlaceOf(absl::StrCat(codes.name, ".absmax")).has_value()) {
      weight = BitsAndBytes4(place);
    } else if (IsOneByteCode(codes.dtype) && FindScales(codes.name, &scales)) {
      if (scales.size() > 1) {
        weight = Bad("it has two scales, $0 and $1", model_.tensor(scales[0]).name,
                     model_.tensor(scales[1]).name);
      } else {
        weight = OneByteCodes(place, scales[0]);
      }
    } else {
      return absl::OkStatus();
    }
    if (!weight.ok()) {
      if (IsFileError(weight.status())) return weight.status();
      Entry(place) = Unknown(std::string(weight.status().message()));
      return absl::OkStatus();
    }
    std::vector<Place> parts = weight->others;
    for (const std::optional<Place>& part : weight->parts) {
      if (part.has_value()) parts.push_back(*part);
    }
    for (const Place& part : parts) {
      if (Entry(part).weight < 0) continue;
      const std::string& owner = inventory_.weights[static_cast<size_t>(Entry(part).weight)].name;
      Entry(place) =
          Unknown(absl::StrCat("its part ", model_.tensor(part).name, " is also one of ", owner));
      return absl::OkStatus();
    }
    const auto index = static_cast<int32_t>(inventory_.weights.size());
    for (const Place& part : parts) {
      Entry(part) = {part == place ? TensorRole::kCodes : TensorRole::kPart, index, false, ""};
    }
    weight->main = place;
    inventory_.weights.push_back(*std::move(weight));
    return absl::OkStatus();
  }

  static bool IsOneByteCode(absl::string_view dtype) {
    return dtype == "F8_E4M3" || dtype == "F8_E5M2" || dtype == "I8" || dtype == "U8";
  }

  // The scales under every name that packages give them; false: there is none.
  bool FindScales(absl::string_view weight, std::vector<Place>* scales) const {
    std::vector<std::string> names = {absl::StrCat(weight, "_scale_inv"),
                                      absl::StrCat(weight, "_scale")};
    absl::string_view module = weight;
    if (module == "weight" || absl::ConsumeSuffix(&module, ".weight")) {
      const std::string parent = module == "weight" ? "" : absl::StrCat(module, ".");
      for (const char* name : {"scale", "scale_weight", "qscale_weight", "SCB"}) {
        names.push_back(absl::StrCat(parent, name));
      }
    } else {
      names.push_back(absl::StrCat(weight, ".SCB"));
    }
    for (const std::string& name : names) {
      if (const auto place = PlaceOf(name); place.has_value()) scales->push_back(*place);
    }
    return !scales->empty();
  }

  // Reads a small tensor.
  absl::StatusOr<std::string> Contents(Place place) const {
    const Tensor& tensor = model_.tensor(place);
    if (tensor.bytes > kMostRead) {
      return Bad("$0 has $1 bytes, $2 are the most", tensor.name, tensor.bytes, kMostRead);
    }
    QUANTD_ASSIGN_OR_RETURN(const auto file, OpenFile::Open(model_.shards[place.shard].file));
    std::string bytes(tensor.bytes, '\0');
    QUANTD_RETURN_IF_ERROR(
        file->Read(tensor.offset, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
    return bytes;
  }

  absl::StatusOr<float> Number(Place place) const {
    const Tensor& tensor = model_.tensor(place);
    if (tensor.dtype != "F32" || tensor.bytes != sizeof(float)) {
      return Bad("$0 is $1 $2, not one F32", tensor.name, tensor.dtype, ShapeString(tensor.shape));
    }
    QUANTD_ASSIGN_OR_RETURN(const std::string bytes, Contents(place));
    float value;
    std::memcpy(&value, bytes.data(), sizeof(value));
    if (std::isfinite(value)) return value;
    return Bad("$0 is NaN or infinite", tensor.name);
  }

  // Which elements share a scale, for codes with one scale for each of `columns_of` at least.
  absl::StatusOr<GridOfScales> GridFor(const Matrices& weight, const Tensor& scale,
                                       const std::vector<GridOfScales>& allowed) const {
    const auto elements = ElementCount(scale.shape, "shape");
    if (elements.ok() && *elements == 1 && scale.shape.size() <= 2) {
      return GridOfScales{weight.rows * weight.count, weight.columns};
    }
    const std::optional<Matrices> scales = MatricesOf(scale.shape);
    if (scales.has_value() && scales->count == weight.count) {
      for (const GridOfScales& grid : allowed) {
        const int64_t rows = grid.rows == 0 ? weight.rows : grid.rows;
        const int64_t columns = grid.columns == 0 ? weight.columns : grid.columns;
        if (scales->rows == DivideUp(weight.rows, rows) &&
            scales->columns == DivideUp(weight.columns, columns) &&
            (weight.count == 1 || weight.rows % rows == 0)) {
          return GridOfScales{rows, columns};
        }
      }
    }
    std::string blocks;
    for (const GridOfScales& grid : allowed) {
      absl::StrAppend(&blocks, blocks.empty() ? "" : ", ",
                      grid.rows == 0 ? "all" : std::to_string(grid.rows), " x ",
                      grid.columns == 0 ? "all" : std::to_string(grid.columns));
    }
    return Bad(
        "the shape of its scale $0 is $1, the weight's $2is [$3, $4]: one scale or blocks of $5 "
        "would fit",
        scale.name, ShapeString(scale.shape), weight.count > 1 ? "matrices' " : "", weight.rows,
        weight.columns, blocks);
  }

  // The grids of the config, or those that occur where no config says which.
  std::vector<GridOfScales> Allowed(const Matrices& weight, const Tensor& scale, bool inverse,
                                    bool tiles) const {
    std::vector<GridOfScales> allowed = quantization_.grids;
    if (!allowed.empty()) {
      if (weight.count > 1) allowed.push_back({0, 0});
      return allowed;
    }
    if (tiles) allowed.push_back({128, 128});
    allowed.push_back({0, 0});
    if (!inverse || !quantization_.method.empty()) allowed.push_back({1, 0});
    if (ScaleType(scale.dtype) == DataType::kFloat8E8M0) allowed.push_back({1, 32});
    const bool groups = !inverse && !scale.shape.empty() && scale.shape.back() > 1;
    if (groups && weight.columns % scale.shape.back() == 0 && !tiles) {
      allowed.push_back({1, weight.columns / scale.shape.back()});
    }
    return allowed;
  }

  // For people: the layout's name if there is one, and the grid.
  static std::string FormText(absl::string_view codes, const Tensor& scale, const Grid& grid,
                              bool inverse = false) {
    std::string layout;
    if (inverse) {
      layout = codes == "F8_E4M3" ? "fp8-tiles: " : "";
    } else if (codes == "INT4") {
      layout = absl::StrCat("compressed-tensors:int4-g", grid.block_columns, ": ");
    } else if (codes == "I8" || codes == "F8_E4M3") {
      const bool row = grid.block_rows == 1 && grid.block_columns == grid.columns;
      const bool all = grid.block_rows == grid.rows && grid.block_columns == grid.columns;
      layout = absl::StrCat("compressed-tensors:", codes == "I8" ? "int8" : "fp8",
                            row   ? ""
                            : all ? "-tensor"
                                  : "-block",
                            ": ");
    } else if (codes == "MXFP4") {
      layout = "compressed-tensors:mxfp4: ";
    }
    return absl::StrCat(layout, codes, ", scales ", scale.dtype, " for ", grid.block_rows, " x ",
                        grid.block_columns);
  }

  static QuantizedWeight ByGrid(absl::string_view name, Shape shape, const Grid& grid, Place codes,
                                Place scales) {
    QuantizedWeight weight;
    weight.name = std::string(name);
    weight.shape = std::move(shape);
    weight.grid = grid;
    weight.parts = {codes, scales, std::nullopt};
    return weight;
  }

  static Grid GridOf(GridCodes codes, const Matrices& weight, const GridOfScales& blocks,
                     const Tensor& scale) {
    Grid grid;
    grid.codes = codes;
    grid.rows = weight.rows * weight.count;
    grid.columns = weight.columns;
    grid.block_rows = blocks.rows;
    grid.block_columns = blocks.columns;
    grid.scale_type = ScaleType(scale.dtype);
    return grid;
  }

  // Adds the zero points, which lie beside codes of integers.
  absl::Status AddZeroPoints(absl::string_view weight, const Matrices& shape, int64_t per_word,
                             QuantizedWeight* result) const {
    const auto place = PlaceOf(absl::StrCat(weight, "_zero_point"));
    if (!place.has_value()) return absl::OkStatus();
    const Tensor& points = model_.tensor(*place);
    const Tensor& scale = model_.tensor(*result->parts[1]);
    Shape packed = scale.shape;
    if (packed.size() == 2) packed[0] = DivideUp(shape.rows, per_word);
    const bool in_words = per_word > 1 && points.dtype == "I32" && points.shape == packed &&
                          result->grid->block_rows == 1;
    if (!in_words && (points.dtype != "I8" || points.shape != scale.shape)) {
      return Bad("its zero points $0 are $1 $2, its scale has $3", points.name, points.dtype,
                 ShapeString(points.shape), ShapeString(scale.shape));
    }
    result->grid->zero_point_type = in_words ? DataType::kInt32 : DataType::kInt8;
    result->parts[2] = *place;
    return absl::OkStatus();
  }

  // Codes of one byte each, or two FLOAT4 in a byte, with a scale beside them.
  Weight OneByteCodes(Place place, Place scale_place) {
    const Tensor& codes = model_.tensor(place);
    const Tensor& scale = model_.tensor(scale_place);
    if (absl::EndsWith(scale.name, "SCB")) return BitsAndBytes8(place);
    const DataType scale_type = ScaleType(scale.dtype);
    const std::optional<Matrices> shape = MatricesOf(codes.shape);
    if (scale_type == DataType::kUnspecified) {
      return Bad("its scale $0 is $1", scale.name, scale.dtype);
    }
    if (!shape.has_value()) {
      return Bad("codes of shape $0 cannot be decoded", ShapeString(codes.shape));
    }
    const bool inverse = scale.name != absl::StrCat(codes.name, "_scale");
    const bool float8 = codes.dtype == "F8_E4M3" || codes.dtype == "F8_E5M2";
    // Beside a scale for the inverse, I8 means FLOAT4, as in transformers.
    const bool two_in_byte = scale_type == DataType::kFloat8E8M0 ||
                             scale_type == DataType::kFloat8E4M3Fn ||
                             (codes.dtype == "I8" && inverse);
    if (!float8 && two_in_byte) return Float4(codes.name, place, scale_place);
    if (codes.dtype == "U8") {
      return Bad("codes of U8 with the scale $0 cannot be decoded", scale.name);
    }
    if (scale_type == DataType::kFloat8E4M3Fn) {
      return Bad("its scale $0 is $1", scale.name, scale.dtype);
    }
    const auto blocks = GridFor(*shape, scale, Allowed(*shape, scale, inverse, float8));
    if (!blocks.ok()) return blocks.status();
    Grid grid = GridOf(codes.dtype == "I8"        ? GridCodes::kInt8
                       : codes.dtype == "F8_E4M3" ? GridCodes::kFloat8E4M3Fn
                                                  : GridCodes::kFloat8E5M2,
                       *shape, *blocks, scale);
    // As compressed-tensors computes; a scale for the inverse is FLOAT's.
    const bool through = !inverse && FloatType(scale.dtype) != DataType::kUnspecified;
    if (through) grid.through = FloatType(scale.dtype);
    QuantizedWeight weight = ByGrid(codes.name, codes.shape, grid, place, scale_place);
    weight.form = FormText(codes.dtype, scale, grid, inverse);
    if (codes.dtype == "I8") {
      QUANTD_RETURN_IF_ERROR(AddZeroPoints(codes.name, *shape, 1, &weight));
    }
    return weight;
  }

  // Two FLOAT4 in a byte: NVFP4 as ModelOpt stores it, or MXFP4.
  Weight Float4(absl::string_view name, Place place, Place scale_place) {
    const Tensor& codes = model_.tensor(place);
    const Tensor& scale = model_.tensor(scale_place);
    std::optional<Matrices> shape = MatricesOf(codes.shape);
    if (!shape.has_value() || shape->columns > INT64_MAX / 2) {
      return Bad("codes of shape $0 cannot be decoded", ShapeString(codes.shape));
    }
    shape->columns *= 2;
    Shape decoded = codes.shape;
    decoded.back() = shape->columns;
    const bool nvfp4 = ScaleType(scale.dtype) == DataType::kFloat8E4M3Fn;
    const int64_t group = nvfp4 ? 16 : 32;
    Shape scales = decoded;
    scales.back() = shape->columns / group;
    if (shape->columns % group != 0 || scale.shape != scales) {
      return Bad("the shape of its scale $0 is $1, $2 in groups of $3 needs $4", scale.name,
                 ShapeString(scale.shape), ShapeString(decoded), group, ShapeString(scales));
    }
    Grid grid = GridOf(GridCodes::kFloat4E2M1, *shape, {1, group}, scale);
    std::optional<Place> second;
    if (nvfp4) {
      second = PlaceOf(absl::StrCat(name, "_scale_2"));
      if (!second.has_value()) return Bad("there is no $0_scale_2", name);
      QUANTD_ASSIGN_OR_RETURN(grid.factor, Number(*second));
    }
    QuantizedWeight weight = ByGrid(name, decoded, grid, place, scale_place);
    if (second.has_value()) weight.others.push_back(*second);
    weight.form = FormText(nvfp4 ? "NVFP4" : "MXFP4", scale, grid);
    return weight;
  }

  // compressed-tensors' NVFP4 and MXFP4.
  Weight PackedFloat4(absl::string_view name, Place place) {
    const Tensor& codes = model_.tensor(place);
    const auto scale_place = PlaceOf(absl::StrCat(name, "_scale"));
    if (codes.dtype != "U8") {
      return Bad("codes in $0 cannot be decoded", codes.dtype);
    }
    if (!scale_place.has_value()) return Bad("it has no scale beside it");
    const Tensor& scale = model_.tensor(*scale_place);
    if (ScaleType(scale.dtype) == DataType::kFloat8E8M0) return Float4(name, place, *scale_place);
    if (scale.dtype != "F8_E4M3") return Bad("its scale is $0", scale.dtype);
    if (codes.shape.size() != 2 || codes.shape[1] > INT64_MAX / 2) {
      return Bad("codes of shape $0 cannot be decoded", ShapeString(codes.shape));
    }
    Weight weight =
        ByLayout(name, {Layout::kNvfp4, DataType::kBfloat16, {codes.shape[0], 2 * codes.shape[1]}});
    if (!weight.ok()) return weight;
    QUANTD_RETURN_IF_ERROR(Number(*weight->parts[2]).status());
    return weight;
  }

  // compressed-tensors' integers of 4 or 8 bits in words.
  Weight PackedIntegers(absl::string_view name, Place place) {
    const Tensor& codes = model_.tensor(place);
    const auto scale_place = PlaceOf(absl::StrCat(name, "_scale"));
    const auto shape_place = PlaceOf(absl::StrCat(name, "_shape"));
    if (!scale_place.has_value()) return Bad("it has no scale beside it");
    if (!shape_place.has_value()) return Bad("there is no $0_shape", name);
    if (PlaceOf(absl::StrCat(name, "_g_idx")).has_value()) {
      return Bad("groups in the order of $0_g_idx cannot be decoded", name);
    }
    const Tensor& scale = model_.tensor(*scale_place);
    const Tensor& stored = model_.tensor(*shape_place);
    if (stored.dtype != "I64" || stored.shape != Shape{2}) {
      return Bad("$0 is $1 $2, not I64 [2]", stored.name, stored.dtype, ShapeString(stored.shape));
    }
    QUANTD_ASSIGN_OR_RETURN(const std::string bytes, Contents(*shape_place));
    Shape shape(2);
    std::memcpy(shape.data(), bytes.data(), bytes.size());
    const std::optional<Matrices> matrix = MatricesOf(shape);
    const DataType type = FloatType(scale.dtype);
    if (!matrix.has_value() || type == DataType::kUnspecified) {
      return Bad("its shape is $0, its scale is $1", ShapeString(shape), scale.dtype);
    }
    if (!PlanWeight({Layout::kGgufF32, type, shape}).ok()) return Bad("its shape is too large");
    int64_t per_word = 0;
    for (const int64_t codes_of : {8, 4}) {
      const bool fits = codes.shape == Shape{shape[0], DivideUp(shape[1], codes_of)};
      if (fits && per_word == 0 &&
          (quantization_.bits == 0 || quantization_.bits == 32 / codes_of)) {
        per_word = codes_of;
      }
    }
    if (per_word == 0) {
      return Bad("its words have the shape $0, codes of $1 bits for $2 do not",
                 ShapeString(codes.shape),
                 quantization_.bits == 0 ? "4 or 8" : std::to_string(quantization_.bits),
                 ShapeString(shape));
    }
    const auto blocks = GridFor(*matrix, scale, Allowed(*matrix, scale, false, false));
    if (!blocks.ok()) return blocks.status();
    Grid grid = GridOf(per_word == 8 ? GridCodes::kPackedInt4 : GridCodes::kPackedInt8, *matrix,
                       *blocks, scale);
    grid.through = type;
    QuantizedWeight weight = ByGrid(name, shape, grid, place, *scale_place);
    weight.others.push_back(*shape_place);
    weight.form = FormText(per_word == 8 ? "INT4" : "INT8 in words", scale, grid);
    QUANTD_RETURN_IF_ERROR(AddZeroPoints(name, *matrix, per_word, &weight));
    return weight;
  }

  // gpt-oss: [experts, rows, groups, 16 bytes], of which the model's layers use the transposed.
  Weight Blocks(absl::string_view name, Place place) {
    const Tensor& codes = model_.tensor(place);
    const auto scale_place = PlaceOf(absl::StrCat(name, "_scales"));
    if (!scale_place.has_value()) return Bad("it has no scales beside it");
    const Tensor& scale = model_.tensor(*scale_place);
    const Shape& shape = codes.shape;
    if (shape.size() != 4 || shape[3] != 16 || shape[2] > INT64_MAX / 32) {
      return Bad("its shape is $0, not [n, n, n, 16]", ShapeString(shape));
    }
    if (scale.dtype != "U8" || scale.shape != Shape{shape[0], shape[1], shape[2]}) {
      return Bad("its scales are $0 $1", scale.dtype, ShapeString(scale.shape));
    }
    const std::optional<Matrices> matrices = MatricesOf({shape[0], shape[1], shape[2] * 32});
    if (!matrices.has_value()) return Bad("it is empty");
    Grid grid = GridOf(GridCodes::kFloat4E2M1, *matrices, {1, 32}, scale);
    QuantizedWeight weight =
        ByGrid(name, {shape[0], shape[2] * 32, shape[1]}, grid, place, *scale_place);
    weight.transposed = true;
    weight.form = "MXFP4, scales U8 for 1 x 32, transposed";
    return weight;
  }

  Weight BitsAndBytes8(Place place) {
    const Tensor& codes = model_.tensor(place);
    if (codes.dtype != "I8") return Bad("codes in $0 have an SCB", codes.dtype);
    return ByLayout(codes.name, {Layout::kBnbInt8, DataType::kFloat16, codes.shape});
  }

  // bitsandbytes' NF4 and FP4: a text describes everything.
  Weight BitsAndBytes4(Place place) {
    const Tensor& codes = model_.tensor(place);
    for (const char* type : {"nf4", "fp4"}) {
      const std::string name = absl::StrCat(codes.name, ".quant_state.bitsandbytes__", type);
      const auto at = PlaceOf(name);
      if (!at.has_value()) continue;
      QUANTD_ASSIGN_OR_RETURN(const std::string text, Contents(*at));
      const absl::StatusOr<Json> state = ParseJson(text, name);
      if (!state.ok()) return Bad(state.status().message());
      WeightRequest request;
      WeightFacts facts;
      QUANTD_RETURN_IF_ERROR(ReadState(*state, type, &request, &facts));
      return ByLayout(codes.name, request, facts);
    }
    return Bad("it has no quant_state beside it");
  }

  static absl::Status ReadState(const Json& state, absl::string_view type, WeightRequest* request,
                                WeightFacts* facts) {
    const auto is = [&state](const char* key, const Json& value) {
      const auto at = state.find(key);
      return at != state.end() && *at == value;
    };
    const bool nested = state.contains("nested_blocksize");
    if (!is("quant_type", type) || !is("blocksize", 64)) {
      return Bad("blocks of 64 of $0 can be decoded, it is: $1", type,
                 state.dump(-1, ' ', true, Json::error_handler_t::replace));
    }
    request->layout = type == "nf4" ? (nested ? Layout::kBnbNf4Double : Layout::kBnbNf4)
                                    : (nested ? Layout::kBnbFp4Double : Layout::kBnbFp4);
    for (const auto& [dtype, data_type] : {std::pair("float32", DataType::kFloat),
                                           {"float16", DataType::kFloat16},
                                           {"bfloat16", DataType::kBfloat16}}) {
      if (is("dtype", dtype)) request->type = data_type;
    }
    if (request->type == DataType::kUnspecified)
      return Bad("its quant_state has no dtype of floats");
    const auto shape = state.find("shape");
    bool good = shape != state.end() && shape->is_array() && shape->size() <= kMaxRank;
    for (size_t i = 0; good && i < shape->size(); ++i) {
      good = (*shape)[i].is_number_integer();
      if (good) request->shape.push_back((*shape)[i].get<int64_t>());
    }
    if (!good) return Bad("its quant_state has no shape");
    if (!nested) return absl::OkStatus();
    const auto offset = state.find("nested_offset");
    if (!is("nested_blocksize", 256) || !is("nested_dtype", "float32") || offset == state.end() ||
        !offset->is_number()) {
      return Bad("blocks of 256 of float32 with an offset can be decoded, it has others");
    }
    facts->offset = static_cast<float>(offset->get<double>());
    return absl::OkStatus();
  }

  // Finds the parts of a layout, and compares them with those that the weight must have.
  Weight ByLayout(absl::string_view name, const WeightRequest& request,
                  const WeightFacts& facts = {}) {
    QuantizedWeight weight;
    weight.name = std::string(name);
    weight.shape = request.shape;
    weight.facts = facts;
    const absl::StatusOr<WeightPlan> plan = PlanWeight(request);
    if (!plan.ok()) return Bad(plan.status().message());
    weight.plan = *plan;
    weight.form = std::string(Info(request.layout).name);
    const bool bits4 = Info(request.layout).family == LayoutFamily::kBitsAndBytes;
    for (const LayoutPart& part : WeightParts(*plan, facts)) {
      const std::string part_name = PartName(name, part);
      const std::optional<Place> at = PlaceOf(part_name);
      weight.parts.push_back(at);
      const bool constant = absl::EndsWith(part_name, "weight_format");
      if (!at.has_value() && !constant) return Bad("there is no $0", part_name);
      if (constant || absl::StrContains(part.suffix, "quant_state")) continue;
      const Tensor& tensor = model_.tensor(*at);
      // bitsandbytes may store the codes as floats of more bytes (bnb_4bit_quant_storage).
      const bool storage = bits4 && part.suffix.empty() && tensor.bytes == part.bytes &&
                           tensor.type != DataType::kUnspecified && tensor.shape.size() == 2 &&
                           tensor.shape[1] == 1;
      const bool one = tensor.shape.empty() && part.shape == Shape{1};
      if (storage || (tensor.dtype == part.dtype && (one || tensor.shape == part.shape))) continue;
      return Bad("$0 is $1 $2, $3 has $4 $5", part_name, tensor.dtype, ShapeString(tensor.shape),
                 Info(request.layout).name, part.dtype, ShapeString(part.shape));
    }
    return weight;
  }

  // The role of a tensor that belongs to no quantized weight.
  void Classify(Place place, const Family& family) {
    static const RE2* const parts = new RE2(kPartNames);
    static const RE2* const activations = new RE2(kActivationNames);
    static const RE2* const indices = new RE2(kIndexNames);
    InventoryEntry& entry = Entry(place);
    if (entry.weight >= 0 || entry.role == TensorRole::kUnknown) return;
    const Tensor& tensor = model_.tensor(place);
    const absl::string_view dtype = tensor.dtype;
    const bool quantized = !inventory_.weights.empty() || !quantization_.method.empty();
    if (Matches(tensor.name, *activations)) {
      entry.role = quantized ? TensorRole::kActivation : TensorRole::kUnknown;
      entry.reason = "it belongs to quantized activations";
      return;
    }
    if (Matches(tensor.name, *parts)) {
      entry = Unknown("it belongs to no codes that can be decoded");
      return;
    }
    absl::string_view module = tensor.name;
    if (quantized &&
        (absl::ConsumeSuffix(&module, ".scale") || absl::ConsumeSuffix(&module, "_scale"))) {
      const Tensor* weight = model_.Find(absl::StrCat(module, ".weight"));
      if (weight == nullptr) weight = model_.Find(module);
      if (weight != nullptr && weight->shape.size() > 1) {
        entry = Unknown(absl::StrCat("beside it are no codes, but ", weight->dtype));
        return;
      }
      // A vector may be what a norm, or another layer, multiplies by.
      const bool norm = tensor.shape.size() == 1 || absl::StrContains(module, "norm") ||
                        !absl::EndsWith(tensor.name, ".scale");
      if (weight == nullptr && !norm) {
        entry = Unknown("it belongs to no codes that can be decoded");
        return;
      }
    }
    if (tensor.type != DataType::kUnspecified || dtype == "F64") {
      // Codes that are stored as floats (bnb_4bit_quant_storage) are one column.
      const bool column = tensor.shape.size() == 2 && tensor.shape[1] == 1 && tensor.shape[0] > 1;
      if (column && quantization_.method == "bitsandbytes") {
        entry = Unknown("codes, or floats of one column: no quant_state");
        return;
      }
      SetFloats(tensor, family.OtherByName(tensor), /*most_dimensions=*/2, &entry);
      return;
    }
    const bool weight = absl::EndsWith(tensor.name, "weight");
    const bool wide =
        dtype == "U64" || dtype == "BOOL" || dtype == "C64" || (dtype == "I64" && !weight);
    const bool integer = dtype == "U8" || dtype == "I8" || dtype == "I16" || dtype == "U16" ||
                         dtype == "I32" || dtype == "U32";
    const bool flat = tensor.shape.size() < 2 && !weight;
    const bool index = integer && (flat || tensor.bytes == 0 || Matches(tensor.name, *indices));
    if (wide || index) return;
    entry = Unknown(absl::StrCat("codes in ", dtype, " without a known scale"));
  }

  const Model& model_;
  Inventory& inventory_;
  const Quantization& quantization_;
};

// A .gguf: a type says everything.
void ReadGgufTypes(const Model& model, Inventory* inventory) {
  const std::vector<Tensor>& tensors = model.shards[0].tensors;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    InventoryEntry& entry = inventory->entries[0][i];
    if (IsPlain(*FindGgml(int64_t{tensor.ggml_type}))) {
      if (tensor.type != DataType::kUnspecified) {
        SetFloats(tensor, OtherByGgufName(tensor.name), kMaxRank, &entry);
      }
      continue;
    }
    const LayoutInfo* layout = FindGgmlType(tensor.ggml_type);
    const absl::StatusOr<WeightPlan> plan =
        layout == nullptr
            ? absl::InvalidArgumentError(absl::Substitute("$0 cannot be decoded", tensor.dtype))
            : PlanWeight({layout->layout, DataType::kFloat, tensor.shape});
    if (!plan.ok()) {
      entry = Unknown(std::string(plan.status().message()));
      continue;
    }
    entry = {TensorRole::kCodes, static_cast<int32_t>(inventory->weights.size()), false, ""};
    QuantizedWeight& weight = inventory->weights.emplace_back();
    weight.name = tensor.name;
    weight.shape = tensor.shape;
    weight.form = std::string(tensor.dtype);
    weight.main = {0, i};
    weight.parts = {weight.main};
    weight.plan = *plan;
  }
}

}  // namespace

std::optional<Place> Inventory::First(TensorRole role) const {
  for (uint32_t i = 0; i < entries.size(); ++i) {
    for (uint32_t j = 0; j < entries[i].size(); ++j) {
      if (entries[i][j].role >= role) return Place{i, j};
    }
  }
  return std::nullopt;
}

absl::StatusOr<Inventory> TakeInventory(const Model& model) {
  Inventory inventory;
  for (const Shard& shard : model.shards) inventory.entries.emplace_back(shard.tensors.size());
  if (model.kind == ModelKind::kGguf) {
    ReadGgufTypes(model, &inventory);
    return inventory;
  }
  inventory.quantization = ReadQuantization(model.config, model.hf_quant_config);
  QUANTD_RETURN_IF_ERROR(WeightFinder(model, &inventory).Run());
  return inventory;
}

std::string RoleText(const Inventory& inventory, Place place) {
  const InventoryEntry& entry = inventory.at(place);
  const auto weight = [&]() -> const QuantizedWeight& {
    return inventory.weights[static_cast<size_t>(entry.weight)];
  };
  switch (entry.role) {
    case TensorRole::kLinear:
      return "weight of a linear layer";
    case TensorRole::kFloats:
      return absl::StrCat("floats: ", entry.reason);
    case TensorRole::kOther:
      return "no floats";
    case TensorRole::kCodes:
      return absl::StrCat("codes of ", weight().name, ": ", weight().form);
    case TensorRole::kPart:
      return absl::StrCat("part of ", weight().name);
    case TensorRole::kActivation:
      return "of quantized activations";
    default:
      return absl::StrCat("not understood: ", entry.reason);
  }
}

}  // namespace quantd::checkpoints
