// quantctl inspect: shows the contents of a file, its difference from the original, and the effect
// of quantizing it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "commands/commands.h"
#include "engine/errors.h"
#include "engine/parameters.h"
#include "files/text.h"
#include "status_macros.h"

namespace quantd::cli {
namespace {

// ---- Statistics of many values ------------------------------------------------------------------

constexpr int kBar = 40;
constexpr int64_t kChunk = 1 << 16;  // elements; a multiple of the number that fills whole bytes

struct Statistics {
  uint64_t finite = 0, nan = 0, infinite = 0;
  // Of the finite values; 0 if there are none.
  double minimum = 0, maximum = 0, mean = 0, deviation = 0;
  std::vector<uint64_t> counts;  // from minimum to maximum in bins of equal width

  // One line per bin: its lower edge, a bar, its count.
  std::string HistogramText() const;
  Json HistogramJson() const;
};

// Calls its argument with all values, in order, many at a time.
using ForEachValues =
    absl::FunctionRef<absl::Status(absl::FunctionRef<void(absl::Span<const double>)> visit)>;

// Iterates over the values twice: first for range and mean, then for deviation and histogram.
// Returns the errors of for_each.
absl::StatusOr<Statistics> Describe(ForEachValues for_each, int64_t bins) {
  Statistics result;
  absl::Status status = for_each([&result](absl::Span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? result.nan : result.infinite);
        continue;
      }
      const bool first = result.finite++ == 0;
      result.minimum = first ? value : std::min(result.minimum, value);
      result.maximum = first ? value : std::max(result.maximum, value);
      // The running mean stays in range even where a sum would overflow.
      result.mean += (value - result.mean) / static_cast<double>(result.finite);
    }
  });
  if (!status.ok()) return status;
  const double low = result.minimum, high = result.maximum;
  result.counts.assign(low == high ? 1 : std::max<int64_t>(bins, 1), 0);
  const auto last = static_cast<double>(result.counts.size() - 1);
  double squares = 0;
  status = for_each([&](absl::Span<const double> values) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      squares += (value - result.mean) * (value - result.mean);
      // Halves, so that a range as wide as double does not overflow.
      const double position =
          high == low ? 0 : (value / 2 - low / 2) / (high / 2 - low / 2) * (last + 1);
      ++result.counts[static_cast<size_t>(std::clamp(position, 0.0, last))];
    }
  });
  if (!status.ok()) return status;
  if (result.finite > 0) result.deviation = std::sqrt(squares / static_cast<double>(result.finite));
  return result;
}

// Visits the values of a stored tensor, in file order. REQUIRES: not of Family::kOpaque.
absl::Status VisitStored(const TensorFile& file, const StoredTensor& tensor,
                         absl::FunctionRef<void(absl::Span<const double>)> visit) {
  const absl::Span<const uint8_t> all = file.Bytes(tensor);
  const int64_t bits = tensor.type->bits;
  int64_t elements = 1;
  for (const int64_t length : tensor.shape) elements *= length;
  std::vector<uint8_t> swapped;
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    const int64_t count = std::min(kChunk, elements - begin);
    absl::Span<const uint8_t> part = all.subspan(begin * bits / 8, (count * bits + 7) / 8);
    if (tensor.big_endian && bits > 8) {
      swapped.assign(part.begin(), part.end());
      for (auto at = swapped.begin(); at != swapped.end(); at += bits / 8) {
        std::reverse(at, at + bits / 8);
      }
      part = swapped;
    }
    visit(ToDoubles(*tensor.type, count, part));
  }
  return absl::OkStatus();
}

std::string Statistics::HistogramText() const {
  const uint64_t most = std::max<uint64_t>(1, *std::max_element(counts.begin(), counts.end()));
  const auto bins = static_cast<double>(counts.size());
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double edge = minimum + (maximum / bins - minimum / bins) * static_cast<double>(i);
    const double share = static_cast<double>(counts[i]) / static_cast<double>(most);
    std::string bar(static_cast<size_t>(std::lround(share * kBar)), '#');
    if (bar.empty() && counts[i] > 0) bar.push_back('.');
    absl::StrAppendFormat(&text, "    %12.5g |%-*s %d\n", edge, kBar, bar, counts[i]);
  }
  absl::StrAppendFormat(&text, "    %12.5g\n", maximum);
  return text;
}

Json Statistics::HistogramJson() const {
  return {{"min", NumberJson(minimum)}, {"max", NumberJson(maximum)}, {"counts", counts}};
}

