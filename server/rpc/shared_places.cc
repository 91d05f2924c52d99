#include "server/rpc/shared_places.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "server/errors/reason.h"

namespace quantd::rpc {
namespace {

using regions::Access;
using regions::Place;
using wire::SharedReference;

std::string NameOf(wire::TensorField field) {
  return absl::StrCat(wire::kTensorNames[static_cast<size_t>(field)], ".shared_memory");
}

absl::StatusOr<Place> FindOne(regions::Regions* regions, const std::string& field,
                              const SharedReference& reference, Access access) {
  if (regions == nullptr) {
    const absl::Status off = FieldError(
        field,
        absl::StrCat(field, " is set, but this server has no shared memory (--shared_memory_dir)"),
        absl::StatusCode::kUnimplemented);
    return errors::WithReason(off, "NO_SHARED_MEMORY");
  }
  return regions->Find(field, reference.region, reference.offset, reference.byte_size, access);
}

}  // namespace

absl::Status SharedPlaces::FindTensor(regions::Regions* regions, const wire::SharedTensor& shared,
                                      TensorView& tensor) {
  absl::StatusOr<Place> place =
      FindOne(regions, NameOf(shared.field), shared.reference, Access::kRead);
  if (!place.ok()) return place.status();
  tensor.bytes = place->bytes();
  inputs_.push_back({shared.field, shared.reference.region, *std::move(place)});
  return absl::OkStatus();
}

absl::Status SharedPlaces::Find(regions::Regions* regions, wire::Request& request) {
  for (const wire::SharedTensor& shared : request.shared) {
    TensorView& tensor = wire::TensorOf(request, shared.field);
    if (absl::Status found = FindTensor(regions, shared, tensor); !found.ok()) return found;
    if (shared.field != wire::TensorField::kX) copied_bytes_ += tensor.bytes.size();
  }
  if (request.output.has_value()) {
    absl::StatusOr<Place> place = FindOne(regions, "output", *request.output, Access::kWrite);
    if (!place.ok()) return place.status();
    output_ = Input{wire::TensorField::kX, request.output->region, *std::move(place)};
  }
  return absl::OkStatus();
}

absl::Status SharedPlaces::Copy(wire::Request& request) {
  for (const Input& input : inputs_) {
    const absl::Span<const uint8_t> from = input.place.bytes();
    if (input.field == wire::TensorField::kX || from.empty()) continue;
    copies_.push_back(std::make_unique_for_overwrite<uint8_t[]>(from.size()));
    std::memcpy(copies_.back().get(), from.data(), from.size());
    wire::TensorOf(request, input.field).bytes =
        absl::Span<const uint8_t>(copies_.back().get(), from.size());
  }
  return damaged() ? Damage() : absl::OkStatus();
}

absl::Status SharedPlaces::CheckOutput(uint64_t bytes) const {
  if (!output_.has_value()) return absl::OkStatus();
  for (const Input& input : inputs_) {
    if (!output_->place.Overlaps(bytes, input.place)) continue;
    return FieldError(
        "output",
        absl::StrCat("output, ", bytes, " bytes of region '", output_->region, "', overlaps the ",
                     input.place.bytes().size(), " bytes of ", NameOf(input.field)));
  }
  return absl::OkStatus();
}

absl::Span<uint8_t> SharedPlaces::PrepareOutput(uint64_t bytes,
                                                absl::FunctionRef<bool()> stop) const {
  if (!output_.has_value()) return {};
  output_->place.Prepare(bytes, stop);
  return output_->place.bytes().first(bytes);
}

bool SharedPlaces::damaged() const {
  if (output_.has_value() && output_->place.damaged()) return true;
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [](const Input& input) { return input.place.damaged(); });
}

absl::Status SharedPlaces::Damage() const {
  const auto damaged = std::find_if(inputs_.begin(), inputs_.end(),
                                    [](const Input& input) { return input.place.damaged(); });
  const bool is_input = damaged != inputs_.end();
  const std::string field = is_input ? NameOf(damaged->field) : "output";
  const std::string& region = is_input ? damaged->region : output_->region;
  return errors::WithReason(
      FieldError(
          absl::StrCat(field, ".region"),
          absl::StrCat(field, ".region '", region,
                       "' was cut short while the server was using it, or its volume is full"),
          absl::StatusCode::kFailedPrecondition),
      "REGION_DAMAGED");
}

}  // namespace quantd::rpc
