// What the log gets to know of connections: at a bounded rate, for peers cause it.
#ifndef QUANTD_SERVER_TRANSPORT_NOTES_H_
#define QUANTD_SERVER_TRANSPORT_NOTES_H_

#include "absl/strings/string_view.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

// A TLS handshake came to nothing. `reason`: in words of ours. From any thread.
void NoteRefusedHandshake(absl::string_view reason, absl::string_view peer);

// A connection was ended. From any thread.
void NoteConnectionEnd(ConnectionEnd why, absl::string_view peer);

// Counts it, too. `peer`: against whom; empty: nobody knows. From any thread.
void NoteAbuse(Counters& counters, AbuseAction what, absl::string_view peer);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_NOTES_H_
