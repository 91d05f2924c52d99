// ONNX Runtime through its C API, from a shared library that is loaded at run time: as much of it
// as a comparison needs.
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

// ONNX TensorProto.DataType, as far as it is used.
enum class OrtElementType : int { kFloat = 1, kUint8 = 2 };

// A tensor in memory that somebody else owns.
struct OrtTensor {
  const char* name;
  void* data;
  size_t bytes;
  std::vector<int64_t> shape;
  OrtElementType type;
};

// A model ready to run. Safe from any thread. Neither it nor the library is unloaded.
class OrtModel {
 public:
  // Runs an operator in `threads` threads, the caller's among them; all else is the default.
  static absl::StatusOr<OrtModel> Open(const std::string& library, const std::string& path,
                                       int threads);

  // What runs the model on these tensors, again and again. Outputs are written where they are; the
  // library allocates and copies none of them.
  absl::StatusOr<std::function<absl::Status()>> Bind(const std::vector<OrtTensor>& inputs,
                                                     const std::vector<OrtTensor>& outputs) const;

 private:
  OrtModel(const void* const* api, void* session) : api_(api), session_(session) {}

  const void* const* api_;
  void* session_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_ONNXRUNTIME_H_