// ---- Inspection ---------------------------------------------------------------------------------

// The file of --against.
struct Original {
  explicit Original(TensorFile opened) : file(std::move(opened)) {
    for (const StoredTensor& tensor : file.tensors) by_name.emplace(tensor.name, &tensor);
  }
  // Null if it has no tensor with this name. A .npy has one tensor, without a name.
  const StoredTensor* Find(absl::string_view name) const {
    const auto at = by_name.find(file.format == FileFormat::kNpy ? "" : name);
    return at == by_name.end() ? nullptr : at->second;
  }

  const TensorFile file;
  absl::flat_hash_map<absl::string_view, const StoredTensor*> by_name;
};

// About one tensor.
struct Findings {
  std::string text;  // for --details
  Json json;
  std::vector<std::string> row = {};  // for the table, without the cells of the error
  std::optional<QuantizationError> error = {};
};

void Add(const Findings& findings, const char* key, Findings* to) {
  to->text += findings.text;
  to->json[key] = findings.json;
  to->error = findings.error;
}

// Rows of tensors in the order of --sort.
class Rows {
 public:
  // The cells of the error follow.
  explicit Rows(std::vector<Table::Column> columns) : columns_(std::move(columns)) {
    columns_.insert(columns_.end(),
                    {{"SQNR", true}, {"max error", true}, {"saturated", true}, {"note"}});
  }

  void Add(const Findings& findings, int64_t elements, uint64_t bytes, std::string note = "") {
    std::vector<std::string> cells = findings.row;
    const std::optional<QuantizationError>& error = findings.error;
    cells.push_back(error.has_value() ? SqnrText(*error, elements) : "");
    cells.push_back(error.has_value() ? absl::StrFormat("%.3g", error->max_absolute_error) : "");
    cells.push_back(error.has_value() && error->saturated_elements > 0
                        ? absl::StrCat(error->saturated_elements)
                        : "");
    cells.push_back(std::move(note));
    rows_.push_back({SortKey(findings.row[0], bytes, error, elements), std::move(cells)});
    bytes_ += bytes;
  }

  std::string ToText(absl::string_view order, absl::string_view what) {
    if (rows_.empty()) return "";
    std::stable_sort(rows_.begin(), rows_.end(), [&](const auto& a, const auto& b) {
      return order != "file" && Before(order, a.first, b.first);
    });
    Table table(columns_);
    for (auto& [key, cells] : rows_) table.Add(std::move(cells));
    return absl::StrCat(table.ToText(), rows_.size(), " ", what, rows_.size() == 1 ? "" : "s", ", ",
                        BytesText(bytes_), "\n");
  }

 private:
  std::vector<Table::Column> columns_;
  std::vector<std::pair<SortKey, std::vector<std::string>>> rows_;
  uint64_t bytes_ = 0;
};

// The difference between the quantized tensor and x, its original. `known` has the parts that are
// known only when x is quantized.
absl::StatusOr<Findings> ErrorOf(const Executor& executor, const DequantizeParameters& quantized,
                                 const TensorView& x, int64_t bins,
                                 const std::optional<QuantizationError>& known) {
  ErrorSums sums;
  std::vector<double> errors;
  int passes = 0;
  const auto for_each = [&](absl::FunctionRef<void(absl::Span<const double>)> visit) {
    ++passes;
    return CompareWith(executor, quantized, x,
                       [&](absl::Span<const double> before, absl::Span<const double> after) {
                         errors.clear();
                         for (size_t i = 0; i < before.size(); ++i) {
                           const double error = before[i] - after[i];
                           if (std::isfinite(error)) errors.push_back(error);
                           if (passes > 1) continue;
                           if (!std::isfinite(before[i])) {
                             ++sums.non_finite_elements;
                             continue;
                           }
                           ++sums.finite_elements;
                           sums.signal += before[i] * before[i];
                           sums.noise += error * error;
                           sums.max_absolute_error =
                               std::max(sums.max_absolute_error, std::abs(error));
                         }
                         visit(errors);
                       });
  };
  QUANTD_ASSIGN_OR_RETURN(const Statistics statistics, Describe(for_each, bins));
  const QuantizationError error = known.value_or(sums.Finish());
  Findings findings;
  const std::string type = TypeName(quantized.x.data_type);
  const int64_t elements = ElementCount(x.shape, "x").value_or(0);
  findings.error = error;
  findings.text = absl::StrCat("  error as ", type, ": SQNR ", ErrorText(error, elements), "\n",
                               bins > 0 ? statistics.HistogramText() : "");
  findings.json = {{"type", type},
                   {"sqnr_db", NumberJson(error.sqnr_db)},
                   {"mean_squared_error", NumberJson(error.mean_squared_error)},
                   {"max_absolute_error", NumberJson(error.max_absolute_error)},
                   {"histogram", statistics.HistogramJson()}};
  if (known.has_value()) findings.json["saturated_elements"] = error.saturated_elements;
  return findings;
}

