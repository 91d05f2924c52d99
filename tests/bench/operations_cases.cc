// See operations_cases.h.
#include "operations_cases.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operations_tensors.h"
#include "quantd/dequantize.h"
#include "quantd/dynamic_quantize.h"
#include "quantd/quantize.h"

namespace quantd::bench {
namespace {

constexpr int64_t kRows = 512, kColumns = 512;

bool Never() { return false; }

// Which elements share a scale, over a shape of about 2^18 elements.
struct Grain {
  std::string name;
  Shape shape;
  Granularity granularity;
};

std::vector<Grain> Grains() {
  const Shape square = {kRows, kColumns};
  std::vector<Grain> grains = {
      {"axis, first", square, {.axis = 0}},
      {"axis, last", square, {.axis = 1}},
      {"axis, last of 3", {kRows * kColumns / 3, 3}, {.axis = 1}},
      {"axis, middle", {64, 64, 64}, {.axis = 1}},
      {"axis, middle, rows of 4", {4096, 16, 4}, {.axis = 1}},
  };
  for (const int64_t block : {2, 4, 8, 16, 32, 128, 49}) {
    grains.push_back({absl::StrCat("blocks of ", block), square, {.axis = 1, .block_size = block}});
  }
  grains.push_back({"blocks of 32 along axis 0", square, {.axis = 0, .block_size = 32}});
  grains.push_back({"tiles of 128x128", square, {.block_shape = {128, 128}}});
  grains.push_back({"groups of 8x64", square, {.block_shape = {8, 64}}});
  return grains;
}

Shape ScaleShape(const Grain& grain) {
  const Granularity& granularity = grain.granularity;
  if (!granularity.axis.has_value() && granularity.block_shape.empty()) return {};
  if (granularity.axis.has_value() && granularity.block_size == 0) {
    return {grain.shape[static_cast<size_t>(*granularity.axis)]};
  }
  Shape counts = grain.shape;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t block = 1;
    if (!granularity.block_shape.empty()) {
      block = granularity.block_shape[i];
    } else if (static_cast<int64_t>(i) == *granularity.axis) {
      block = granularity.block_size;
    }
    counts[i] = (counts[i] - 1) / block + 1;
  }
  return counts;
}

// What a case has beside its pair of types and its grain.
struct Options {
  std::string name;
  DataType scale_type = DataType::kFloat;
  bool in_pieces = false;
  bool report_error = false;
  bool tensor_scale = false;
  bool zero_point = true;
  ZeroPointOrder order = ZeroPointOrder::kAfterRounding;
  Symmetry symmetry = Symmetry::kDefault;
  NonFinite non_finite = NonFinite::kReject;
};

class Builder {
 public:
  Builder() : y_(8 << 20), scale_(2 << 20), zero_point_(2 << 20), tensor_scale_(4) {}

  // Adds the case, unless such a thing can't be planned; `base` says what it is compared with.
  int Quantize(DataType input, DataType output, const Grain& grain, const Options& options,
               int base);
  int Dequantize(DataType input, DataType output, const Grain& grain, const Options& options,
                 int base);
  int DynamicQuantize(DataType input, DataType output, const Grain& grain, const Options& options,
                      int base);

  using Add = int (Builder::*)(DataType, DataType, const Grain&, const Options&, int);

  // The pair with one scale; -1 where there is no such pair. Made once.
  int PerTensor(Add add, DataType input, DataType output) {
    const auto key =
        std::make_tuple(add == &Builder::Quantize, add == &Builder::Dequantize, input, output);
    const auto found = per_tensor_.find(key);
    if (found != per_tensor_.end()) return found->second;
    return per_tensor_[key] = (this->*add)(input, output, whole_, {}, -1);
  }
  const Grain& whole() const { return whole_; }
  std::vector<Case> Take() { return std::move(cases_); }

 private:
  absl::Span<uint8_t> Y(uint64_t bytes) const { return {y_.data(), bytes}; }
  OwnedTensor Input(DataType type, const Shape& shape, bool in_pieces) {
    std::optional<OwnedTensor>& whole = inputs_[{type, shape, false}];
    if (!whole.has_value()) whole = MakeInput(type, shape);
    if (!in_pieces) return *whole;
    std::optional<OwnedTensor>& pieces = inputs_[{type, shape, true}];
    if (!pieces.has_value()) pieces = InPieces(*whole);
    return *pieces;
  }
  int AddCase(const char* operation, DataType input, DataType output, const Grain& grain,
              const Options& options, int base, std::function<absl::Status(const Executor&)> run) {
    cases_.push_back(
        {operation, std::string(Name(input)), std::string(Name(output)),
         options.name.empty() ? grain.name : absl::StrCat(grain.name, ", ", options.name),
         Product(grain.shape), base, std::move(run)});
    return static_cast<int>(cases_.size()) - 1;
  }

