// Log lines about connections. Their rate is bounded, because peers cause them.
#ifndef QUANTD_SERVER_TRANSPORT_NOTES_H_
#define QUANTD_SERVER_TRANSPORT_NOTES_H_

#include "absl/strings/string_view.h"
#include "server/transport/transport_context.h"

namespace quantd::transport {

// A TLS handshake failed. `reason` is in our own words. Safe from any thread.
void NoteRefusedHandshake(absl::string_view reason, absl::string_view peer);

// The server has ended a connection. Safe from any thread.
void NoteConnectionEnd(ConnectionEnd why, absl::string_view peer);

// Logs and counts an action. `peer`: against whom; empty: unknown. Safe from any thread.
void NoteAbuse(Counters& counters, AbuseAction what, absl::string_view peer);

}  // namespace quantd::transport

#endif  // QUANTD_SERVER_TRANSPORT_NOTES_H_
