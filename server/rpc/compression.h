// A response that may be sent compressed: whether, what that takes, and how it is done.
//
//   MayCompress(backend, stream);                         // before the call's first response
//   Compression compression(backend, stream);             // of one response
//   bytes += compression.Expect(most_response_bytes);       // memory to ask for
//   ...                                                   // estimate += compression.time()
//   compression.Run(contents, response);                    // where it was computed
//   stream.Write(response, written, compression.done());
#ifndef QUANTD_SERVER_RPC_COMPRESSION_H_
#define QUANTD_SERVER_RPC_COMPRESSION_H_

#include <chrono>
#include <cstdint>

#include "server/memory/buffer.h"
#include "server/rpc/backend.h"
#include "server/transport/deflater.h"
#include "server/transport/server_call.h"

namespace quantd::rpc {

// Tells the stream what its messages may be compressed with: what the call asks for
// (quantd-compress-answers), else what the server was started with, if the client accepts it.
void MayCompress(const Backend& backend, transport::ServerCall& stream);

class Compression {
 public:
  Compression(Backend& backend, const transport::ServerCall& stream)
      : backend_(backend), stream_(stream) {}

  // The response takes so many bytes at most. Returns the most that compressing it takes besides;
  // 0: it is sent as it is.
  uint64_t Expect(uint64_t most_bytes);
  // There is no memory for that: it is sent as it is.
  void GiveUp() { bytes_ = 0; }
  // How long it takes, about.
  std::chrono::nanoseconds time() const;

  // Compresses `response`, if it is worth it; else leaves it as it is. Where the call was computed.
  void Run(transport::Contents contents, memory::Piece& response);
  bool done() const { return done_; }

 private:
  Backend& backend_;
  const transport::ServerCall& stream_;
  uint64_t bytes_ = 0;  // of the response, at most; 0: it is sent as it is
  bool done_ = false;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_COMPRESSION_H_
