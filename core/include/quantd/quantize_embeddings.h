// QuantizeEmbeddings: embeddings in the formats of vector databases. Used like Quantize
// (quantize.h). core/EMBEDDINGS.md defines the formats and lists the products that need them.
#ifndef QUANTD_QUANTIZE_EMBEDDINGS_H_
#define QUANTD_QUANTIZE_EMBEDDINGS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "quantd/executor.h"
#include "quantd/plan.h"
#include "quantd/quantization_error.h"

namespace quantd {

// Checks everything about the request except the elements of x. Returns INVALID_ARGUMENT with a
// field ("x", "recipe", "ranges", "output_type", "dimensions", "bit_order", "bit_threshold",
// "signed_bits", "report_error") for an invalid request. Memory: 12 bytes per dimension of
// `ranges`.
absl::StatusOr<QuantizeEmbeddingsPlan> PlanQuantizeEmbeddings(
    const QuantizeEmbeddingsParameters& parameters);

// Writes the plan's output_bytes to y. INVALID_ARGUMENT (field "x"): x contains NaN or an infinity
// and the plan rejects them (names the first index). CANCELLED: `interrupted` returned true. After
// an error the contents of y are undefined. `error` may be null; it is set if the plan has
// report_error. REQUIRES: x.size() == plan.input_bytes, y.size() == plan.output_bytes; y overlaps
// no input.
absl::Status QuantizeEmbeddings(const QuantizeEmbeddingsPlan& plan, absl::Span<const uint8_t> x,
                                const Executor& executor, Interrupted interrupted,
                                absl::Span<uint8_t> y, QuantizationError* error);

}  // namespace quantd

#endif  // QUANTD_QUANTIZE_EMBEDDINGS_H_
