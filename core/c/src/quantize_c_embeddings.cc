// quantd_quantize_embeddings.
#include <array>

#include "c_arguments.h"
#include "c_error.h"
#include "c_places.h"
#include "quantd/quantize_embeddings.h"

namespace quantd::c {
namespace {

absl::Status Run(const quantd_embeddings& call) {
  const absl::StatusOr<QuantizeEmbeddingsParameters> parameters = ToEmbeddings(call);
  if (!parameters.ok()) return parameters.status();
  if (absl::Status status = CheckThreads(call.threads); !status.ok()) return status;
  const absl::StatusOr<QuantizeEmbeddingsPlan> plan = PlanQuantizeEmbeddings(*parameters);
  if (!plan.ok()) return plan.status();
  if (call.y_size != plan->output_bytes) {
    return FieldError(
        "y", absl::StrCat("y has ", call.y_size, " bytes, the codes are ", plan->output_bytes));
  }
  const absl::StatusOr<absl::Span<uint8_t>> y = BytesAt(call.y, call.y_size, "y");
  if (!y.ok()) return y.status();
  const absl::Span<const uint8_t> x = parameters->x.bytes;
  const absl::Span<const uint8_t> ranges = parameters->ranges.value_or(TensorView()).bytes;
  const std::array<Place, 3> places = {{{"x", x}, {"ranges", ranges}, {"y", *y}}};
  if (absl::Status status = CheckApart(places, 2); !status.ok()) return status;
  QuantizationError error;
  absl::Status status = QuantizeEmbeddings(
      *plan, x, PoolOf(call.threads), [flag = call.cancelled] { return IsSet(flag); }, *y, &error);
  if (status.ok() && call.report != nullptr) *call.report = ToReport(error);
  return status;
}

}  // namespace
}  // namespace quantd::c

int32_t quantd_quantize_embeddings(const quantd_embeddings* embeddings, quantd_error* error) {
  return quantd::c::CatchExceptions(error, [&]() -> absl::Status {
    const absl::StatusOr<quantd_embeddings> given = quantd::c::ReadStruct(embeddings, "embeddings");
    if (!given.ok()) return given.status();
    return quantd::c::Run(*given);
  });
}
