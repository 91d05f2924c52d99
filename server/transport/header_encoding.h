// Text and bytes as HTTP/2 headers may hold them.
#ifndef QUANTD_SERVER_TRANSPORT_HEADER_ENCODING_H_
#define QUANTD_SERVER_TRANSPORT_HEADER_ENCODING_H_

#include <string>

namespace quantd::transport {

// grpc-message: printable ASCII but '%' as it is, everything else as %XX.
std::string PercentEncode(const std::string& message);
// Binary metadata: Base64 without padding.
std::string Base64Encode(const std::string& bytes);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_HEADER_ENCODING_H_
