// ONNX Runtime through its C API, from a shared library that is loaded at run time: only what the
// comparisons need.
#ifndef QUANTD_TESTS_BENCH_ONNXRUNTIME_H_
#define QUANTD_TESTS_BENCH_ONNXRUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quantd::bench {

// The ONNX TensorProto.DataTypes that are used.
enum class OrtElementType : int { kFloat = 1, kUint8 = 2 };

// A tensor in memory that belongs to somebody else.
struct OrtTensor {
  const char* name;
  void* data;
  size_t bytes;
  std::vector<int64_t> shape;
  OrtElementType type;
};

// A model that is ready to run. Safe from any thread. Neither it nor the library is unloaded.
class OrtModel {
 public:
  // Runs an operator in `threads` threads, including the caller's; everything else is the default.
  static absl::StatusOr<OrtModel> Open(const std::string& library, const std::string& path,
                                       int threads);

  // Returns a function that runs the model on these tensors, any number of times. It writes
  // directly into the outputs; the library allocates and copies none of them.
  absl::StatusOr<std::function<absl::Status()>> Bind(const std::vector<OrtTensor>& inputs,
                                                     const std::vector<OrtTensor>& outputs) const;

 private:
  OrtModel(const void* const* api, void* session) : api_(api), session_(session) {}

  const void* const* api_;
  void* session_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_ONNXRUNTIME_H_
