// Checks the caller's structs and converts them to the core's parameters.
#ifndef QUANTD_CORE_C_C_ARGUMENTS_H_
#define QUANTD_CORE_C_C_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/core.h"
#include "quantd/field_error.h"
#include "quantd/parameters.h"
#include "quantd/quantization_error.h"

namespace quantd::c {

// Larger than any struct will ever be: a larger size was never set by the caller.
inline constexpr uint32_t kMostStructSize = 4096;

// A copy of the caller's struct. Returns INVALID_ARGUMENT, with the struct's name, if it is null,
// has an impossible size, or sets fields that this library does not know. When a struct grows,
// callers with its first version must still work.
template <typename Struct>
absl::StatusOr<Struct> ReadStruct(const Struct* given, absl::string_view name) {
  if (given == nullptr) return FieldError(name, absl::StrCat(name, " is NULL"));
  if (given->struct_size < sizeof(Struct) || given->struct_size > kMostStructSize) {
    return FieldError("struct_size", absl::StrCat(name, ".struct_size is ", given->struct_size,
                                                  ", this library's is ", sizeof(Struct)));
  }
  const auto* const bytes = reinterpret_cast<const uint8_t*>(given);
  for (uint32_t i = sizeof(Struct); i < given->struct_size; ++i) {
    if (bytes[i] == 0) continue;
    return FieldError("struct_size",
                      absl::StrCat(name, " has ", given->struct_size, " bytes, byte ", i,
                                   " is not 0: this library knows the first ", sizeof(Struct)));
  }
  return *given;
}

// The caller's bytes. Returns INVALID_ARGUMENT if bytes are expected at NULL, or if they would
// exceed the address space.
absl::StatusOr<absl::Span<uint8_t>> BytesAt(const void* data, uint64_t size,
                                            absl::string_view field);

// The parameters of the operation that they are made for. They view the caller's memory; x has the
// size that its type and shape require, but no address.
absl::StatusOr<QuantizeParameters> ToQuantize(const quantd_parameters& parameters);
absl::StatusOr<DequantizeParameters> ToDequantize(const quantd_parameters& parameters);
absl::StatusOr<DynamicQuantizeParameters> ToDynamicQuantize(const quantd_parameters& parameters);
// Views x in the caller's memory.
absl::StatusOr<QuantizeEmbeddingsParameters> ToEmbeddings(const quantd_embeddings& embeddings);

inline quantd_report ToReport(const QuantizationError& error) {
  return {error.sqnr_db, error.mean_squared_error, error.max_absolute_error,
          error.saturated_elements, error.non_finite_elements};
}

}  // namespace quantd::c

#endif  // QUANTD_CORE_C_C_ARGUMENTS_H_
