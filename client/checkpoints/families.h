// Which tensors are the weights of a model's linear layers.
#ifndef QUANTD_CHECKPOINTS_FAMILIES_H_
#define QUANTD_CHECKPOINTS_FAMILIES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "checkpoints/model.h"

namespace quantd::checkpoints {

// Knows the linear layers of one model: what transformers calls nn.Linear in its family (the
// model_type in config.json), less its head and its routers. General rules on names and dimensions
// apply; families.inc lists the families in which they are wrong.
class Family {
 public:
  explicit Family(const Model& model);

  // Why a tensor's name is not that of a linear layer's weight, or of experts; empty if it is.
  std::string OtherByName(const Tensor& tensor) const;
  // Heads that may have no tensor of their own, because they share the embedding's.
  std::vector<std::string> TiedHeads() const;

 private:
  const Model& model_;
  absl::string_view linear_, other_, heads_;  // suffixes of modules in families.inc
  bool transposed_ = false;                   // c_attn and its like are stored [in, out]
};

// The rule of llama.cpp (tensor_allows_quantization), for the names of a .gguf: why it does not
// quantize such a tensor; empty if it does, with two dimensions or more.
std::string OtherByGgufName(absl::string_view name);

// The number of dimensions. GGML's do not count outer ones of length 1.
size_t Dimensions(const Tensor& tensor);

// Whether it is the weight of several experts at once, or a name that of one expert.
bool IsExperts(const Tensor& tensor);
bool IsOneExperts(absl::string_view name);

}  // namespace quantd::checkpoints

#endif  // QUANTD_CHECKPOINTS_FAMILIES_H_
