#include "checkpoints/model.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "checkpoints/folder.h"
#include "files/tensor_file.h"

namespace quantd::checkpoints {
namespace {

constexpr uint64_t kMaxConfig = 4 << 20;
constexpr uint64_t kMaxIndex = 100 << 20;
constexpr char kOneShard[] = "model.safetensors";

absl::Status Named(const absl::Status& status, const std::string& path) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return ContentError(absl::StrCat(path, ": ", status.message()));
}

absl::Status ReadSafetensors(const OpenFile& file, Shard* shard) {
  std::array<uint8_t, 8> start{};
  const absl::Span<uint8_t> head =
      absl::MakeSpan(start).first(std::min<uint64_t>(start.size(), shard->file.size));
  absl::Status status = file.Read(0, head);
  if (!status.ok()) return status;
  const absl::StatusOr<uint64_t> length = cli::SafetensorsHeaderLength(head, shard->file.size);
  if (!length.ok()) return length.status();
  std::string text(*length, '\0');
  status = file.Read(8, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  if (!status.ok()) return status;
  cli::TensorFile parsed;
  status = cli::ParseSafetensorsHeader(text, shard->file.size, &parsed);
  if (!status.ok()) return status;
  shard->metadata = std::move(parsed.metadata);
  shard->tensors.reserve(parsed.tensors.size());
  for (cli::StoredTensor& stored : parsed.tensors) {
    Tensor& tensor = shard->tensors.emplace_back();
    tensor.name = std::move(stored.name);
    tensor.dtype = stored.type->safetensors;
    tensor.type = FloatType(tensor.dtype);
    tensor.shape = std::move(stored.shape);
    tensor.offset = stored.offset;
    tensor.bytes = stored.byte_size;
  }
  return absl::OkStatus();
}

absl::Status OpenShard(Model* model, const std::string& path, const std::string& name, bool gguf) {
  absl::StatusOr<InputFile> input = InputFile::Of(path, name);
  if (!input.ok()) return input.status();
  Shard& shard = model->shards.emplace_back();
  shard.file = *std::move(input);
  const absl::StatusOr<std::unique_ptr<OpenFile>> file = OpenFile::Open(shard.file);
  if (!file.ok()) return file.status();
  if (!gguf) return Named(ReadSafetensors(**file, &shard), path);
  absl::StatusOr<GgufHeader> header = ReadGguf(**file, shard.file.size);
  if (!header.ok()) return Named(header.status(), path);
  shard.tensors = std::move(header->tensors);
  model->gguf = *std::move(header);
  return absl::OkStatus();
}

// The names of shards that an index lists, each a file beside it.
absl::StatusOr<std::vector<std::string>> ShardsOf(const Json& index, const std::string& path) {
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return ContentError(absl::StrCat(path, ": it has no weight_map"));
  }
  std::vector<std::string> names;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) {
      return ContentError(absl::StrCat(path, ": the shard of '", tensor, "' is not a text"));
    }
    const auto& name = shard.get_ref<const std::string&>();
    if (!absl::EndsWith(name, ".safetensors") || absl::StrContains(name, '/') || name[0] == '.') {
      return ContentError(absl::StrCat(path, ": the shard of '", tensor, "' is '", name,
                                       "', which is not a .safetensors beside it"));
    }
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The index says of each tensor where it is, and says nothing else.
absl::Status CheckIndex(const Model& model) {
  const std::string& path = model.index_file->path;
  const Json& map = model.index["weight_map"];
  for (const auto& [name, shard] : map.items()) {
    const auto found = model.places.find(name);
    if (found == model.places.end()) {
      return ContentError(absl::StrCat(path, ": it lists '", name, "' in ",
                                       shard.get_ref<const std::string&>(),
                                       ", which does not hold it"));
    }
    const std::string& holder = model.shards[found->second.shard].file.name;
    if (shard != holder) {
      return ContentError(absl::StrCat(path, ": it lists '", name, "' in ",
                                       shard.get_ref<const std::string&>(), ", it is in ", holder));
    }
  }
  if (map.size() == model.places.size()) return absl::OkStatus();
  for (const auto& [name, place] : model.places) {
    if (!map.contains(std::string(name))) {
      return ContentError(absl::StrCat(path, ": it does not list '", name, "', which is in ",
                                       model.shards[place.shard].file.name));
    }
  }
  return absl::OkStatus();
}

absl::Status FindPlaces(Model* model) {
  for (uint32_t i = 0; i < model->shards.size(); ++i) {
    const std::vector<Tensor>& tensors = model->shards[i].tensors;
    if (model->places.size() + tensors.size() > kMaxTensors) {
      return ContentError(
          absl::StrCat(model->path, ": it has more than ", kMaxTensors, " tensors"));
    }
    for (uint32_t j = 0; j < tensors.size(); ++j) {
      const auto [found, is_new] = model->places.try_emplace(tensors[j].name, Place{i, j});
      if (is_new) continue;
      return ContentError(absl::StrCat(model->path, ": '", tensors[j].name, "' is in ",
                                       model->shards[found->second.shard].file.name, " and in ",
                                       model->shards[i].file.name));
    }
  }
  return absl::OkStatus();
}

absl::Status OpenFolder(Model* model) {
  absl::StatusOr<std::vector<InputFile>> files = ListFiles(model->path);
  if (!files.ok()) return files.status();
  const auto find = [&files](absl::string_view name) -> const InputFile* {
    for (const InputFile& file : *files) {
      if (file.name == name) return &file;
    }
    return nullptr;
  };
  const auto read = [&find](const char* name, uint64_t most, std::optional<InputFile>* file,
                            Json* json) {
    *file = *find(name);
    const absl::StatusOr<std::string> text = ReadText(**file, most);
    if (!text.ok()) return text.status();
    absl::StatusOr<Json> parsed = ParseJson(*text, (*file)->path);
    if (parsed.ok()) *json = *std::move(parsed);
    return parsed.status();
  };
  if (find(kConfig) == nullptr) {
    return ContentError(absl::StrCat(model->path, " has no ", kConfig));
  }
  absl::Status status = read(kConfig, kMaxConfig, &model->config_file, &model->config);
  if (!status.ok()) return status;
  std::vector<std::string> shards = {kOneShard};
  if (find(kIndex) != nullptr) {
    status = read(kIndex, kMaxIndex, &model->index_file, &model->index);
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<std::string>> named =
        ShardsOf(model->index, model->index_file->path);
    if (!named.ok()) return named.status();
    shards = *std::move(named);
  } else if (find(kOneShard) == nullptr) {
    return ContentError(absl::StrCat(model->path, " has neither ", kOneShard, " nor ", kIndex));
  }
  for (const std::string& name : shards) {
    if (find(name) == nullptr) {
      return ContentError(
          absl::StrCat(model->path, "/", name, " is missing: ", kIndex, " lists it"));
    }
    status = OpenShard(model, find(name)->path, name, /*gguf=*/false);
    if (!status.ok()) return status;
  }
  for (InputFile& file : *files) {
    const bool shard = std::binary_search(shards.begin(), shards.end(), file.name);
    if (shard || file.name == kConfig || file.name == kIndex || HoldsWeights(file.name)) continue;
    model->others.push_back(std::move(file));
  }
  return absl::OkStatus();
}

}  // namespace

