// ONNX Runtime through its C API, from a shared library that is loaded at run time: as much of it
// as a comparison needs.
//
//   auto library = OnnxRuntime::Load("/path/libonnxruntime.so.1");
//   auto session = (*library)->Open("quantize.onnx", 1);
//   auto bound = (*session)->Bind({{"x", x, bytes, {n}, OrtElementType::kFloat}},
//   ...); absl::Status status = (*bound)->Run();
#ifndef QUANTD_TESTS_BENCH_PEERS_ONNXRUNTIME_H_
#define QUANTD_TESTS_BENCH_PEERS_ONNXRUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "peers_onnxruntime_api.h"

namespace quantd::bench {

// A tensor in memory that somebody else owns.
struct OrtTensor {
  const char* name;
  void* data;
  size_t bytes;
  std::vector<int64_t> shape;
  OrtElementType type;
};

// A session's inputs and outputs, tied to memory: may run again and again.
class OrtBound {
 public:
  OrtBound(const OrtApi& api, OrtSession* session) : api_(api), session_(session) {}
  ~OrtBound();
  OrtBound(const OrtBound&) = delete;
  OrtBound& operator=(const OrtBound&) = delete;

  absl::Status Run();

 private:
  friend class OrtModel;
  const OrtApi api_;
  OrtSession* const session_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<OrtValue*> inputs_, outputs_;
};

// A model ready to run. Safe from any thread.
class OrtModel {
 public:
  OrtModel(const OrtApi& api, OrtSession* session) : api_(api), session_(session) {}
  ~OrtModel();
  OrtModel(const OrtModel&) = delete;
  OrtModel& operator=(const OrtModel&) = delete;

  // Outputs are written where they are bound; the library allocates and copies none of them.
  absl::StatusOr<std::unique_ptr<OrtBound>> Bind(const std::vector<OrtTensor>& inputs,
                                                 const std::vector<OrtTensor>& outputs) const;

 private:
  const OrtApi api_;
  OrtSession* const session_;
};

// The library. Stays loaded until the process ends; models must not outlive this object.
class OnnxRuntime {
 public:
  static absl::StatusOr<std::unique_ptr<OnnxRuntime>> Load(const std::string& path);
  ~OnnxRuntime();
  OnnxRuntime(const OnnxRuntime&) = delete;
  OnnxRuntime& operator=(const OnnxRuntime&) = delete;

  // Runs an operator in `threads` threads, the caller's among them; all else is the default.
  absl::StatusOr<std::unique_ptr<OrtModel>> Open(const std::string& path, int threads) const;
  const std::string& version() const { return version_; }

 private:
  OnnxRuntime(const OrtApi& api, OrtEnv* environment, std::string version)
      : api_(api), environment_(environment), version_(std::move(version)) {}

  const OrtApi api_;
  OrtEnv* const environment_;
  const std::string version_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_PEERS_ONNXRUNTIME_H_
