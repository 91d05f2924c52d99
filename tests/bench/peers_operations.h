// The three operations on tensors in memory, as quantd's core does them, as ONNX Runtime does them,
// and what bounds both.
#ifndef QUANTD_TESTS_BENCH_PEERS_OPERATIONS_H_
#define QUANTD_TESTS_BENCH_PEERS_OPERATIONS_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels_limits.h"
#include "peers_onnxruntime.h"
#include "quantd/executor.h"

namespace quantd::bench {

struct Operation {
  std::string name;
  std::function<absl::Status()> quantd;
  std::function<absl::Status()> onnxruntime;
  // The same memory traffic with as little arithmetic as can be, in `tasks` tasks.
  std::function<void(int tasks, bool stream)> limit;
  // Whether both have written the same bytes.
  std::function<bool()> same;
};

// FLOAT tensors of one size and their codes, and the operations on them. All threads share them.
class Operations {
 public:
  // `models` is the folder that peers_models.py has written. Everything must outlive the object.
  Operations(const OnnxRuntime& library, const std::string& models, size_t bytes,
             const Executor& executor);

  // Quantize, DynamicQuantize and Dequantize. Callable once.
  absl::StatusOr<std::vector<Operation>> Make();

 private:
  using Buffer = std::unique_ptr<uint8_t, void (*)(void*)>;
  static Buffer Allocate(size_t bytes);

  absl::StatusOr<Operation> Quantize();
  absl::StatusOr<Operation> DynamicQuantize();
  absl::StatusOr<Operation> Dequantize();
  absl::StatusOr<std::function<absl::Status()>> Bind(const std::string& model,
                                                     const std::vector<OrtTensor>& inputs,
                                                     const std::vector<OrtTensor>& outputs);
  OrtTensor Floats(const char* name, void* data) const;
  OrtTensor Codes(const char* name, void* data) const;
  void Limit(bench::Limit limit, int tasks, bool stream);

  const OnnxRuntime& library_;
  const std::string models_;
  const size_t size_;  // elements
  const Executor& executor_;
  Buffer floats_, codes_, ours_, theirs_;  // ours_ and theirs_: room for FLOAT
  float scale_ = 0.0234375f;
  uint8_t zero_point_ = 128;
  struct Dynamic {
    float scale = 0;
    uint8_t zero_point = 0;
  } our_parameters_, their_parameters_;
  // Sessions live as long as what is bound to them.
  std::vector<std::unique_ptr<OrtModel>> sessions_;
};

}  // namespace quantd::bench

#endif  // QUANTD_TESTS_BENCH_PEERS_OPERATIONS_H_
