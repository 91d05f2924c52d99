#include "checkpoints/output_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "files/tensor_file.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

// The most digits of a double, with room to spare.
constexpr uint64_t kLongestNumber = 32;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

absl::string_view DtypeOf(DataType type) {
  return type == DataType::kFloat ? "F32" : type == DataType::kFloat16 ? "F16" : "BF16";
}

OutputTensor& Add(absl::string_view name, absl::string_view dtype, int ggml_type,
                  const Shape& shape, uint64_t bytes, Job* job, OutputFile* file) {
  if (job->count++ == 0) job->first = static_cast<uint32_t>(file->tensors.size());
  OutputTensor& tensor = file->tensors.emplace_back();
  tensor.name = std::string(name);
  tensor.dtype = dtype;
  tensor.ggml_type = ggml_type;
  tensor.shape = shape;
  tensor.bytes = bytes;
  return tensor;
}

absl::Status AddEncoded(const Tensor& tensor, const Decision& decision, Job* job,
                        OutputFile* file) {
  const auto plan = PlanWeight({decision.layout, tensor.type, tensor.shape});
  if (!plan.ok()) return WeightError(plan.status(), tensor.name);
  for (const LayoutPart& part : WeightParts(*plan)) {
    OutputTensor& added = Add(PartName(tensor.name, part), part.dtype,
                              Info(decision.layout).ggml_type, part.shape, part.bytes, job, file);
    added.is_text = absl::StrContains(part.suffix, "quant_state");
    if (added.is_text) file->texts[file->tensors.size() - 1];
  }
  return absl::OkStatus();
}

void AddDecoded(const Model& model, const Conversion& conversion, const QuantizedWeight& weight,
                Job* job, OutputFile* file) {
  job->bytes_before = 0;
  for (const std::optional<Place>& part : weight.parts) {
    if (part.has_value()) job->bytes_before += model.tensor(*part).bytes;
  }
  for (const Place& part : weight.others) job->bytes_before += model.tensor(part).bytes;
  const DataType output = conversion.target.output;
  const int64_t elements = ElementCount(weight.shape, "shape").value_or(0);
  Add(weight.name, DtypeOf(output), -1, weight.shape, ByteSize(output, elements), job, file);
}

absl::Status AddJob(const Model& model, const Conversion& conversion, Place place,
                    OutputFile* file) {
  const Tensor& tensor = model.tensor(place);
  const Decision& decision = conversion.at(place);
  Job job;
  job.source = place;
  job.bytes_before = tensor.bytes;
  absl::Status status;
  switch (decision.fate) {
    case Fate::kPart:
    case Fate::kLeftOut:
      return absl::OkStatus();
    case Fate::kConverted:
      if (decision.weight >= 0) {
        const auto& weight = conversion.weights[static_cast<size_t>(decision.weight)];
        AddDecoded(model, conversion, weight, &job, file);
      } else {
        status = AddEncoded(tensor, decision, &job, file);
      }
      break;
    case Fate::kCast:
    case Fate::kToFloat: {
      const bool cast = decision.fate == Fate::kCast;
      const DataType type = cast ? conversion.target.output : DataType::kFloat;
      const int64_t elements = ElementCount(tensor.shape, "shape").value_or(0);
      Add(tensor.name, DtypeOf(type), cast ? -1 : FindGgml("F32")->number, tensor.shape,
          ByteSize(type, elements), &job, file);
      break;
    }
    case Fate::kCopied: {
      const GgmlType* ggml = tensor.ggml_type < 0 ? FindGgml(tensor.dtype) : nullptr;
      Add(tensor.name, tensor.dtype, ggml == nullptr ? tensor.ggml_type : ggml->number,
          tensor.shape, tensor.bytes, &job, file);
    }
  }
  file->jobs.push_back(std::move(job));
  return status;
}

// Reserves memory, because growth by doubling takes up to three times as much.
void Reserve(const Conversion& conversion, size_t tensors, OutputFile* file) {
  size_t parts = 1;
  if (!conversion.target.decodes) {
    const auto plan = PlanWeight({conversion.target.layout, DataType::kFloat, {256, 256}});
    if (plan.ok()) parts = WeightParts(*plan).size();
  }
  file->jobs.reserve(tensors);
  file->tensors.reserve(std::min(tensors * parts, cli::kMaxTensors));
}

absl::Status CheckNames(const OutputFile& file) {
  absl::flat_hash_set<absl::string_view> names;
  for (const OutputTensor& tensor : file.tensors) {
    if (names.insert(tensor.name).second) continue;
    return ContentError("$0 would hold two tensors named '$1'", file.name, tensor.name);
  }
  return absl::OkStatus();
}

// The keys, with the type of most tensors replaced, as pieces with the bytes before and after it.
// Counts them.
std::vector<HeaderPiece> GgufKeys(const Model& model, const Conversion& conversion,
                                  uint64_t* count) {
  constexpr char kType[] = "general.file_type", kVersion[] = "general.quantization_version";
  const std::string type =
      GgufUint32Key(kType, static_cast<uint32_t>(Info(conversion.target.layout).ggml_file));
  const std::string version = GgufUint32Key(kVersion, 2);
  std::vector<HeaderPiece> pieces;
  bool had_type = false, had_version = false;
  *count = model.gguf.keys.size();
  if (model.kind != ModelKind::kGguf) {
    const auto name = model.config.find("model_type");
    const bool named = name != model.config.end() && name->is_string();
    pieces.push_back(
        {GgufStringKey("general.architecture", named ? name->get<std::string>() : "unknown")});
    *count = 1;
  }
  for (const GgufKey& key : model.gguf.keys) {
    had_version |= key.name == kVersion;
    if (key.name == kType) {
      had_type = true;
      pieces.push_back({type});
    } else if (!pieces.empty() && pieces.back().text.empty()) {
      pieces.back().bytes += key.bytes;
    } else {
      pieces.push_back({"", key.offset, key.bytes});
    }
  }
  if (!had_version) pieces.push_back({version});
  if (!had_type) pieces.push_back({type});
  *count += (had_version ? 0 : 1) + (had_type ? 0 : 1);
  return pieces;
}

}  // namespace

