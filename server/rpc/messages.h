// Reads and writes small protobuf messages of a stream.
#ifndef QUANTD_SERVER_RPC_MESSAGES_H_
#define QUANTD_SERVER_RPC_MESSAGES_H_

#include <google/protobuf/message_lite.h>

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/memory/buffer.h"
#include "server/transport/server_call.h"
#include "server/wire/encode.h"

namespace quantd::rpc {

// Returns INVALID_ARGUMENT if the bytes are not a valid message.
inline absl::Status Parse(const transport::Message& from, google::protobuf::MessageLite& message) {
  if (message.ParseFromArray(from.buffer.data(), static_cast<int>(from.size))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the message is truncated or not a " + message.GetTypeName());
}

static_assert(wire::kRoomBefore >= transport::kPrefixBytes);
inline memory::Piece ToPiece(absl::string_view bytes, memory::Pool& pool) {
  memory::Piece piece = wire::MakePiece(bytes.size(), pool);
  if (piece.begin != nullptr) std::memcpy(piece.begin, bytes.data(), bytes.size());
  return piece;
}

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_MESSAGES_H_
