// Bounds the messages of a handshake before OpenSSL sees them: it takes memory for as much as a
// message says that it will have, 128 KiB of a ClientHello, from peers that have shown nothing.
//
// A record is | type: 1 | version: 2 | length: 2 | its bytes |, and those of type 22 hold, one
// after the other and over as many records as it takes, messages | type: 1 | length: 3 | bytes |.
#ifndef QUANTD_SERVER_ACCESS_HANDSHAKE_LIMIT_H_
#define QUANTD_SERVER_ACCESS_HANDSHAKE_LIMIT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace quantd::access {

class HandshakeLimit {
 public:
  // Of a client's hello (2 KiB with the keys of a post-quantum exchange), and of its chain of
  // certificates.
  static constexpr size_t kHelloBytes = 16 << 10;
  static constexpr size_t kCertificateBytes = 32 << 10;

  enum class Verdict : uint8_t {
    kFine,
    kNoTls,     // its first byte begins no handshake: plain text, most likely
    kTooLarge,  // a message announces more than is allowed
  };

  // Looks at the next bytes that came. `ciphered`: after a change of the cipher, records of type 22
  // can't be read (TLS 1.2; since 1.3 they have another type). Once it is not fine it stays so.
  Verdict Look(absl::Span<const uint8_t> bytes, bool ciphered);
  // Whether anything has come.
  bool begun() const { return begun_; }

 private:
  size_t Head(absl::Span<const uint8_t> bytes);
  size_t Message(absl::Span<const uint8_t> bytes);

  Verdict verdict_ = Verdict::kFine;
  bool begun_ = false;
  bool cipher_changed_ = false;
  bool ciphered_ = false;
  uint8_t record_type_ = 0;
  uint8_t head_[5] = {};  // of a record
  size_t head_have_ = 0;
  size_t record_left_ = 0;
  uint8_t message_[4] = {};  // a message's head
  size_t message_have_ = 0;
  size_t message_left_ = 0;
};

}  // namespace quantd::access

#endif  // QUANTD_SERVER_ACCESS_HANDSHAKE_LIMIT_H_