std::string SafetensorsBegin(OutputFile* file) {
  std::vector<uint32_t> order(file->tensors.size());
  std::iota(order.begin(), order.end(), 0);
  // By decreasing size, like the format's own library, so that each is aligned; then in order.
  const auto key = [file](uint32_t i) {
    const OutputTensor& tensor = file->tensors[i];
    const cli::ElementType* type = cli::FindBySafetensors(tensor.dtype);
    return std::tuple(tensor.is_text, type == nullptr ? 0 : -type->bits, i);
  };
  std::sort(order.begin(), order.end(), [&key](uint32_t a, uint32_t b) { return key(a) < key(b); });
  uint64_t at = 0;
  cli::SafetensorsHeaderWriter header(file->metadata, file->tensors.size());
  for (const uint32_t index : order) {
    OutputTensor& tensor = file->tensors[index];
    tensor.offset = at;
    at += tensor.bytes;
    header.Add(tensor.name, tensor.dtype, tensor.shape, tensor.offset, at);
  }
  std::string text = header.Finish(file->header_bytes);
  for (OutputTensor& tensor : file->tensors) tensor.offset += text.size();
  file->header_bytes = text.size();
  file->bytes = text.size() + at;
  return text;
}

absl::StatusOr<OutputFile> PlanSafetensors(const Model& model, const Conversion& conversion,
                                           uint32_t index, const std::string& name) {
  const Shard& shard = model.shards[index];
  OutputFile file;
  file.name = name;
  file.metadata = shard.metadata;
  Reserve(conversion, shard.tensors.size(), &file);
  // A header that readers would refuse is refused before memory is used for it.
  cli::HeaderSizes sizes;
  for (uint32_t i = 0; i < shard.tensors.size(); ++i) {
    QUANTD_RETURN_IF_ERROR(AddJob(model, conversion, {index, i}, &file));
    for (; sizes.tensors < file.tensors.size(); ++sizes.tensors) {
      sizes.dimensions += file.tensors[sizes.tensors].shape.size();
      sizes.bytes += file.tensors[sizes.tensors].name.size();
    }
    absl::Status status = cli::CheckSafetensorsHeader(file.name, sizes);
    if (!status.ok()) return ContentError(status.message());
  }
  QUANTD_RETURN_IF_ERROR(CheckNames(file));
  // Texts that differ in length need room: their shape and offsets may have more digits.
  const bool texts_differ = !conversion.target.decodes && NeedsFacts(conversion.target.layout);
  std::vector<uint64_t> bytes;
  for (OutputTensor& tensor : file.tensors) {
    bytes.push_back(tensor.bytes);
    if (tensor.is_text && texts_differ) {
      tensor.bytes += kLongestNumber;
      tensor.shape = {static_cast<int64_t>(tensor.bytes)};
    }
  }
  SafetensorsBegin(&file);
  for (size_t i = 0; i < bytes.size(); ++i) {
    OutputTensor& tensor = file.tensors[i];
    tensor.bytes = bytes[i];
    if (tensor.is_text && texts_differ) tensor.shape = {static_cast<int64_t>(tensor.bytes)};
  }
  SafetensorsBegin(&file);
  sizes.bytes = file.header_bytes - 8;
  const absl::Status readable = cli::CheckSafetensorsHeader(file.name, sizes);
  if (!readable.ok()) return ContentError(readable.message());
  return file;
}

absl::StatusOr<OutputFile> PlanGguf(const Model& model, const Conversion& conversion,
                                    const std::string& name) {
  OutputFile file;
  file.name = name;
  Reserve(conversion, model.places.size(), &file);
  for (const Place place : model.All()) {
    QUANTD_RETURN_IF_ERROR(AddJob(model, conversion, place, &file));
  }
  QUANTD_RETURN_IF_ERROR(CheckNames(file));
  const bool from_gguf = model.kind == ModelKind::kGguf;
  const uint64_t alignment = from_gguf ? model.gguf.alignment : kGgufAlignment;
  uint64_t keys;
  file.header = GgufKeys(model, conversion, &keys);
  file.header.insert(file.header.begin(), {GgufStart(file.tensors.size(), keys)});
  std::string table;
  uint64_t at = 0;
  for (OutputTensor& tensor : file.tensors) {
    tensor.offset = at;
    absl::StrAppend(&table, GgufTensor(tensor.name, tensor.shape, tensor.ggml_type, at));
    at = AlignUp(at + tensor.bytes, alignment);
  }
  file.header.push_back({std::move(table)});
  for (const HeaderPiece& piece : file.header) {
    file.header_bytes += piece.text.empty() ? piece.bytes : piece.text.size();
  }
  file.header_bytes = AlignUp(file.header_bytes, alignment);
  for (OutputTensor& tensor : file.tensors) tensor.offset += file.header_bytes;
  file.bytes = file.header_bytes + at;
  return file;
}

}  // namespace quantd::checkpoints