// The effect of quantizing x, computed in files without a name.
absl::StatusOr<Findings> TrySpec(const QuantizationSpec& spec, Engine& engine,
                                 const Executor& executor, const TensorView& x, int64_t bins) {
  QUANTD_ASSIGN_OR_RETURN(const ResultLayout layout, spec.LayoutFor(x));
  std::deque<OutputFile> files;
  DynamicQuantizeOutput output;
  DequantizeParameters quantized;
  absl::Status status;
  const auto add = [&](const std::optional<TensorLayout>& part, absl::Span<uint8_t>* bytes) {
    if (!part.has_value()) return std::optional<TensorView>();
    const uint64_t size = StoredBytes(Info(part->data_type).bits, part->shape).value_or(0);
    status.Update(files.emplace_back().CreateNameless(ScratchPath(), size));
    *bytes = files.back().bytes();
    return std::optional(TensorView{part->data_type, part->shape, *bytes});
  };
  quantized.x = *add(layout.y, &output.y);
  quantized.scale = *add(layout.y_scale, &output.scale);
  quantized.zero_point = add(layout.y_zero_point, &output.zero_point);
  quantized.tensor_scale = add(layout.y_tensor_scale, &output.tensor_scale);
  QuantizationError error;
  if (status.ok()) status = spec.Run(engine, x, output, &error);
  if (!status.ok()) return status;
  quantized.granularity = spec.granularity();
  return ErrorOf(executor, quantized, x, bins, error);
}

// tensor, type, shape, bytes, min, max, mean, std, not finite
constexpr size_t kValueCells = 9;

absl::StatusOr<Findings> InspectValues(const TensorFile& file, const StoredTensor& tensor,
                                       int64_t bins) {
  Findings findings;
  const bool alone = file.format == FileFormat::kNpy;
  findings.text =
      absl::StrFormat("%s  %s %s  %d bytes\n", Printable(alone ? file.path : tensor.name),
                      tensor.type->name, ShapeString(tensor.shape), tensor.byte_size);
  findings.json = {{"name", tensor.name},
                   {"type", tensor.type->name},
                   {"shape", ShapeJson(tensor.shape)},
                   {"bytes", tensor.byte_size}};
  findings.row = {Printable(alone ? file.path : tensor.name), std::string(tensor.type->name),
                  ShapeString(tensor.shape), BytesText(tensor.byte_size)};
  findings.row.resize(kValueCells);
  if (tensor.type->family == Family::kOpaque) return findings;
  const absl::StatusOr<Statistics> found = Describe(
      [&](absl::FunctionRef<void(absl::Span<const double>)> visit) {
        return VisitStored(file, tensor, visit);
      },
      bins);
  if (!found.ok()) return found.status();
  absl::StrAppendFormat(&findings.text, "  min %.6g  max %.6g  mean %.6g  std %.6g\n",
                        found->minimum, found->maximum, found->mean, found->deviation);
  if (found->nan + found->infinite > 0) {
    absl::StrAppendFormat(&findings.text, "  not finite: %d NaN, %d infinite\n", found->nan,
                          found->infinite);
  }
  if (found->finite > 0 && bins > 0) {
    absl::StrAppend(&findings.text, "  values\n", found->HistogramText());
  }
  if (found->finite > 0) {
    const double numbers[] = {found->minimum, found->maximum, found->mean, found->deviation};
    for (size_t i = 0; i < 4; ++i) findings.row[4 + i] = absl::StrFormat("%.4g", numbers[i]);
  }
  const uint64_t others = found->nan + found->infinite;
  if (others > 0) findings.row[8] = absl::StrCat(others);
  findings.json.update({{"min", NumberJson(found->minimum)},
                        {"max", NumberJson(found->maximum)},
                        {"mean", NumberJson(found->mean)},
                        {"std", NumberJson(found->deviation)},
                        {"nan", found->nan},
                        {"infinite", found->infinite},
                        {"histogram", found->HistogramJson()}});
  return findings;
}

