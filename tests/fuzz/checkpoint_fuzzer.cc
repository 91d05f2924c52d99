// Any bytes as the files of a model: a .gguf, the index of a folder, its config.json, the text of a
// quant_state. The first byte chooses.
//
// Checked: no crash; a refusal is one printable line that names the file; tensors lie in their
// file; no allocation that the bytes do not account for; a model that can be opened can be planned,
// or is refused.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoints/convert.h"
#include "checkpoints/gguf.h"
#include "checkpoints/model.h"
#include "counted_memory.h"
#include "folder.h"
#include "fuzzing.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

using checkpoints::Model;
using checkpoints::Tensor;

enum Kind : uint8_t { kGguf, kIndex, kConfig, kState, kKinds };

void Append(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t Size(Random& random, uint64_t usual) {
  return OneIn(random, 30) ? random() >> Below(random, 64) : usual;
}

std::string RandomValue(Random& random, uint32_t type, int depth) {
  const int bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  std::string text;
  if (type == 8) {
    const uint64_t length = Below(random, 5);
    Append(Size(random, length), 8, &text);
    text.append(length, 's');
  } else if (type == 9) {
    const auto element = static_cast<uint32_t>(Below(random, depth > 2 ? 8 : 10));
    const uint64_t count = Below(random, 4);
    Append(element, 4, &text);
    Append(Size(random, count), 8, &text);
    for (uint64_t i = 0; i < count; ++i) text += RandomValue(random, element, depth + 1);
  } else {
    Append(random(), type < std::size(bytes) ? bytes[type] : 4, &text);
  }
  return text;
}

std::string RandomGguf(Random& random) {
  const uint64_t keys = Below(random, 4), tensors = Below(random, 4);
  std::string text = OneIn(random, 50) ? "GGUX" : "GGUF";
  Append(OneIn(random, 30) ? random() : 3, 4, &text);
  Append(Size(random, tensors), 8, &text);
  Append(Size(random, keys), 8, &text);
  for (uint64_t i = 0; i < keys; ++i) {
    const bool alignment = OneIn(random, 6);
    const std::string name = alignment           ? "general.alignment"
                             : OneIn(random, 20) ? absl::StrCat("k\n\x1b[2J", i)
                                                 : absl::StrCat("k", i);
    const auto type =
        alignment ? 4 : static_cast<uint32_t>(Below(random, OneIn(random, 20) ? 16 : 13));
    Append(Size(random, name.size()), 8, &text);
    text += name;
    Append(type, 4, &text);
    if (alignment) {
      Append(uint64_t{1} << Below(random, 8), 4, &text);
    } else {
      text += RandomValue(random, type, 0);
    }
  }
  uint64_t at = 0;
  for (uint64_t i = 0; i < tensors; ++i) {
    const uint32_t types[] = {0, 1, 2, 8, 14, 24, 30, 39, 20, 77};
    const uint32_t rank = static_cast<uint32_t>(Below(random, 4));
    const std::string name =
        absl::StrCat(OneIn(random, 20) ? "\r" : "", "t", OneIn(random, 20) ? 0 : i, ".weight");
    Append(name.size(), 8, &text);
    text += name;
    Append(Size(random, rank) & 0xffffffff, 4, &text);
    for (uint32_t j = 0; j < rank; ++j) {
      Append(Size(random, j == 0 ? 32 * Below(random, 9) : 1 + Below(random, 3)), 8, &text);
    }
    Append(types[Below(random, OneIn(random, 8) ? std::size(types) : 8)], 4, &text);
    Append(Size(random, at), 8, &text);
    at += 1 << 13;
  }
  return text + std::string(OneIn(random, 5) ? Below(random, 1 << 13) : (tensors + 1) << 13, '\0');
}

std::string RandomIndex(Random& random) {
  const char* const maps[] = {R"({"a.weight": "model-1.safetensors", "b": "model-1.safetensors"})",
                              R"({"a.weight": "model-1.safetensors"})",
                              R"({"a.weight": "../model-1.safetensors", "b": 7})",
                              R"({"a.weight": "model-2.safetensors", "b": "model-1.safetensors"})",
                              R"({})",
                              "[[[[]]]]",
                              "1e999"};
  return absl::StrCat(R"({"metadata": {"total_size": 4}, "weight_map": )",
                      maps[Below(random, OneIn(random, 3) ? std::size(maps) : 1)], "}");
}

std::string RandomConfig(Random& random) {
  const char* const values[] = {"1",
                                R"({"quantization_config": {"quant_method": "fp8"}})",
                                "123456789012345678901234567890",
                                "-0.0",
                                R"("\u0001number:12")",
                                R"([1e-5, null, {"b": ""}])",
                                "[[[[[[[[[[[[[[[[[[[[[[["};
  return absl::StrCat(
      R"({"model_type": "x", "a": )", values[Below(random, std::size(values))],
      OneIn(random, 4) ? R"(, "quantization_config": {"quant_method": "awq"}})" : "}");
}

std::string RandomState(Random& random) {
  return absl::StrCat(R"({"quant_type": "nf4", "blocksize": )", OneIn(random, 5) ? "128" : "64",
                      R"(, "dtype": "bfloat16", "shape": [)",
                      OneIn(random, 3) ? "4611686018427387904" : "8", ", 8]",
                      OneIn(random, 3) ? R"(, "nested_blocksize": 256, "nested_dtype": "float32", )"
                                         R"("nested_offset": 1e300)"
                                       : "",
                      "}");
}

}  // namespace

