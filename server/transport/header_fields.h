// Header fields of responses, in nghttp2's form.
#ifndef QUANTD_SERVER_TRANSPORT_HEADER_FIELDS_H_
#define QUANTD_SERVER_TRANSPORT_HEADER_FIELDS_H_

#include <nghttp2/nghttp2.h>

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/transport/encoding.h"
#include "server/transport/metadata.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

// The name has static storage; `lasting`: the value, too. What is not lasting is copied on
// submission.
inline nghttp2_nv Field(absl::string_view name, absl::string_view value, bool lasting) {
  const auto bytes = [](absl::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  const uint8_t flags =
      NGHTTP2_NV_FLAG_NO_COPY_NAME | (lasting ? NGHTTP2_NV_FLAG_NO_COPY_VALUE : 0);
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

using Fields = absl::InlinedVector<nghttp2_nv, 6>;

// A service's own fields. This object and the metadata must live until they are submitted.
class MetadataFields {
 public:
  explicit MetadataFields(const Metadata& metadata) : metadata_(metadata) {
    for (const auto& pair : metadata) values_.push_back(EncodeMetadata(pair.first, pair.second));
  }
  void AddTo(Fields& fields) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      fields.push_back(Field(metadata_[i].first, values_[i], false));
      fields.back().flags = NGHTTP2_NV_FLAG_NONE;  // the name is copied, too
    }
  }

 private:
  const Metadata& metadata_;
  std::vector<std::string> values_;
};

// The fields of a status. The strings must live until they are submitted.
class StatusFields {
 public:
  explicit StatusFields(const wire::CallStatus& status)
      : code_(absl::StrCat(status.code)),
        message_(PercentEncode(status.message)),
        details_(Base64Encode(status.details)),
        metadata_(status.metadata) {}

  void AddTo(Fields& fields) const {
    fields.push_back(Field("grpc-status", code_, false));
    if (!message_.empty()) fields.push_back(Field("grpc-message", message_, false));
    if (!details_.empty()) fields.push_back(Field("grpc-status-details-bin", details_, false));
    metadata_.AddTo(fields);
  }
  // Bytes that they take, about.
  size_t size() const { return message_.size() + details_.size() + 128; }

 private:
  const std::string code_, message_, details_;
  const MetadataFields metadata_;
};

// The response's first fields, with the compression that is understood.
inline Fields Headers() {
  return {Field(":status", "200", true), Field("content-type", "application/grpc", true),
          Field("grpc-accept-encoding", kEncodings, true)};
}

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_HEADER_FIELDS_H_