// "axis 0", "blocks of 32 along axis -1" or "blocks [128, 128]".
std::string GranularityText(const Granularity& granularity, const Shape& scale_shape) {
  if (!granularity.block_shape.empty()) {
    return absl::StrCat("blocks ", ShapeString(granularity.block_shape));
  }
  const std::string axis = absl::StrCat("axis ", granularity.axis.value_or(1));
  if (granularity.block_size > 0) {
    return absl::StrCat("blocks of ", granularity.block_size, " along ", axis);
  }
  if (ElementCount(scale_shape, "scale").value_or(0) == 1) return "one scale";
  return scale_shape.size() == 1 ? axis : absl::StrCat("groups ", ShapeString(scale_shape));
}

// A quantized tensor, and its difference from `original` (may be null).
absl::StatusOr<Findings> InspectQuantized(const QuantizedTensor& tensor, const Options& options,
                                          const Executor& executor, const Original* original) {
  const QuantizedEntry& entry = tensor.entry;
  Findings findings;
  findings.text = absl::StrFormat(
      "%s  %s %s as %s, %s, scale %s %s%s%s\n", Printable(entry.name),
      entry.was_float64 ? "float64" : TypeName(entry.input_type), ShapeString(entry.y.shape),
      TypeName(entry.y.type), GranularityText(entry.granularity, entry.scale.shape),
      TypeName(entry.scale.type), ShapeString(entry.scale.shape),
      entry.zero_point.has_value() ? ", zero point " + TypeName(entry.zero_point->type) : "",
      entry.tensor_scale.has_value() ? ", tensor scale" : "");
  const Granularity& granularity = entry.granularity;
  findings.row = {Printable(entry.name),
                  absl::StrCat(entry.was_float64 ? "float64" : TypeName(entry.input_type), " -> ",
                               TypeName(entry.y.type)),
                  ShapeString(entry.y.shape),
                  GranularityText(granularity, entry.scale.shape),
                  absl::StrCat(TypeName(entry.scale.type), " ", ShapeString(entry.scale.shape)),
                  entry.zero_point.has_value() ? TypeName(entry.zero_point->type) : ""};
  findings.json = {
      {"name", entry.name},
      {"input_type", entry.was_float64 ? "float64" : TypeName(entry.input_type)},
      {"output_type", TypeName(entry.y.type)},
      {"shape", ShapeJson(entry.y.shape)},
      {"axis", granularity.axis.has_value() ? Json(*granularity.axis) : Json()},
      {"block_size", granularity.block_size},
      {"block_shape", ShapeJson(granularity.block_shape)},
      {"scale", {{"type", TypeName(entry.scale.type)}, {"shape", ShapeJson(entry.scale.shape)}}}};
  if (original == nullptr) return findings;
  const StoredTensor* const match = original->Find(entry.name);
  const auto fail = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.input, ": tensor '", entry.name, "' in --against: ", what));
  };
  if (match == nullptr) return fail("there is none of this name");
  QUANTD_ASSIGN_OR_RETURN(const Operand x, ValuesOf(original->file, *match, ScratchPath()));
  QUANTD_ASSIGN_OR_RETURN(const QuantizedParts parts, QuantizedParts::Of(tensor, ScratchPath()));
  const absl::StatusOr<Findings> error =
      ErrorOf(executor, parts.parameters(), x.view, options.bins, std::nullopt);
  if (!error.ok()) return fail(error.status().message());
  Add(*error, "quantization_error", &findings);
  return findings;
}

// Replaces types of stored tensors that are packed or have no name by the types that they mean.
// Returns the parts of quantized tensors, by their names in the file.
std::map<std::string, Reference> GiveMeaning(const std::vector<QuantizedTensor>& found,
                                             TensorFile* file) {
  std::map<std::string, Reference> meanings;
  const std::string own = NameOf(file->path);
  const bool npy = file->format == FileFormat::kNpy;
  for (const QuantizedTensor& tensor : found) {
    for (const Reference& part : tensor.entry.parts()) {
      // A .npy contains only its own; the others are in files beside it.
      if (!npy || part.tensor == own) meanings[npy ? "" : part.tensor] = part;
    }
  }
  for (StoredTensor& tensor : file->tensors) {
    const auto meaning = meanings.find(tensor.name);
    if (meaning == meanings.end()) continue;
    tensor.type = &ElementTypeOf(meaning->second.type);
    tensor.shape = meaning->second.shape;
  }
  return meanings;
}

}  // namespace

