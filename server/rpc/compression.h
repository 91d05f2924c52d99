// Compression of a response: whether, with how much memory and time, and the work itself.
//
//   MayCompress(backend, stream);                         // before the call's first response
//   Compression compression(backend, stream);             // one per response
//   bytes += compression.Expect(most_response_bytes);       // memory to reserve
//   ...                                                   // estimate += compression.time()
//   compression.Run(contents, response, interrupted);       // on the thread that computed it
//   stream.Write(response, written, compression.done());
#ifndef QUANTD_SERVER_RPC_COMPRESSION_H_
#define QUANTD_SERVER_RPC_COMPRESSION_H_

#include <chrono>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "server/memory/buffer.h"
#include "server/rpc/backend.h"
#include "server/transport/encoding.h"
#include "server/transport/server_call.h"

namespace quantd::rpc {

// Sets how the stream's messages may be compressed: as the call asks (quantd-compress-answers), or
// as the server was configured, if the client accepts that.
void MayCompress(const Backend& backend, transport::ServerCall& stream);

class Compression {
 public:
  Compression(Backend& backend, const transport::ServerCall& stream)
      : backend_(backend), stream_(stream) {}

  // `most_bytes` is the largest size of the response. Returns the most memory that compressing it
  // takes in addition; 0: it will not be compressed.
  uint64_t Expect(uint64_t most_bytes);
  // There is no memory for compression: the response is sent as it is.
  void GiveUp() { bytes_ = 0; }
  // The approximate time.
  std::chrono::nanoseconds time() const;

  // Compresses `response` if that is worthwhile and `interrupted`, which is asked between slices,
  // says no. Called on the thread that computed it.
  void Run(transport::Contents contents, memory::Piece& response,
           absl::FunctionRef<bool()> interrupted);
  bool done() const { return done_; }

 private:
  Backend& backend_;
  const transport::ServerCall& stream_;
  uint64_t bytes_ = 0;  // the response's largest size; 0: it is not compressed
  bool done_ = false;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_COMPRESSION_H_
