// Calls ONNX Runtime from its shared library.
//
// OrtGetApiBase()->GetApi(version) returns a table of function pointers that only grows at its end,
// so a function's place in it is part of the ABI. The wheel has the library but no header; these
// are the places. Each function that makes an object returns it through its last argument.
#include "onnxruntime.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace quantd::bench {
namespace {

using Api = const void* const*;

enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kCreateTensorWithData = 49,
  kCreateCpuMemoryInfo = 69,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseValue = 96,
  kReleaseSessionOptions = 100,
};
constexpr uint32_t kApiVersion = 1;  // all of these are in the first version
constexpr int kWarnings = 2;         // what the library logs: warnings and errors

template <typename Result, typename... Arguments>
Result Call(Api api, Place place, Arguments... arguments) {
  using Function = Result(Arguments...);
  return reinterpret_cast<Function*>(const_cast<void*>(api[place]))(arguments...);
}

// A function that returns a status, which is null on success.
template <typename... Arguments>
absl::Status Try(Api api, Place place, Arguments... arguments) {
  void* const status = Call<void*>(api, place, arguments...);
  if (status == nullptr) return absl::OkStatus();
  absl::Status result = absl::InternalError(Call<const char*>(api, kGetErrorMessage, status));
  Call<void>(api, kReleaseStatus, status);
  return result;
}

// The result of OrtGetApiBase().
struct ApiBase {
  const void* (*get_api)(uint32_t version);  // null: the library is older
  const char* (*get_version_string)();
};

// Inputs or outputs; frees the values.
struct Values {
  ~Values() {
    for (void* value : values) Call<void>(api, kReleaseValue, value);
  }
  absl::Status Add(const std::vector<OrtTensor>& tensors) {
    void* memory = nullptr;  // the device allocator and the default memory type
    absl::Status status = Try(api, kCreateCpuMemoryInfo, 0, 0, &memory);
    for (const OrtTensor& tensor : tensors) {
      void* value = nullptr;
      if (!status.ok()) break;
      status = Try(api, kCreateTensorWithData, memory, tensor.data, tensor.bytes,
                   tensor.shape.data(), tensor.shape.size(), static_cast<int>(tensor.type), &value);
      if (!status.ok()) break;
      names.push_back(tensor.name);
      values.push_back(value);
    }
    if (memory != nullptr) Call<void>(api, kReleaseMemoryInfo, memory);
    return status;
  }

  Api api;
  std::vector<const char*> names = {};
  std::vector<void*> values = {};
};

}  // namespace

absl::StatusOr<OrtModel> OrtModel::Open(const std::string& library, const std::string& path,
                                        int threads) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(dlerror());
  const auto get_base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr) return absl::NotFoundError(library + " has no OrtGetApiBase");
  const auto api = static_cast<Api>(get_base()->get_api(kApiVersion));
  if (api == nullptr) {
    return absl::UnimplementedError(absl::StrCat("ONNX Runtime ", get_base()->get_version_string(),
                                                 " has no API of version 1"));
  }
  void *environment = nullptr, *options = nullptr, *session = nullptr;
  absl::Status status = Try(api, kCreateEnv, kWarnings, "bench", &environment);
  if (status.ok()) status = Try(api, kCreateSessionOptions, &options);
  if (status.ok()) status = Try(api, kSetIntraOpNumThreads, options, threads);
  if (status.ok()) status = Try(api, kCreateSession, environment, path.c_str(), options, &session);
  if (options != nullptr) Call<void>(api, kReleaseSessionOptions, options);
  if (!status.ok()) return status;
  return OrtModel(api, session);
}

absl::StatusOr<std::function<absl::Status()>> OrtModel::Bind(
    const std::vector<OrtTensor>& inputs, const std::vector<OrtTensor>& outputs) const {
  const auto in = std::make_shared<Values>(api_), out = std::make_shared<Values>(api_);
  absl::Status status = in->Add(inputs);
  if (status.ok()) status = out->Add(outputs);
  if (!status.ok()) return status;
  return [api = api_, session = session_, in, out] {
    const void* const as_usual = nullptr;
    return Try(api, kRun, session, as_usual, in->names.data(), in->values.data(), in->names.size(),
               out->names.data(), out->names.size(), out->values.data());
  };
}

}  // namespace quantd::bench
