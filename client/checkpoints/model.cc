#include "checkpoints/model.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/errors.h"
#include "checkpoints/files.h"
#include "files/file_names.h"
#include "files/tensor_file.h"
#include "status_macros.h"

namespace quantd::checkpoints {
namespace {

constexpr uint64_t kMaxConfig = 4 << 20;
constexpr uint64_t kMaxIndex = 64 << 20;
constexpr size_t kMaxShards = 10'000;
// The most bytes of names, shapes and metadata from headers, which are kept in memory.
constexpr uint64_t kMaxKept = 128 << 20;
constexpr char kWeightMap[] = "weight_map";
constexpr char kOneShard[] = "model.safetensors";

absl::Status Named(const absl::Status& status, const std::string& path) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return ContentError("$0: $1", path, status.message());
}

absl::Status ReadSafetensors(const OpenFile& file, Shard* shard) {
  std::array<uint8_t, 8> start{};
  const absl::Span<uint8_t> head =
      absl::MakeSpan(start).first(std::min<uint64_t>(start.size(), shard->file.size));
  QUANTD_RETURN_IF_ERROR(file.Read(0, head));
  QUANTD_ASSIGN_OR_RETURN(const uint64_t length,
                          cli::SafetensorsHeaderLength(head, shard->file.size));
  std::string text(length, '\0');
  QUANTD_RETURN_IF_ERROR(file.Read(8, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  cli::TensorFile parsed;
  QUANTD_RETURN_IF_ERROR(cli::ParseSafetensorsHeader(text, shard->file.size, &parsed));
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

// The approximate memory of the kept contents of a shard's header.
uint64_t Kept(const Shard& shard) {
  constexpr uint64_t kBlock = 32, kNode = 160;  // of the allocator, and of an entry of a map
  uint64_t bytes = 0;
  for (const Tensor& tensor : shard.tensors) {
    bytes += sizeof(Tensor) + kBlock + tensor.name.size() + tensor.shape.size() * sizeof(int64_t);
  }
  for (const auto& [key, value] : shard.metadata) bytes += kNode + key.size() + value.size();
  return bytes;
}

absl::Status OpenShard(Model* model, const std::string& path, const std::string& name, bool gguf) {
  QUANTD_ASSIGN_OR_RETURN(InputFile input, InputFile::Of(path, name));
  Shard& shard = model->shards.emplace_back();
  shard.file = std::move(input);
  QUANTD_ASSIGN_OR_RETURN(const std::unique_ptr<OpenFile> file, OpenFile::Open(shard.file));
  if (!gguf) {
    absl::Status read = Named(ReadSafetensors(*file, &shard), path);
    model->kept += Kept(shard);
    if (!read.ok() || model->kept <= kMaxKept) return read;
    return ContentError(
        "$0: with it the headers of the model's shards take $1 bytes of memory, $2 are the most",
        path, model->kept, kMaxKept);
  }
  absl::StatusOr<GgufHeader> header = ReadGguf(*file, shard.file.size);
  if (!header.ok()) return Named(header.status(), path);
  shard.tensors = std::move(header->tensors);
  model->gguf = *std::move(header);
  return absl::OkStatus();
}

// Calls visit(tensor, its shard) for the weight_map of an index, until a call fails. Returns the
// index with an empty one.
absl::StatusOr<Json> VisitIndex(
    const InputFile& file,
    absl::FunctionRef<absl::Status(const std::string&, const std::string&)> visit) {
  QUANTD_ASSIGN_OR_RETURN(const std::string text, ReadText(file, kMaxIndex));
  bool any = false;
  const auto count = [&](const std::string& tensor, const std::string& shard) {
    any = true;
    return visit(tensor, shard);
  };
  const VisitedMap map{kWeightMap, count};
  absl::StatusOr<Json> index = ParseJson(text, file.path, &map);
  if (index.ok() && !any) return ContentError("$0: it has no $1", file.path, kWeightMap);
  return index;
}

// Reads the names of shards in an index, each a file beside it, and the rest of the index.
absl::StatusOr<std::vector<std::string>> ReadIndex(Model* model) {
  const std::string& path = model->index_file->path;
  absl::flat_hash_set<std::string> found;
  QUANTD_ASSIGN_OR_RETURN(
      model->index,
      VisitIndex(*model->index_file, [&](const std::string& tensor, const std::string& name) {
        if (found.contains(name)) return absl::OkStatus();
        if (!absl::EndsWith(name, ".safetensors") || absl::StrContains(name, '/') ||
            name[0] == '.') {
          return ContentError(
              "$0: the shard of '$1' is '$2', which is not a .safetensors beside it", path, tensor,
              name);
        }
        if (found.size() == kMaxShards) {
          return ContentError("$0: it lists more than $1 shards", path, kMaxShards);
        }
        found.insert(name);
        return absl::OkStatus();
      }));
  model->index.erase(kWeightMap);
  std::vector<std::string> names(found.begin(), found.end());
  std::sort(names.begin(), names.end());
  return names;
}

// Checks that the index has the right shard for each tensor, and nothing else.
absl::Status CheckIndex(const Model& model) {
  const std::string& path = model.index_file->path;
  std::vector<std::vector<bool>> listed;
  listed.reserve(model.shards.size());
  for (const Shard& shard : model.shards) listed.emplace_back(shard.tensors.size());
  const auto index =
      VisitIndex(*model.index_file, [&](const std::string& name, const std::string& shard) {
        const auto found = model.places.find(name);
        if (found == model.places.end()) {
          return ContentError("$0: it lists '$1' in $2, which does not hold it", path, name, shard);
        }
        const Place& place = found->second;
        const std::string& holder = model.shards[place.shard].file.name;
        if (shard != holder) {
          return ContentError("$0: it lists '$1' in $2, it is in $3", path, name, shard, holder);
        }
        if (listed[place.shard][place.tensor]) {
          return ContentError("$0: it lists '$1' twice", path, name);
        }
        listed[place.shard][place.tensor] = true;
        return absl::OkStatus();
      });
  if (!index.ok()) return index.status();
  for (uint32_t i = 0; i < listed.size(); ++i) {
    const auto missing = std::find(listed[i].begin(), listed[i].end(), false);
    if (missing == listed[i].end()) continue;
    const auto tensor = static_cast<size_t>(missing - listed[i].begin());
    return ContentError("$0: it does not list '$1', which is in $2", path,
                        model.shards[i].tensors[tensor].name, model.shards[i].file.name);
  }
  return absl::OkStatus();
}

absl::Status FindPlaces(Model* model) {
  for (uint32_t i = 0; i < model->shards.size(); ++i) {
    const std::vector<Tensor>& tensors = model->shards[i].tensors;
    if (model->places.size() + tensors.size() > cli::kMaxTensors) {
      return ContentError("$0: it has more than $1 tensors", model->path, cli::kMaxTensors);
    }
    for (uint32_t j = 0; j < tensors.size(); ++j) {
      const auto [found, is_new] = model->places.try_emplace(tensors[j].name, Place{i, j});
      if (is_new) continue;
      return ContentError("$0: '$1' is in $2 and in $3", model->path, tensors[j].name,
                          model->shards[found->second.shard].file.name, model->shards[i].file.name);
    }
  }
  return absl::OkStatus();
}

absl::Status OpenFolder(Model* model) {
  QUANTD_ASSIGN_OR_RETURN(std::vector<InputFile> files, ListFiles(model->path));
  const auto find = [&files](absl::string_view name) -> const InputFile* {
    const auto at = std::lower_bound(
        files.begin(), files.end(), name,
        [](const InputFile& file, absl::string_view other) { return file.name < other; });
    return at == files.end() || at->name != name ? nullptr : &*at;
  };
  if (find(kConfig) == nullptr) {
    return ContentError("$0 has no $1; of a model without one, give the .safetensors itself",
                        model->path, kConfig);
  }
  model->config_file = *find(kConfig);
  QUANTD_ASSIGN_OR_RETURN(const std::string text, ReadText(*model->config_file, kMaxConfig));
  QUANTD_ASSIGN_OR_RETURN(model->config, ParseJson(text, model->config_file->path));
  if (const InputFile* file = find(kHfQuantConfig); file != nullptr) {
    QUANTD_ASSIGN_OR_RETURN(const std::string modelopt, ReadText(*file, kMaxConfig));
    QUANTD_ASSIGN_OR_RETURN(model->hf_quant_config, ParseJson(modelopt, file->path));
  }
  std::vector<std::string> shards = {kOneShard};
  if (find(kIndex) != nullptr) {
    model->index_file = *find(kIndex);
    QUANTD_ASSIGN_OR_RETURN(shards, ReadIndex(model));
  } else if (find(kOneShard) == nullptr) {
    return ContentError("$0 has neither $1 nor $2", model->path, kOneShard, kIndex);
  }
  for (const std::string& name : shards) {
    if (find(name) == nullptr) {
      return ContentError("$0/$1 is missing: $2 lists it", model->path, name, kIndex);
    }
    QUANTD_RETURN_IF_ERROR(OpenShard(model, find(name)->path, name, /*gguf=*/false));
  }
  for (InputFile& file : files) {
    const bool shard = std::binary_search(shards.begin(), shards.end(), file.name);
    if (shard || file.name == kConfig || file.name == kIndex) continue;
    if (absl::EndsWith(file.name, ".safetensors")) {
      model->foreign.push_back(file.name);
    } else if (!HoldsWeights(file.name)) {
      model->others.push_back(std::move(file));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const Tensor* Model::Find(absl::string_view name) const {
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &tensor(found->second);
}

std::vector<Place> Model::All() const {
  std::vector<Place> all;
  for (uint32_t i = 0; i < shards.size(); ++i) {
    for (uint32_t j = 0; j < shards[i].tensors.size(); ++j) all.push_back({i, j});
  }
  return all;
}

std::vector<const InputFile*> Model::Files() const {
  std::vector<const InputFile*> files;
  files.reserve(shards.size());
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
    return FileError(errno, "cannot open $0", path);
  }
  absl::Status opened;
  if (S_ISDIR(status.st_mode)) {
    model.kind = ModelKind::kFolder;
    opened = OpenFolder(&model);
  } else {
    const bool gguf = absl::EndsWithIgnoreCase(model.path, ".gguf");
    if (!gguf && !absl::EndsWithIgnoreCase(model.path, ".safetensors")) {
      return ContentError("$0: a model is a folder, a .safetensors or a .gguf", path);
    }
    if (gguf) model.kind = ModelKind::kGguf;
    opened = OpenShard(&model, model.path, cli::NameOf(model.path), gguf);
  }
  if (opened.ok()) opened = FindPlaces(&model);
  if (opened.ok() && model.index_file.has_value()) opened = CheckIndex(model);
  if (!opened.ok()) return opened;
  return model;
}

}  // namespace quantd::checkpoints
