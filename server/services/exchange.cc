#include "server/services/exchange.h"

#include <utility>

#include "server/services/messages.h"
#include "server/transport/deflater.h"
#include "server/wire/encode.h"
#include "server/wire/status_details.h"

namespace quantd::services {

Exchange::Awaited Exchange::Read() {
  event_.Reset();
  stream_.Read(message_, event_);
  return Awaited(event_);
}

bool Exchange::Take(google::protobuf::MessageLite& request) {
  Fail(Parse(message_, request));
  was_compressed_ = message_.was_compressed;
  message_ = transport::Message();
  stream_.Taken();
  return status_.ok();
}

Exchange::Awaited Exchange::Write(const google::protobuf::MessageLite& response, bool compress) {
  event_.Reset();
  memory::Piece piece = wire::Serialize(response, pool_);
  const transport::Encoding encoding = stream_.out_encoding();
  memory::Piece smaller;
  if (compress && encoding != transport::Encoding::kIdentity && piece.begin != nullptr) {
    smaller = transport::Deflate(encoding, {piece.begin, piece.size}, transport::Contents::kNumbers,
                                 transport::kPrefixBytes, pool_,
                                 [this] { return stream_.interrupted(); });
  }
  compress = smaller.begin != nullptr;
  if (compress) piece = std::move(smaller);
  if (piece.begin == nullptr) {
    Fail(absl::ResourceExhaustedError("the system has no memory for the response"));
    event_.Complete(false);
  } else {
    stream_.Write(std::move(piece), event_, compress);
  }
  return Awaited(event_);
}

void Exchange::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Exchange::Awaited Exchange::Finish(transport::Metadata metadata) {
  if (stream_.interrupted()) Fail(stream_.interruption());
  errors::CallStatus end = wire::ToCallStatus(status_);
  end.metadata = std::move(metadata);
  event_.Reset();
  stream_.Finish(end, event_);
  return Awaited(event_);
}

}  // namespace quantd::services
