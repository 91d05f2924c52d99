// A service's own metadata, of requests and of responses (gRPC's Custom-Metadata), and text and
// bytes as HTTP/2 headers may hold them.
#ifndef QUANTD_SERVER_TRANSPORT_METADATA_H_
#define QUANTD_SERVER_TRANSPORT_METADATA_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/errors/call_status.h"

namespace quantd::transport {

// Names are in lower case; the value of a name that ends in "-bin" is bytes.
using errors::Metadata;

// Adds what a header says. Of binary values several may stand in one header, with commas between;
// one that is not Base64 is left out.
void ParseMetadata(absl::string_view name, absl::string_view value, Metadata& metadata);

// How many values a header has at most: 1 without commas.
size_t CountValues(absl::string_view name, absl::string_view value);

// The value as a header has it.
std::string EncodeMetadata(const std::string& name, const std::string& value);

// grpc-message: printable ASCII but '%' as it is, everything else as %XX.
std::string PercentEncode(const std::string& message);
// Binary metadata: Base64 without padding.
std::string Base64Encode(const std::string& bytes);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_METADATA_H_
