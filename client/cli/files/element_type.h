// The element types in tensor files: the data types of the service, and types that only files have,
// with their names in files. One table.
#ifndef QUANTD_CLI_FILES_ELEMENT_TYPE_H_
#define QUANTD_CLI_FILES_ELEMENT_TYPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantd/data_type.h"

namespace quantd::cli {

// How to read the bytes of a type that the service does not have.
enum class Family : uint8_t { kService, kFloat64, kSigned, kUnsigned, kOpaque };

// One row of the table.
struct ElementType {
  absl::string_view name;         // for users, and a value of --type
  DataType data_type;             // kUnspecified: not a type of the service
  Family family;                  // kService if data_type is set
  int bits;                       // of one element
  absl::string_view npy;          // descr without the byte order; empty: npy has no such type
  absl::string_view safetensors;  // dtype; empty: safetensors has no such type
};

// The row with a name in each format; nullptr if there is none.
const ElementType* FindByNpy(absl::string_view descr);
const ElementType* FindBySafetensors(absl::string_view dtype);
// REQUIRES: type is one of kDataTypes.
const ElementType& ElementTypeOf(DataType type);

// A type of the service from a user's text: its name in any case, or a common alias such as
// "float32", "fp8" or "e4m3". Returns INVALID_ARGUMENT, with all names and a guess, if it is
// unknown.
absl::StatusOr<DataType> ParseDataType(absl::string_view text);

// The names that ParseDataType accepts, aliases last.
std::vector<std::string> DataTypeNames();
// The name as it is compared: in small letters, without -, _ and the contract's DATA_TYPE_.
std::string PlainTypeName(absl::string_view text);

// The values of packed, little-endian elements. REQUIRES: not of Family::kOpaque; bytes.size()
// matches.
std::vector<double> ToDoubles(const ElementType& type, int64_t elements,
                              absl::Span<const uint8_t> bytes);

// Lower-case name of a type of the service, such as "int8".
std::string TypeName(DataType type);

}  // namespace quantd::cli

#endif  // QUANTD_CLI_FILES_ELEMENT_TYPE_H_
