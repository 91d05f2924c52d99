#include "server/rpc/shared_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/wire/call_status.h"

namespace quantd::rpc {
namespace {

using regions::Access;
using regions::SharedSpan;
using wire::SharedReference;

std::string NameOf(wire::TensorField field) {
  return absl::StrCat(wire::kTensorNames[static_cast<size_t>(field)], ".shared_memory");
}

absl::StatusOr<SharedSpan> FindOne(regions::Regions* regions, const std::string& field,
                                   const SharedReference& reference, Access access, uint64_t peer) {
  if (regions == nullptr) {
    const absl::Status off = FieldError(
        field,
        absl::StrCat(field, " is set, but this server has no shared memory (--shared_memory_dir)"),
        absl::StatusCode::kUnimplemented);
    return wire::WithReason(off, "NO_SHARED_MEMORY");
  }
  return regions->Find(field, reference.region, reference.offset, reference.byte_size, access,
                       peer);
}

}  // namespace

absl::Status SharedTensors::Find(regions::Regions* regions, wire::Request& request, uint64_t peer) {
  for (const wire::SharedTensor& shared : request.shared) {
    TensorView& tensor = wire::TensorOf(request, shared.field);
    absl::StatusOr<SharedSpan> span =
        FindOne(regions, NameOf(shared.field), shared.reference, Access::kRead, peer);
    if (!span.ok()) return span.status();
    tensor.bytes = span->bytes();
    inputs_.push_back({shared.field, shared.reference.region, *std::move(span)});
    if (shared.field != wire::TensorField::kX) copied_bytes_ += tensor.bytes.size();
  }
  if (request.output.has_value()) {
    absl::StatusOr<SharedSpan> span =
        FindOne(regions, "output", *request.output, Access::kWrite, peer);
    if (!span.ok()) return span.status();
    output_ = Input{wire::TensorField::kX, request.output->region, *std::move(span)};
  }
  return absl::OkStatus();
}

absl::Status SharedTensors::Copy(wire::Request& request) {
  for (const Input& input : inputs_) {
    const absl::Span<const uint8_t> from = input.span.bytes();
    if (input.field == wire::TensorField::kX || from.empty()) continue;
    copies_.push_back(std::make_unique_for_overwrite<uint8_t[]>(from.size()));
    std::memcpy(copies_.back().get(), from.data(), from.size());
    wire::TensorOf(request, input.field).bytes =
        absl::Span<const uint8_t>(copies_.back().get(), from.size());
  }
  return damaged() ? Damage() : absl::OkStatus();
}

absl::Status SharedTensors::CheckOutput(uint64_t bytes) const {
  if (!output_.has_value()) return absl::OkStatus();
  for (const Input& input : inputs_) {
    if (!output_->span.Overlaps(bytes, input.span)) continue;
    return FieldError(
        "output",
        absl::StrCat("output, ", bytes, " bytes of region '", output_->region, "', overlaps the ",
                     input.span.bytes().size(), " bytes of ", NameOf(input.field)));
  }
  return absl::OkStatus();
}

absl::Span<uint8_t> SharedTensors::PrepareOutput(uint64_t bytes,
                                                 absl::FunctionRef<bool()> stop) const {
  if (!output_.has_value()) return {};
  output_->span.Prepare(bytes, stop);
  return output_->span.bytes().first(bytes);
}

bool SharedTensors::damaged() const {
  if (output_.has_value() && output_->span.damaged()) return true;
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [](const Input& input) { return input.span.damaged(); });
}

absl::Status SharedTensors::Damage() const {
  const auto damaged = std::find_if(inputs_.begin(), inputs_.end(),
                                    [](const Input& input) { return input.span.damaged(); });
  const bool is_input = damaged != inputs_.end();
  const std::string field = is_input ? NameOf(damaged->field) : "output";
  const std::string& region = is_input ? damaged->region : output_->region;
  return wire::WithReason(
      FieldError(
          absl::StrCat(field, ".region"),
          absl::StrCat(field, ".region '", region,
                       "' was cut short while the server was using it, or its volume is full"),
          absl::StatusCode::kFailedPrecondition),
      "REGION_DAMAGED");
}

}  // namespace quantd::rpc