  const Grain whole_ = {"per tensor", {kRows, kColumns}, {}};
  const Memory y_, scale_, zero_point_, tensor_scale_;  // answers, of all cases
  std::map<std::tuple<DataType, Shape, bool>, std::optional<OwnedTensor>> inputs_;
  std::map<std::tuple<bool, bool, DataType, DataType>, int> per_tensor_;
  std::vector<Case> cases_;
};

int Builder::Quantize(DataType input, DataType output, const Grain& grain, const Options& options,
                      int base) {
  const bool integer = Info(output).kind == DataTypeKind::kInteger;
  const OwnedTensor x = Input(input, grain.shape, options.in_pieces);
  const OwnedTensor scale = MakeScale(options.scale_type, ScaleShape(grain));
  const OwnedTensor zero_point = MakeZeroPoint(output, ScaleShape(grain));
  const auto parameters = [=] {
    QuantizeParameters p{.x = x.view(), .scale = scale.view()};
    if (integer && options.zero_point) p.zero_point = zero_point.view();
    p.output_type = output;
    p.granularity = grain.granularity;
    p.zero_point_order = options.order;
    p.report_error = options.report_error;
    return p;
  };
  if (!PlanQuantize(parameters()).ok()) return -1;
  return AddCase("Quantize", input, output, grain, options, base,
                 [this, parameters](const Executor& executor) {
                   const QuantizeParameters p = parameters();
                   const auto plan = PlanQuantize(p);
                   if (!plan.ok()) return plan.status();
                   QuantizationError error;
                   return quantd::Quantize(*plan, p.x.bytes, executor, Never, Y(plan->output_bytes),
                                           &error);
                 });
}

int Builder::Dequantize(DataType input, DataType output, const Grain& grain, const Options& options,
                        int base) {
  const bool integer = Info(input).kind == DataTypeKind::kInteger;
  const OwnedTensor x = Input(input, grain.shape, options.in_pieces);
  const OwnedTensor scale = MakeScale(options.scale_type, ScaleShape(grain));
  const OwnedTensor zero_point = MakeZeroPoint(input, ScaleShape(grain));
  const OwnedTensor tensor_scale = MakeScale(DataType::kFloat, {});
  const auto parameters = [=] {
    DequantizeParameters p{.x = x.view(), .scale = scale.view()};
    if (integer && options.zero_point) p.zero_point = zero_point.view();
    if (options.tensor_scale) p.tensor_scale = tensor_scale.view();
    p.output_type = output;
    p.granularity = grain.granularity;
    return p;
  };
  if (!PlanDequantize(parameters()).ok()) return -1;
  return AddCase("Dequantize", input, output, grain, options, base,
                 [this, parameters](const Executor& executor) {
                   const DequantizeParameters p = parameters();
                   const auto plan = PlanDequantize(p);
                   if (!plan.ok()) return plan.status();
                   return quantd::Dequantize(*plan, p.x.bytes, executor, Never,
                                             Y(plan->output_bytes));
                 });
}

int Builder::DynamicQuantize(DataType input, DataType output, const Grain& grain,
                             const Options& options, int base) {
  const OwnedTensor x = Input(input, grain.shape, options.in_pieces);
  const auto parameters = [=] {
    DynamicQuantizeParameters p{.x = x.view(), .output_type = output};
    p.granularity = grain.granularity;
    p.scale_type = options.scale_type;
    p.symmetry = options.symmetry;
    p.non_finite = options.non_finite;
    p.report_error = options.report_error;
    return p;
  };
  if (!PlanDynamicQuantize(parameters()).ok()) return -1;
  return AddCase("DynamicQuantize", input, output, grain, options, base,
                 [this, parameters](const Executor& executor) {
                   const DynamicQuantizeParameters p = parameters();
                   const auto plan = PlanDynamicQuantize(p);
                   if (!plan.ok()) return plan.status();
                   const DynamicQuantizeOutput answer = {
                       Y(plan->output_bytes),
                       {scale_.data(), plan->scale_bytes},
                       {zero_point_.data(), plan->zero_point_bytes},
                       {tensor_scale_.data(), plan->has_tensor_scale ? size_t{4} : 0}};
                   QuantizationError error;
                   return quantd::DynamicQuantize(*plan, p.x.bytes, executor, Never, answer,
                                                  &error);
                 });
}

constexpr Builder::Add kOperations[] = {&Builder::Quantize, &Builder::Dequantize,
                                        &Builder::DynamicQuantize};

void AddPairs(Builder& builder) {
  for (const Builder::Add add : kOperations) {
    for (const DataTypeInfo& input : kDataTypes) {
      for (const DataTypeInfo& output : kDataTypes) {
        builder.PerTensor(add, input.type, output.type);
      }
    }
  }
}

struct Pair {
  DataType wide;
  DataType narrow;
};
constexpr Pair kPairs[] = {
    {DataType::kFloat, DataType::kUint8},      {DataType::kFloat, DataType::kInt4},
    {DataType::kFloat, DataType::kUint2},      {DataType::kFloat, DataType::kFloat8E4M3Fn},
    {DataType::kFloat, DataType::kFloat4E2M1}, {DataType::kBfloat16, DataType::kInt8},
};

void AddGrains(Builder& builder) {
  for (const Builder::Add add : kOperations) {
    for (Pair pair : kPairs) {
      if (add == &Builder::Dequantize) std::swap(pair.wide, pair.narrow);
      const int base = builder.PerTensor(add, pair.wide, pair.narrow);
      const Options pieces = {.name = "pieces of 8 KiB", .in_pieces = true};
      (builder.*add)(pair.wide, pair.narrow, builder.whole(), pieces, base);
      for (const Grain& grain : Grains()) {
        const int whole = (builder.*add)(pair.wide, pair.narrow, grain, {}, base);
        if (grain.granularity.block_size != 32) continue;
        (builder.*add)(pair.wide, pair.narrow, grain, pieces, whole);
      }
    }
  }
}

// Scale types, microscaling, reports.
void AddOptions(Builder& builder) {
  using Type = DataType;
  const Grain blocks32 = {"blocks of 32", {kRows, kColumns}, {.axis = 1, .block_size = 32}};
  const Grain blocks16 = {"blocks of 16", {kRows, kColumns}, {.axis = 1, .block_size = 16}};
  const Options power_of_two = {.name = "scale FLOAT8E8M0", .scale_type = Type::kFloat8E8M0};
  const Options two_level = {.name = "scale FLOAT8E4M3FN (NVFP4)",
                             .scale_type = Type::kFloat8E4M3Fn,
                             .tensor_scale = true};
  for (const Type half : {Type::kFloat16, Type::kBfloat16}) {
    const Options options = {.name = absl::StrCat("scale ", Name(half)), .scale_type = half};
    for (const DataTypeInfo& output : kDataTypes) {
      builder.Quantize(half, output.type, builder.whole(), options,
                       builder.PerTensor(&Builder::Quantize, half, output.type));
    }
  }
  for (const Type type : {Type::kFloat8E4M3Fn, Type::kFloat8E5M2, Type::kFloat4E2M1, Type::kInt8}) {
    for (const Type wide : {Type::kFloat, Type::kBfloat16}) {
      builder.Quantize(wide, type, blocks32, power_of_two,
                       builder.PerTensor(&Builder::Quantize, wide, type));
      builder.Dequantize(type, wide, blocks32, power_of_two,
                         builder.PerTensor(&Builder::Dequantize, type, wide));
      builder.DynamicQuantize(wide, type, blocks32, power_of_two,
                              builder.PerTensor(&Builder::DynamicQuantize, wide, type));
    }
  }
  for (const Type wide : {Type::kFloat, Type::kBfloat16}) {
    builder.DynamicQuantize(wide, Type::kFloat4E2M1, blocks16, two_level,
                            builder.PerTensor(&Builder::DynamicQuantize, wide, Type::kFloat4E2M1));
    builder.Dequantize(Type::kFloat4E2M1, wide, blocks16, two_level,
                       builder.PerTensor(&Builder::Dequantize, Type::kFloat4E2M1, wide));
  }
  const Options symmetric = {.name = "symmetric", .symmetry = Symmetry::kSymmetric};
  const Options ignore = {.name = "IGNORE", .non_finite = NonFinite::kIgnore};
  const Options half = {.name = "scale FLOAT16", .scale_type = Type::kFloat16};
  const Options report = {.name = "report_error", .report_error = true};
  const Options before = {.name = "BEFORE_ROUNDING", .order = ZeroPointOrder::kBeforeRounding};
  const Options no_point = {.name = "no zero point", .zero_point = false};
  for (const Type output : {Type::kUint8, Type::kInt4, Type::kFloat8E4M3Fn}) {
    const int base = builder.PerTensor(&Builder::DynamicQuantize, Type::kFloat, output);
    for (const Grain& grain : {builder.whole(), blocks32}) {
      for (const Options& options : {symmetric, ignore, half, report}) {
        builder.DynamicQuantize(Type::kFloat, output, grain, options, base);
      }
    }
    const int quantize = builder.PerTensor(&Builder::Quantize, Type::kFloat, output);
    for (const Options& options : {report, before, no_point}) {
      builder.Quantize(Type::kFloat, output, builder.whole(), options, quantize);
    }
    builder.Quantize(Type::kInt32, output, builder.whole(), report,
                     builder.PerTensor(&Builder::Quantize, Type::kInt32, output));
  }
}

}  // namespace

std::vector<Case> AllCases() {
  static Builder builder;  // the cases use its memory
  AddPairs(builder);
  AddGrains(builder);
  AddOptions(builder);
  return builder.Take();
}

}  // namespace quantd::bench
