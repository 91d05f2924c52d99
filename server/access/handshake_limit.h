// Limits the size of handshake messages before OpenSSL sees them. OpenSSL allocates the length that
// a message announces, 128 KiB for a ClientHello, before the peer has proved anything.
//
// A record is | type: 1 | version: 2 | length: 2 | its bytes |. Records of type 22 contain messages
// | type: 1 | length: 3 | bytes |, one after the other; a message may span several records.
#ifndef QUANTD_SERVER_ACCESS_HANDSHAKE_LIMIT_H_
#define QUANTD_SERVER_ACCESS_HANDSHAKE_LIMIT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace quantd::access {

class HandshakeLimit {
 public:
  // The most bytes of a ClientHello (2 KiB with the keys of a post-quantum exchange), and of a
  // client's certificate chain.
  static constexpr size_t kHelloBytes = 16 << 10;
  static constexpr size_t kCertificateBytes = 32 << 10;

  enum class Verdict : uint8_t {
    kFine,
    kNoTls,     // the first byte does not begin a handshake: plain text, most likely
    kTooLarge,  // a message announces more bytes than are allowed
  };

  // Checks the next bytes from the peer. `ciphered`: the cipher has changed, so records of type 22
  // can't be read (TLS 1.2; TLS 1.3 uses another type). A verdict other than fine is final.
  Verdict Look(absl::Span<const uint8_t> bytes, bool ciphered);
  // Whether any bytes have arrived.
  bool begun() const { return begun_; }

 private:
  size_t Head(absl::Span<const uint8_t> bytes);
  size_t Message(absl::Span<const uint8_t> bytes);

  Verdict verdict_ = Verdict::kFine;
  bool begun_ = false;
  bool cipher_changed_ = false;
  bool ciphered_ = false;
  uint8_t record_type_ = 0;
  uint8_t head_[5] = {};  // the head of a record
  size_t head_have_ = 0;
  size_t record_left_ = 0;
  uint8_t message_[4] = {};  // the head of a message
  size_t message_have_ = 0;
  size_t message_left_ = 0;
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_HANDSHAKE_LIMIT_H_
