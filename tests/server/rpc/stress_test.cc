// A whole server in this process, and clients that cancel, let deadlines pass and leave streams in
// the middle: every response that arrives is right, no call is left, and the drain ends. Bounded by
// time; QUANTD_STRESS_SECONDS makes it longer. Run it under ASan and TSan.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/v1/quantization.grpc.pb.h"
#include "server/options/options.h"
#include "server/server.h"

namespace quantd::server {
namespace {

using Clock = std::chrono::steady_clock;
using Stub = v1::QuantizationService::Stub;

// From a command line; so little memory that requests wait for each other and some are refused.
Options SmallOptions() {
  constexpr const char* kArguments[] = {"quantd",
                                        "--listen=127.0.0.1:0",
                                        "--http_listen=",
                                        "--max_message_bytes=8388608",
                                        "--memory_budget_bytes=4194304",
                                        "--max_inflight_requests=6",
                                        "--max_queued_requests=12",
                                        "--threads=2",
                                        "--event_loops=2",
                                        "--lame_duck_seconds=0",
                                        "--drain_seconds=20"};
  return ParseCommandLine(static_cast<int>(std::size(kArguments)), kArguments)->options;
}

double Seconds() {
  const char* const text = std::getenv("QUANTD_STRESS_SECONDS");
  return text == nullptr ? 3 : std::atof(text);
}

struct Case {
  v1::QuantizeRequest request;
  std::string expected;
};

Case MakeCase(std::mt19937& random) {
  constexpr size_t kSizes[] = {0, 1, 100, 10'000, 100'000, 400'000};
  const size_t n = kSizes[random() % std::size(kSizes)];
  std::vector<float> values(n);
  const float first = static_cast<float>(random() % 200);
  Case made;
  made.expected.resize(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = first + static_cast<float>(i % 50);
    made.expected[i] = static_cast<char>(static_cast<unsigned char>(values[i]));
  }
  made.request.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  made.request.mutable_x()->add_shape(static_cast<int64_t>(n));
  made.request.mutable_x()->set_raw_data(values.data(), n * sizeof(float));
  const float one = 1;
  made.request.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
  made.request.mutable_scale()->set_raw_data(&one, sizeof(one));
  return made;
}

void RandomDeadline(std::mt19937& random, grpc::ClientContext& context) {
  const std::chrono::microseconds patience =
      random() % 4 == 0 ? std::chrono::microseconds(random() % 5000) : std::chrono::seconds(30);
  context.set_deadline(std::chrono::system_clock::now() + patience);
}

// Errors that may arrive in place of a response.
bool IsExcused(grpc::StatusCode code) {
  return code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
         code == grpc::StatusCode::UNAVAILABLE;
}

struct Counts {
  std::atomic<int> right{0};
  std::atomic<int> excused{0};
  std::atomic<int> wrong{0};
};

// How a call went, as seen by its client.
struct Outcome {
  grpc::Status status;
  std::string wrong;    // what arrived but should not, in words
  bool misses = false;  // a response did not arrive
  bool cancelled = false;
};

// If a call is cancelled or its deadline passes while messages and an OK status wait to be read,
// gRPC's client forgets the messages and keeps the status (chttp2_transport.cc of 1.51:
// grpc_chttp2_maybe_complete_recv_trailing_metadata); a unary call then reports UNIMPLEMENTED.
bool ForgotMessages(const grpc::ClientContext& context, const Outcome& outcome) {
  const bool ended = outcome.cancelled || std::chrono::system_clock::now() >= context.deadline();
  return ended && outcome.misses &&
         (outcome.status.ok() ||
          outcome.status.error_message() == "No message returned for unary request");
}

void Count(const grpc::ClientContext& context, const Outcome& outcome, Counts& counts) {
  const grpc::Status& status = outcome.status;
  if (status.ok() && outcome.wrong.empty() && !outcome.misses) {
    ++counts.right;
  } else if (outcome.wrong.empty() && (ForgotMessages(context, outcome) ||
                                       (!status.ok() && IsExcused(status.error_code())))) {
    ++counts.excused;
  } else {
    ++counts.wrong;
    ADD_FAILURE() << status.error_code() << " " << status.error_message() << " " << outcome.wrong
                  << (outcome.misses ? " A response did not come." : "");
  }
}

// The difference from the expected bytes, or nothing.
std::string Difference(const std::string& y, const std::string& expected) {
  if (y == expected) return "";
  const auto first = std::mismatch(y.begin(), y.end(), expected.begin(), expected.end()).first;
  return absl::StrCat(y.size(), " of ", expected.size(), " bytes, wrong from byte ",
                      first - y.begin(), ". ");
}

void OneUnary(Stub& stub, std::mt19937& random, Counts& counts) {
  const Case made = MakeCase(random);
  grpc::ClientContext context;
  RandomDeadline(random, context);
  v1::QuantizeResponse response;
  Outcome outcome;
  outcome.cancelled = random() % 4 == 0;
  std::thread canceller([&context, cancels = outcome.cancelled, delay = random() % 2000] {
    if (!cancels) return;
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
    context.TryCancel();
  });
  outcome.status = stub.Quantize(&context, made.request, &response);
  canceller.join();
  outcome.misses = !response.has_y();
  if (!outcome.misses) outcome.wrong = Difference(response.y().raw_data(), made.expected);
  Count(context, outcome, counts);
}

// Writes and reads overlap; sometimes the client leaves in the middle.
void OneStream(Stub& stub, std::mt19937& random, Counts& counts) {
  grpc::ClientContext context;
  RandomDeadline(random, context);
  // Sometimes many items, so that responses are collected before they are sent.
  const uint32_t items = random() % (random() % 4 == 0 ? 80 : 12);
  const uint32_t leave_after = random() % 4 == 0 ? random() % (items + 1) : 1000;
  std::vector<Case> cases;
  for (uint32_t i = 0; i < items; ++i) cases.push_back(MakeCase(random));
  const auto stream = stub.Stream(&context);
  std::thread writer([&] {
    for (uint32_t i = 0; i < items; ++i) {
      v1::StreamRequest request;
      request.set_id(i);
      *request.mutable_quantize() = cases[i].request;
      if (!stream->Write(request)) return;
    }
    stream->WritesDone();
  });
  v1::StreamResponse response;
  uint32_t responses = 0;
  Outcome outcome;
  while (stream->Read(&response)) {
    // An item that found the queue full is excused as well.
    if (response.has_error()) {
      if (!IsExcused(static_cast<grpc::StatusCode>(response.error().code()))) {
        absl::StrAppend(&outcome.wrong, response.error().ShortDebugString(), " ");
      }
    } else if (response.id() >= items) {
      absl::StrAppend(&outcome.wrong, "Item ", response.id(), " of ", items, ". ");
    } else {
      outcome.wrong +=
          Difference(response.quantize().y().raw_data(), cases[response.id()].expected);
    }
    if (++responses == leave_after) {
      outcome.cancelled = true;
      context.TryCancel();
    }
  }
  writer.join();
  outcome.status = stream->Finish();
  outcome.misses = responses != items;
  Count(context, outcome, counts);
}

TEST(Stress, RandomDeadlinesCancelsAndOverlappedStreams) {
  const uint32_t seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(SmallOptions());
  ASSERT_TRUE(server.ok()) << server.status();
  Counts counts;
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(static_cast<int>(1000 * Seconds()));
  std::vector<std::thread> clients;
  for (uint32_t c = 0; c < 6; ++c) {
    clients.emplace_back([&, c] {
      std::mt19937 random(seed + c);
      while (Clock::now() < end) {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        Stub stub(grpc::CreateCustomChannel((*server)->grpc_addresses()[0],
                                            grpc::InsecureChannelCredentials(), arguments));
        for (int i = 0; i < 20 && Clock::now() < end; ++i) {
          (random() % 2 == 0 ? OneUnary : OneStream)(stub, random, counts);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_GT(counts.right, 0);
  std::printf("right %d, excused %d\n", counts.right.load(), counts.excused.load());
  // Waits until no call is alive; a leaked frame would keep one alive for ever.
  (*server)->Drain(absl::ZeroDuration());
}

}  // namespace
}  // namespace quantd::server
