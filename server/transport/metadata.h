// A service's own metadata in requests and responses (gRPC's Custom-Metadata), and the encoding of
// text and bytes in HTTP/2 headers.
#ifndef QUANTD_SERVER_TRANSPORT_METADATA_H_
#define QUANTD_SERVER_TRANSPORT_METADATA_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

// Names are in lower case; a value whose name ends in "-bin" is bytes.
using wire::Metadata;

// Adds the values of a header. One header may contain several binary values, separated by commas;
// values that are not Base64 are skipped.
void ParseMetadata(absl::string_view name, absl::string_view value, Metadata& metadata);

// The most values that a header may contain: 1 without commas.
size_t CountValues(absl::string_view name, absl::string_view value);

// The value as it is sent in a header.
std::string EncodeMetadata(const std::string& name, const std::string& value);

// Encodes grpc-message: printable ASCII except '%' is unchanged, everything else becomes %XX.
std::string PercentEncode(const std::string& message);
// Encodes binary metadata: Base64 without padding.
std::string Base64Encode(const std::string& bytes);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_METADATA_H_
