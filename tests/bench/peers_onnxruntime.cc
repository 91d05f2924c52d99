// See peers_onnxruntime.h.
#include "peers_onnxruntime.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::bench {
namespace {

constexpr int kWarnings = 2;  // what the library logs: warnings and errors

absl::Status ToStatus(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return absl::OkStatus();
  absl::Status result = absl::InternalError(api.GetErrorMessage(status));
  api.Release(status);
  return result;
}

absl::Status MakeValues(const OrtApi& api, const OrtMemoryInfo* memory,
                        const std::vector<OrtTensor>& tensors, std::vector<const char*>& names,
                        std::vector<OrtValue*>& values) {
  for (const OrtTensor& tensor : tensors) {
    OrtValue* value = nullptr;
    absl::Status status = ToStatus(api, api.CreateTensorWithDataAsOrtValue(
                                            memory, tensor.data, tensor.bytes, tensor.shape.data(),
                                            tensor.shape.size(), tensor.type, &value));
    if (!status.ok()) return status;
    names.push_back(tensor.name);
    values.push_back(value);
  }
  return absl::OkStatus();
}

}  // namespace

OrtBound::~OrtBound() {
  for (OrtValue* value : inputs_) api_.Release(value);
  for (OrtValue* value : outputs_) api_.Release(value);
}

absl::Status OrtBound::Run() {
  return ToStatus(api_, api_.Run(session_, input_names_.data(), inputs_.data(), inputs_.size(),
                                 output_names_.data(), output_names_.size(), outputs_.data()));
}

OrtModel::~OrtModel() { api_.Release(session_); }

absl::StatusOr<std::unique_ptr<OrtBound>> OrtModel::Bind(
    const std::vector<OrtTensor>& inputs, const std::vector<OrtTensor>& outputs) const {
  OrtMemoryInfo* memory = nullptr;
  absl::Status status = ToStatus(api_, api_.CreateCpuMemoryInfo(&memory));
  if (!status.ok()) return status;
  auto bound = std::make_unique<OrtBound>(api_, session_);
  status = MakeValues(api_, memory, inputs, bound->input_names_, bound->inputs_);
  if (status.ok()) {
    status = MakeValues(api_, memory, outputs, bound->output_names_, bound->outputs_);
  }
  api_.Release(memory);
  if (!status.ok()) return status;
  return bound;
}

absl::StatusOr<std::unique_ptr<OnnxRuntime>> OnnxRuntime::Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  const auto get_base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) return absl::NotFoundError(absl::StrCat(path, " has no OrtGetApiBase"));
  // A library knows every API version up to its own.
  const void* const table = get_base()->get_api(OrtApi::kVersion);
  std::string version = get_base()->get_version_string();
  if (table == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("ONNX Runtime ", version, " has no API of version 1"));
  }
  const OrtApi api(table);
  OrtEnv* environment = nullptr;
  absl::Status status = ToStatus(api, api.CreateEnv(kWarnings, "bench", &environment));
  if (!status.ok()) return status;
  return std::unique_ptr<OnnxRuntime>(new OnnxRuntime(api, environment, std::move(version)));
}

OnnxRuntime::~OnnxRuntime() { api_.Release(environment_); }

absl::StatusOr<std::unique_ptr<OrtModel>> OnnxRuntime::Open(const std::string& path,
                                                            int threads) const {
  OrtSessionOptions* options = nullptr;
  absl::Status status = ToStatus(api_, api_.CreateSessionOptions(&options));
  if (!status.ok()) return status;
  OrtSession* session = nullptr;
  status = ToStatus(api_, api_.SetIntraOpNumThreads(options, threads));
  if (status.ok()) {
    status = ToStatus(api_, api_.CreateSession(environment_, path.c_str(), options, &session));
  }
  api_.Release(options);
  if (!status.ok()) return status;
  return std::make_unique<OrtModel>(api_, session);
}

}  // namespace quantd::bench
