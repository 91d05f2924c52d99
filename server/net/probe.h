// Asks a gRPC port, as a client would, whether it answers: to HTTP/2, or to TLS.
#ifndef QUANTD_SERVER_NET_PROBE_H_
#define QUANTD_SERVER_NET_PROBE_H_

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

namespace quantd::net {

// What a probe finds at a port.
enum class Found {
  kServer,   // It speaks HTTP/2, or TLS.
  kFull,     // It takes the connection and closes it without a word: as many are open as may be.
  kNobody,   // Nothing listens, or what does is silent, or speaks something else.
  kUnknown,  // This process has no descriptor, port or memory left to ask with.
};

// Connects to HOST:PORT or unix:/PATH (0.0.0.0 and [::]: the machine's loopback), says HTTP/2's
// first words, or `tls_hello`, a TLS client's, if there is one, and waits for the response's begin.
// Blocks for `patience` at most.
Found Probe(const std::string& address, const std::string& tls_hello,
            std::chrono::milliseconds patience);

// Probes one address when that is asked for.
class Prober {
 public:
  explicit Prober(std::string address, std::string tls_hello = "")
      : address_(std::move(address)), tls_hello_(std::move(tls_hello)) {}

  // What the last probe found; asks for another one. True until two have found nobody one after the
  // other: a server that is full is alive, and what could not be asked says nothing. Does not
  // block; safe from any thread.
  bool Alive() {
    wanted_.store(true);
    return failures_.load() < 2;
  }
  // Probes, for a second at most, if somebody has asked. From one thread.
  void Look();

 private:
  const std::string address_;
  const std::string tls_hello_;
  std::atomic<bool> wanted_{false};
  std::atomic<int> failures_{0};  // One after the other.
};

}  // namespace quantd::net

#endif  // QUANTD_SERVER_NET_PROBE_H_