absl::Status RunInspect(const Options& options) {
  if (IsModel(options.input)) return InspectModel(options);
  QUANTD_ASSIGN_OR_RETURN(const QuantizationSpec spec, QuantizationSpec::Of(options.spec));
  QUANTD_ASSIGN_OR_RETURN(const Choice choice, ChoiceOf(options));
  QUANTD_ASSIGN_OR_RETURN(TensorFile file, OpenTensorFile(options.input));
  QUANTD_ASSIGN_OR_RETURN(const std::vector<QuantizedTensor> quantized, FindQuantizedTensors(file));
  std::optional<Original> original;
  if (!options.against.empty()) {
    if (quantized.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.input, " has no quantized tensor to compare with --against"));
    }
    QUANTD_ASSIGN_OR_RETURN(TensorFile opened, OpenTensorFile(options.against));
    original.emplace(std::move(opened));
  }
  const bool tries = !options.spec.type.empty();
  std::unique_ptr<Engine> engine;
  if (tries || original.has_value()) {
    QUANTD_ASSIGN_OR_RETURN(engine, EngineOf(options));
  }
  // The error report is computed here, even if a server quantizes.
  const Executor executor(options.threads);
  const std::map<std::string, Reference> parts = GiveMeaning(quantized, &file);

  // As JSON they take some KB each, so they are kept only if they are needed.
  Json document = {{"file", options.input}, {"tensors", Json::array()}};
  std::string text;
  Rows quantized_rows(
      {{"quantized tensor"}, {"type"}, {"shape"}, {"granularity"}, {"scale"}, {"zero point"}});
  Rows rows({{"tensor"},
             {"type"},
             {"shape"},
             {"bytes", true},
             {"min", true},
             {"max", true},
             {"mean", true},
             {"std", true},
             {"not finite", true}});
  const auto elements_of = [](const Shape& shape) { return ElementCount(shape, "").value_or(0); };
  for (const QuantizedTensor& tensor : quantized) {
    if (!choice.SkipReason(tensor.entry.name).empty()) continue;
    QUANTD_ASSIGN_OR_RETURN(
        const Findings findings,
        InspectQuantized(tensor, options, executor, original.has_value() ? &*original : nullptr));
    const Reference& y = tensor.entry.y;
    if (options.details) {
      text += findings.text;
    } else {
      quantized_rows.Add(findings, elements_of(y.shape),
                         StoredBytes(Info(y.type).bits, y.shape).value_or(0));
    }
    if (options.json) document["quantized"].push_back(findings.json);
  }
  // Codes and scales have no rows besides that of their tensor, unless they are asked for.
  const bool all = options.details || options.json || !options.only.empty();
  for (const StoredTensor& tensor : file.tensors) {
    if (!choice.SkipReason(tensor.name).empty()) continue;
    if (!all && parts.count(tensor.name) > 0) continue;
    QUANTD_ASSIGN_OR_RETURN(Findings findings, InspectValues(file, tensor, options.bins));
    const absl::StatusOr<Source> x = Source::Of(file, tensor);
    std::string note;
    if (tries && x.ok() && Info(x->type()).kind == DataTypeKind::kFloat) {
      QUANTD_ASSIGN_OR_RETURN(const Operand values, x->View(ScratchPath()));
      const absl::StatusOr<Findings> error =
          TrySpec(spec, *engine, executor, values.view, options.bins);
      if (!error.ok() && file.tensors.size() == 1) {
        return OperationError(error.status(), "quantize", tensor.name);
      }
      if (!error.ok()) note = std::string(error.status().message());
      Add(error.ok() ? *error
                     : Findings{absl::StrCat("  ", error.status().message(), "\n"),
                                {{"message", error.status().message()}}},
          "quantization_error", &findings);
    }
    if (options.details) {
      text += findings.text;
    } else {
      rows.Add(findings, elements_of(tensor.shape), tensor.byte_size, Printable(note));
    }
    if (options.json) document["tensors"].push_back(std::move(findings.json));
  }
  if (options.quiet && !options.json) return absl::OkStatus();
  const std::string first = quantized_rows.ToText(options.sort, "quantized tensor");
  const std::string others = rows.ToText(options.sort, "tensor");
  absl::StrAppend(&text, first, first.empty() || others.empty() ? "" : "\n", others);
  std::fputs(options.json ? Dump(document).c_str() : text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace quantd::cli
