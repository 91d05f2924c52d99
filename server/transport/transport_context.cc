#include "server/transport/transport_context.h"

#include <array>

#include "server/log/log.h"

namespace quantd::transport {
namespace {

using log::Level;
using log::Repeated;

// One limit per kind, so that many of one kind do not hide another.
struct Kind {
  Repeated lines;
  const char* reason;
};

Kind& KindOf(ConnectionEnd why) {
  static std::array<Kind, kConnectionEnds> kinds = {{
      {Repeated(Level::kWarn, "connection refused"), "too_many"},
      {Repeated(Level::kWarn, "connection ended"), "no_handshake"},
      {Repeated(Level::kWarn, "connection ended"), "protocol_error"},
      {Repeated(Level::kInfo, "connection ended"), "silent"},
      {Repeated(Level::kWarn, "connection ended"), "stalled"},
      {Repeated(Level::kDebug, "connection ended"), "age"},
      {Repeated(Level::kDebug, "connection ended"), "tls"},  // see NoteRefusedHandshake
      {Repeated(Level::kWarn, "connection ended"), "unread"},
      {Repeated(Level::kWarn, "connection ended"), "headers"},
  }};
  return kinds[static_cast<size_t>(why)];
}

Kind& KindOf(AbuseAction what) {
  static std::array<Kind, kAbuseActions> kinds = {{
      {Repeated(Level::kWarn, "connection refused"), "too_many"},
      {Repeated(Level::kWarn, "connection refused"), "evicts_one_of_the_peer_with_the_most"},
      {Repeated(Level::kWarn, "connection throttled"), "frames_without_use"},
      {Repeated(Level::kWarn, "call ended"), "sent_nothing_while_too_many_were_open"},
      {Repeated(Level::kError, "connection refused"), "file_descriptors_exhausted"},
      {Repeated(Level::kWarn, "call ended"), "upload_stalled"},
      {Repeated(Level::kWarn, "call ended"), "answer_not_read"},
  }};
  return kinds[static_cast<size_t>(what)];
}

void Write(Kind& kind, absl::string_view peer) {
  kind.lines.Write([&] {
    log::Fields fields = {{"reason", kind.reason}};
    if (!peer.empty()) fields.emplace_back("peer", peer);
    return fields;
  });
}

}  // namespace

void NoteRefusedHandshake(absl::string_view reason, absl::string_view peer) {
  static Repeated lines(Level::kWarn, "TLS handshake refused");
  lines.Write([&] { return log::Fields{{"reason", reason}, {"peer", peer}}; });
}

void NoteConnectionEnd(ConnectionEnd why, absl::string_view peer) { Write(KindOf(why), peer); }

void NoteAbuse(Counters& counters, AbuseAction what, absl::string_view peer) {
  counters.CountAbuse(what);
  Write(KindOf(what), peer);
}

}  // namespace quantd::transport