const Tensor* Model::Find(absl::string_view name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &tensor(found->second);
}

std::vector<const InputFile*> Model::Files() const {
  std::vector<const InputFile*> files;
  for (const Shard& shard : shards) files.push_back(&shard.file);
  for (const InputFile& file : others) files.push_back(&file);
  if (config_file.has_value()) files.push_back(&*config_file);
  if (index_file.has_value()) files.push_back(&*index_file);
  return files;
}

absl::StatusOr<Model> OpenModel(const std::string& path) {
  Model model;
  model.path = path;
  while (model.path.size() > 1 && model.path.back() == '/') model.path.pop_back();
  struct stat status;
  if (stat(model.path.c_str(), &status) != 0) {
    return FileError(errno, absl::StrCat("cannot open ", path));
  }
  absl::Status opened;
  if (S_ISDIR(status.st_mode)) {
    model.kind = ModelKind::kFolder;
    opened = OpenFolder(&model);
  } else {
    const bool gguf = absl::EndsWithIgnoreCase(model.path, ".gguf");
    if (!gguf && !absl::EndsWithIgnoreCase(model.path, ".safetensors")) {
      return ContentError(absl::StrCat(path, ": a model is a folder, a .safetensors or a .gguf"));
    }
    if (gguf) model.kind = ModelKind::kGguf;
    opened = OpenShard(&model, model.path, LastPart(model.path), gguf);
  }
  if (opened.ok()) opened = FindPlaces(&model);
  if (opened.ok() && model.index_file.has_value()) {
    opened = CheckIndex(model);
    model.index.erase("weight_map");  // places has it now
  }
  if (!opened.ok()) return opened;
  return model;
}

}  // namespace quantd::checkpoints
