// See rpc_client.h.
#include "rpc_client.h"

#include <chrono>
#include <utility>

namespace quantd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using grpc::ByteBuffer;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return ByteBuffer(&slice, 1);
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

struct UnarySlot {
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<ByteBuffer>> reader;
  ByteBuffer response;
  grpc::Status status;
  Clock::time_point begin;
};

struct StreamSlot {
  enum class State { kStart, kWrite, kRead, kHalfClose, kFinish };
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  ByteBuffer response;
  grpc::Status status;
  Clock::time_point begin;
  State state = State::kStart;
};

}  // namespace

Client::Client(const std::string& address) : channel_(Connect(address)), stub_(channel_) {
  channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
}

std::string Client::Call(const std::string& method, const std::string& request) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  auto reader = stub_.PrepareUnaryCall(&context, method, ToBuffer(request), &queue);
  reader->StartCall();
  ByteBuffer response;
  grpc::Status status;
  reader->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  std::string text;
  if (!status.ok()) return text;
  std::vector<grpc::Slice> slices;
  response.Dump(&slices);
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

Load Client::Unary(const std::string& method, const std::string& request, int in_flight,
                   double seconds) {
  grpc::CompletionQueue queue;
  const ByteBuffer message = ToBuffer(request);
  std::vector<UnarySlot> slots(in_flight);
  const auto start = [&](UnarySlot& slot) {
    slot.begin = Clock::now();
    slot.context = std::make_unique<grpc::ClientContext>();
    slot.reader = stub_.PrepareUnaryCall(slot.context.get(), method, message, &queue);
    slot.reader->StartCall();
    slot.response.Clear();
    slot.reader->Finish(&slot.response, &slot.status, &slot);
  };
  Load load;
  const Clock::time_point begin = Clock::now();
  for (UnarySlot& slot : slots) start(slot);
  int live = in_flight;
  void* tag = nullptr;
  bool ok = false;
  while (live > 0 && queue.Next(&tag, &ok)) {
    UnarySlot& slot = *static_cast<UnarySlot*>(tag);
    load.latencies.push_back(SecondsSince(slot.begin));
    ++load.calls;
    if (!slot.status.ok()) ++load.errors;
    if (SecondsSince(begin) < seconds) {
      start(slot);
    } else {
      --live;
    }
  }
  load.seconds = SecondsSince(begin);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return load;
}

Load Client::Stream(const std::string& method, const std::string& request, int in_flight,
                    double seconds) {
  using State = StreamSlot::State;
  grpc::CompletionQueue queue;
  const ByteBuffer message = ToBuffer(request);
  std::vector<StreamSlot> slots(in_flight);
  for (StreamSlot& slot : slots) {
    slot.stream = stub_.PrepareCall(&slot.context, method, &queue);
    slot.stream->StartCall(&slot);
  }
  Load load;
  const Clock::time_point begin = Clock::now();
  const auto write = [&message](StreamSlot& slot) {
    slot.begin = Clock::now();
    slot.state = State::kWrite;
    slot.stream->Write(message, &slot);
  };
  const auto finish = [](StreamSlot& slot) {
    slot.state = State::kFinish;
    slot.stream->Finish(&slot.status, &slot);
  };
  int live = in_flight;
  void* tag = nullptr;
  bool ok = false;
  while (live > 0 && queue.Next(&tag, &ok)) {
    StreamSlot& slot = *static_cast<StreamSlot*>(tag);
    switch (slot.state) {
      case State::kStart:
        if (ok) {
          write(slot);
        } else {
          finish(slot);
        }
        break;
      case State::kWrite:
        if (!ok) {
          finish(slot);
          break;
        }
        slot.state = State::kRead;
        slot.stream->Read(&slot.response, &slot);
        break;
      case State::kRead:
        if (!ok) {
          finish(slot);
          break;
        }
        load.latencies.push_back(SecondsSince(slot.begin));
        ++load.calls;
        if (SecondsSince(begin) < seconds) {
          write(slot);
        } else {
          slot.state = State::kHalfClose;
          slot.stream->WritesDone(&slot);
        }
        break;
      case State::kHalfClose:
        finish(slot);
        break;
      case State::kFinish:
        if (!slot.status.ok()) ++load.errors;
        --live;
        break;
    }
  }
  load.seconds = SecondsSince(begin);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return load;
}

}  // namespace quantd::bench
