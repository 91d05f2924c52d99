// The functions that answer calls. Each waits for one call, starts its own successor when it has
// come, and answers it. See README.md for the rules that they follow.
#ifndef QUANTD_SERVER_RPC_CALLS_H_
#define QUANTD_SERVER_RPC_CALLS_H_

#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/queue.h"
#include "server/wire/method.h"

namespace quantd::rpc {

// Quantize, Dequantize or DynamicQuantize. REQUIRES: &calls == &backend.calls, as in all of them.
Call ServeUnary(Calls& calls, Backend& backend, Queue& queue, wire::Method method);

// Stream.
Call ServeStream(Calls& calls, Backend& backend, Queue& queue);

// GetServerInfo.
Call ServeInfo(Calls& calls, Backend& backend, Queue& queue);

// Starts as many of each as one queue should have waiting.
void ServeAll(Backend& backend, Queue& queue);

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_CALLS_H_