std::string RandomInput(Random& random) {
  const uint64_t kind = Below(random, kKinds);
  std::string text = kind == kGguf     ? RandomGguf(random)
                     : kind == kIndex  ? RandomIndex(random)
                     : kind == kConfig ? RandomConfig(random)
                                       : RandomState(random);
  if (OneIn(random, 4)) text[Below(random, text.size())] = static_cast<char>(random());
  if (OneIn(random, 16)) text.resize(Below(random, text.size() + 1));
  return static_cast<char>(kind) + text;
}

namespace {

std::string Header(const std::string& json, const std::string& data) {
  std::string file;
  Append(json.size(), 8, &file);
  return file + json + data;
}

// A folder with a model.
class ModelFolder : public Folder {
 public:
  ModelFolder() {
    Write("config.json", "{}");
    Write("model-1.safetensors",
          Header(R"({"a.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}, )"
                 R"("b": {"dtype": "U8", "shape": [], "data_offsets": [8, 9]}})",
                 "123456789"));
    Write("model.safetensors.index.json",
          R"({"weight_map": {"a.weight": "model-1.safetensors", "b": "model-1.safetensors"}})");
  }
};

void RequireRefused(const absl::Status& status, absl::string_view name) {
  Require(absl::StrContains(status.message(), name),
          absl::StrCat("it is named: ", status.message()));
  Require(absl::c_none_of(status.message(), [](char c) { return absl::ascii_iscntrl(c); }),
          "an error is one line that a terminal only shows");
}

// True if a model could be read.
bool Read(const std::string& path, absl::string_view name, size_t size) {
  absl::StatusOr<Model> model;
  const wire::MemoryUsed used = wire::Measure([&] { model = checkpoints::OpenModel(path); });
  Require(used.peak_bytes <= 64 * size + (256 << 10), "no more memory than the bytes account for");
  if (!model.ok()) {
    RequireRefused(model.status(), name);
    return false;
  }
  for (const checkpoints::Shard& shard : model->shards) {
    for (const Tensor& tensor : shard.tensors) {
      Require(tensor.offset <= shard.file.size && tensor.bytes <= shard.file.size - tensor.offset,
              "a tensor lies in its file");
    }
  }
  bool planned = false;
  for (const char* to : {"gguf:q8_0", "gguf:f16", "f32", "fp8-tiles", "compressed-tensors:nvfp4"}) {
    const bool gguf = absl::StartsWith(to, "gguf");
    const std::string out = gguf ? "out.gguf" : "out.safetensors";
    checkpoints::ConvertOptions options;
    options.model = path;
    options.out = out;
    options.to = to;
    const auto report = checkpoints::DryRun(options);
    Require(report.ok() || !report.status().message().empty(), "an error says what is wrong");
    planned |= report.ok();
  }
  return planned;
}

}  // namespace
}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd::fuzz;
  static const ModelFolder folder;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool read = false;
  switch (data[0] % kKinds) {
    case kGguf:
      read = Read(folder.Write("fuzz.gguf", bytes), "fuzz.gguf", size);
      std::filesystem::remove(folder.path() + "/fuzz.gguf");
      break;
    case kIndex: {
      static const ModelFolder indexed;
      indexed.Write("model.safetensors.index.json", bytes);
      read = Read(indexed.path(), indexed.path(), size);
      break;
    }
    case kConfig: {
      static const ModelFolder configured;
      configured.Write("config.json", bytes);
      read = Read(configured.path(), configured.path(), size);
      break;
    }
    default: {
      const std::string file = Header(
          absl::StrCat(
              R"({"w": {"dtype": "U8", "shape": [32, 1], "data_offsets": [0, 32]}, )",
              R"("w.absmax": {"dtype": "F32", "shape": [1], "data_offsets": [32, 36]}, )",
              R"("w.quant_map": {"dtype": "F32", "shape": [16], "data_offsets": [36, 100]}, )",
              R"("w.quant_state.bitsandbytes__nf4": {"dtype": "U8", "shape": [)", bytes.size(),
              R"(], "data_offsets": [100, )", 100 + bytes.size(), "]}}"),
          std::string(100, '\0') + bytes);
      read = Read(folder.Write("fuzz.safetensors", file), "fuzz.safetensors", file.size());
    }
  }
  if (read) ++useful_inputs;
  return 0;
}
