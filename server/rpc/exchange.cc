#include "server/rpc/exchange.h"

#include <utility>

#include "server/wire/status_details.h"

namespace quantd::rpc {

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

Exchange::Awaited Exchange::Write(const google::protobuf::MessageLite& response) {
  return Send(wire::Serialize(response, pool_));
}

Exchange::Awaited Exchange::Send(memory::Piece response, bool compressed) {
  event_.Reset();
  if (response.begin == nullptr) {
    Fail(absl::ResourceExhaustedError("the system has no memory for the response"));
    event_.Complete(false);
  } else {
    stream_.Write(std::move(response), event_, compressed);
  }
  return Awaited(event_);
}

void Exchange::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Exchange::Awaited Exchange::Finish(transport::Metadata metadata) {
  if (stream_.interrupted()) Fail(stream_.interruption());
  wire::CallStatus end = wire::ToCallStatus(status_);
  end.metadata = std::move(metadata);
  event_.Reset();
  stream_.Finish(end, event_);
  return Awaited(event_);
}

}  // namespace quantd::rpc
