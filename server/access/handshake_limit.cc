// See handshake_limit.h. The numbers are those of RFC 8446, 5.1 and 4.
#include "server/access/handshake_limit.h"

#include <algorithm>

namespace quantd::access {
namespace {

constexpr uint8_t kChangeCipherSpec = 20;
constexpr uint8_t kHandshake = 22;
constexpr uint8_t kCertificate = 11;

}  // namespace

HandshakeLimit::Verdict HandshakeLimit::Look(absl::Span<const uint8_t> bytes, bool ciphered) {
  ciphered_ = ciphered;
  if (!begun_ && !bytes.empty()) {
    begun_ = true;
    if (bytes[0] != kHandshake) verdict_ = Verdict::kNoTls;
  }
  while (!bytes.empty() && verdict_ == Verdict::kFine) {
    bytes.remove_prefix(record_left_ == 0 ? Head(bytes) : Message(bytes));
  }
  return verdict_;
}

// Reads one byte of a record's head.
size_t HandshakeLimit::Head(absl::Span<const uint8_t> bytes) {
  head_[head_have_++] = bytes[0];
  if (head_have_ == sizeof(head_)) {
    head_have_ = 0;
    record_type_ = head_[0];
    record_left_ = static_cast<size_t>(head_[3] << 8 | head_[4]);
    cipher_changed_ |= record_type_ == kChangeCipherSpec;
  }
  return 1;
}

// Reads bytes of a record; those of a message, if it is not encrypted.
size_t HandshakeLimit::Message(absl::Span<const uint8_t> bytes) {
  size_t used = std::min(bytes.size(), record_left_);
  if (record_type_ == kHandshake && !(cipher_changed_ && ciphered_)) {
    if (message_left_ != 0) {
      used = std::min(used, message_left_);
      message_left_ -= used;
    } else {
      used = 1;
      message_[message_have_++] = bytes[0];
      if (message_have_ == sizeof(message_)) {
        message_have_ = 0;
        message_left_ = static_cast<size_t>(message_[1] << 16 | message_[2] << 8 | message_[3]);
        const size_t most = message_[0] == kCertificate ? kCertificateBytes : kHelloBytes;
        if (message_left_ > most) verdict_ = Verdict::kTooLarge;
      }
    }
  }
  record_left_ -= used;
  return used;
}

}  // namespace quantd::access
