// Any bytes as a file that quantctl reads: .npy, .safetensors (with the description of quantized
// tensors in it), or that description on its own. The first byte chooses.
//
// Checked: no crash; the tensors that are found lie in the file and can be read; no allocation that
// the file's size does not account for.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "counted_memory.h"
#include "files/quantized_file.h"
#include "files/source.h"
#include "files/tensor_file.h"
#include "folder.h"
#include "fuzzing.h"

namespace quantd::fuzz {

uint64_t useful_inputs = 0;

namespace {

using cli::StoredTensor;
using cli::TensorFile;

// The description of a quantized tensor; the metadata contains a copy of it as a JSON string.
std::string RandomDescription(Random& random) {
  const char* const shapes[] = {"[2]", "[2,1]", "[]", "[-1]", "[1e3]", "[9223372036854775807,2]"};
  const std::string shape = shapes[Below(random, OneIn(random, 4) ? std::size(shapes) : 1)];
  std::string text = absl::StrCat(
      R"({"version": 1, "tensors": {"w": {"input_type": "float", )",
      OneIn(random, 2) ? R"("axis": 0, "block_size": 2, )" : R"("block_shape": [-1], )",
      R"("y": {"tensor": "a", "type": "int8", "shape": )", shape,
      R"(}, "scale": {"tensor": "b", "type": "float", "shape": [2]}}}})");
  if (OneIn(random, 4)) text[Below(random, text.size())] = static_cast<char>(random());
  return text;
}

std::string RandomNpy(Random& random) {
  const char* const types[] = {"<f4", ">f8", "|u1", "<i8", "<c8", "|O", "<f2", "=f4", ">i2"};
  const char* const shapes[] = {"(2, 3)",
                                "()",
                                "(7,)",
                                "(2L, 3L)",
                                "(0, 99999999999)",
                                "(1, 2, 3",
                                "(4294967296, 4294967296)"};
  std::string header = absl::StrCat(
      "{'descr': '", types[Below(random, std::size(types))],
      "', 'fortran_order': ", OneIn(random, 2) ? "True" : "False",
      ", 'shape': ", shapes[Below(random, OneIn(random, 4) ? std::size(shapes) : 4)], ", }\n");
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  return file + header + std::string(Below(random, 120), 'x');
}

std::string RandomSafetensors(Random& random) {
  std::string escaped;
  for (const char byte : RandomDescription(random)) {
    if (byte == '"' || byte == '\\') escaped.push_back('\\');
    escaped.push_back(byte);
  }
  const std::string metadata =
      OneIn(random, 2) ? absl::StrCat(R"("__metadata__": {"quantd": ")", escaped, R"("}, )") : "";
  const uint64_t end = OneIn(random, 10) ? random() >> Below(random, 64) : 10;
  std::string json =
      absl::StrCat("{", metadata, R"("a": {"dtype": "I8", "shape": [2], "data_offsets": [0, 2]}, )",
                   R"("b": {"dtype": "F32", "shape": [2], "data_offsets": [2, )", end, "]}}");
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(json.size() >> (8 * i)));
  return file + json + std::string(OneIn(random, 4) ? Below(random, 22) : 10, 'x');
}

}  // namespace

std::string RandomInput(Random& random) {
  const uint64_t kind = Below(random, 3);
  std::string file = kind == 0   ? RandomNpy(random)
                     : kind == 1 ? RandomSafetensors(random)
                                 : RandomDescription(random);
  if (OneIn(random, 4)) file[Below(random, file.size())] = static_cast<char>(random());
  if (OneIn(random, 16)) file.resize(Below(random, file.size() + 1));
  return static_cast<char>(kind) + file;
}

namespace {

// A JSON text takes some sixty times its size in memory, with its names, vectors and texts.
template <typename Work>
void WithMemoryFor(size_t bytes, Work work) {
  const wire::MemoryUsed used = wire::Measure(work);
  Require(used.peak_bytes <= 64 * bytes + (16 << 10), "no more memory than the file accounts for");
}

void RequireRefused(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status),
          absl::StrCat("it is the file's fault: ", status.message()));
  Require(!status.message().empty(), "an error says what is wrong");
}

void Read(const cli::Source& source, const std::string& path, size_t size) {
  WithMemoryFor(size, [&] {
    cli::OutputFile scratch;
    const absl::StatusOr<TensorView> view = source.View(path, &scratch);
    Require(view.ok(), "what was found can be read");
    const std::vector<uint8_t> copy(view->bytes.begin(), view->bytes.end());
  });
}

// True if something could be read.
bool ReadFile(const std::string& path, const std::string& bytes) {
  absl::StatusOr<TensorFile> file;
  WithMemoryFor(bytes.size() + path.size(), [&] { file = cli::OpenTensorFile(path); });
  if (!file.ok()) {
    RequireRefused(file.status());
    return false;
  }
  for (const StoredTensor& tensor : file->tensors) {
    Require(tensor.offset <= bytes.size() && tensor.byte_size <= bytes.size() - tensor.offset,
            "a tensor lies in its file");
    const absl::StatusOr<cli::Source> source = cli::Source::Of(*file, tensor);
    if (source.ok()) Read(*source, path, bytes.size());
  }
  absl::StatusOr<std::vector<cli::QuantizedTensor>> quantized;
  WithMemoryFor(bytes.size() + path.size(), [&] { quantized = cli::FindQuantizedTensors(*file); });
  if (!quantized.ok()) {
    RequireRefused(quantized.status());
    return true;
  }
  for (const cli::QuantizedTensor& tensor : *quantized) {
    Read(tensor.y, path, bytes.size());
    Read(tensor.scale, path, bytes.size());
    if (tensor.zero_point.has_value()) Read(*tensor.zero_point, path, bytes.size());
    if (tensor.tensor_scale.has_value()) Read(*tensor.tensor_scale, path, bytes.size());
  }
  return true;
}

}  // namespace
}  // namespace quantd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quantd;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // From memory that ends where the file ends, so that a sanitizer sees reads beyond it.
  const std::vector<uint8_t> exact(data + 1, data + size);
  bool read = false;
  if (data[0] % 3 == 0) {
    const absl::StatusOr<cli::StoredTensor> tensor = cli::ParseNpy(exact);
    read = fuzz::ReadFile(folder.Write("fuzz.npy", bytes), bytes);
    fuzz::Require(read == tensor.ok(), "a file is what its bytes are");
  } else if (data[0] % 3 == 1) {
    cli::TensorFile file;
    const absl::Status status = cli::ParseSafetensors(exact, &file);
    read = fuzz::ReadFile(folder.Write("fuzz.safetensors", bytes), bytes);
    fuzz::Require(read == status.ok(), "a file is what its bytes are");
  } else {
    const auto entries = cli::QuantizedEntriesFromJson(bytes);
    read = entries.ok();
    if (!read) fuzz::RequireRefused(entries.status());
    if (read) {
      const auto again = cli::QuantizedEntriesFromJson(cli::QuantizedEntriesToJson(*entries));
      fuzz::Require(again.ok() && again->size() == entries->size(), "what is written can be read");
    }
  }
  if (read) ++fuzz::useful_inputs;
  return 0;
}
