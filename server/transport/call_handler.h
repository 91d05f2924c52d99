// What answers the calls of a server: rpc::Router (server/rpc/router.h).
#ifndef QUANTD_SERVER_TRANSPORT_CALL_HANDLER_H_
#define QUANTD_SERVER_TRANSPORT_CALL_HANDLER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/wire/call_status.h"

namespace quantd::transport {

class ServerCall;

// Answers calls. Called by the leaders of all loops, several at the same time.
class CallHandler {
 public:
  // The number of the method at "/package.Service/Method"; -1: unknown.
  virtual int Find(absl::string_view path) const = 0;
  // Starts answering a call of a known method. The stream lives until its End.
  virtual void Begin(ServerCall& stream) = 0;
  // Counts a call that is refused before it starts, and returns the status for the client.
  // `method`: the result of Find.
  virtual wire::CallStatus Refuse(const ServerCall& stream, int method,
                                  const absl::Status& status) const = 0;
  // Whether calls of this method only wait for news: they are counted separately.
  virtual bool Watches(int /*method*/) const { return false; }
  // The most bytes of a request of `method`, if less than Limits::max_message_bytes. For
  // methods whose requests have no permit, such as health and reflection, this bounds their
  // memory.
  virtual uint64_t MostBytes(int /*method*/) const { return UINT64_MAX; }
  // Whether other requests wait for memory that a peer holds by not reading its responses.
  virtual bool AnyoneWaits() const = 0;
  // Whether calls keep this request header, for Head::metadata.
  virtual bool Keeps(absl::string_view /*name*/) const { return false; }
  // Whether a caller with `authorization` (the header; may be empty) may make a call of `method`
  // (the result of Find).
  virtual absl::Status Authorize(int /*method*/, absl::string_view /*authorization*/) const {
    return absl::OkStatus();
  }

 protected:
  ~CallHandler() = default;
};

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_CALL_HANDLER_H_
