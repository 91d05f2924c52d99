// What must hold on many cores, shown on any machine: kernels that sleep use no CPU, so sixteen of
// them can run at a time on two cores.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "quantd/v1/quantization.grpc.pb.h"
#include "server/options/options.h"
#include "server/rpc/request_run.h"
#include "server/server.h"

namespace quantd::server {
namespace {

using Clock = std::chrono::steady_clock;
using Stub = v1::QuantizationService::Stub;

constexpr int kThreads = 16;
constexpr int kRequests = 64;
constexpr std::chrono::milliseconds kKernel{5};
constexpr std::chrono::seconds kPatience{30};

std::atomic<int> sleeping{0};
std::atomic<int> most{0};
std::atomic<int> kernels{0};
std::atomic<bool> wait_for_all{false};

// The first kernels sleep until all threads have arrived, however slowly this machine wakes them. A
// server that never gives work to that many runs into the time limit.
void SleepingKernel() {
  const int now = sleeping.fetch_add(1) + 1;
  for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
  }
  const Clock::time_point until = Clock::now() + kPatience;
  do {
    std::this_thread::sleep_for(kKernel);
  } while (wait_for_all && most < kThreads && Clock::now() < until);
  sleeping.fetch_sub(1);
  kernels.fetch_add(1);
}

v1::QuantizeRequest Request() {
  const float values[] = {1, 2};
  const float one = 1;
  v1::QuantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_FLOAT);
  request.mutable_x()->add_shape(2);
  request.mutable_x()->set_raw_data(values, sizeof(values));
  request.mutable_scale()->set_data_type(v1::DATA_TYPE_FLOAT);
  request.mutable_scale()->set_raw_data(&one, sizeof(one));
  return request;
}

class CoresTest : public testing::TestWithParam<int> {
 protected:
  CoresTest() {
    const std::string threads = "--threads=" + std::to_string(kThreads);
    const char* const arguments[] = {"quantd", "--listen=127.0.0.1:0",
                                     "--http_listen=", threads.c_str()};
    server_ = *Server::Start(
        ParseCommandLine(static_cast<int>(std::size(arguments)), arguments)->options);
    rpc::before_kernel_for_testing = SleepingKernel;
    for (int i = 0; i < GetParam(); ++i) {
      grpc::ChannelArguments own;
      own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(std::make_unique<Stub>(grpc::CreateCustomChannel(
          server_->grpc_addresses()[0], grpc::InsecureChannelCredentials(), own)));
      // Connects, and tells the server how long such a request takes.
      EXPECT_TRUE(CallAll(*stubs_.back(), 2));
    }
    most = 0;
    kernels = 0;
    wait_for_all = true;
  }
  ~CoresTest() override {
    rpc::before_kernel_for_testing = nullptr;
    wait_for_all = false;
    stubs_.clear();
    server_->Drain(absl::ZeroDuration());
  }

  struct Pending {
    grpc::ClientContext context;
    v1::QuantizeResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::QuantizeResponse>> reader;
  };

  // Makes `requests` calls at once, on these connections in turn.
  static bool CallAll(const std::vector<Stub*>& stubs, int requests) {
    grpc::CompletionQueue queue;
    std::vector<Pending> calls(requests);
    for (int i = 0; i < requests; ++i) {
      calls[i].reader =
          stubs[i % stubs.size()]->AsyncQuantize(&calls[i].context, Request(), &queue);
      calls[i].reader->Finish(&calls[i].response, &calls[i].status, &calls[i]);
    }
    void* tag = nullptr;
    bool ok = false;
    for (int i = 0; i < requests; ++i) queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return std::all_of(calls.begin(), calls.end(), [](const Pending& call) {
      return call.status.ok() && call.response.y().raw_data() == "\x01\x02";
    });
  }
  static bool CallAll(Stub& stub, int requests) {
    return CallAll(std::vector<Stub*>{&stub}, requests);
  }

  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<Stub>> stubs_;
};

TEST_P(CoresTest, EveryCoreComputesAndNoMore) {
  std::vector<Stub*> stubs;
  for (const auto& stub : stubs_) stubs.push_back(stub.get());
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(CallAll(stubs, kRequests));
  const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
  std::printf("%d requests of %d ms by %d threads from %d connections: %.1f ms\n", kRequests,
              static_cast<int>(kKernel.count()), kThreads, GetParam(), took.count());
  EXPECT_EQ(kernels, kRequests);
  EXPECT_EQ(most, kThreads);
}

INSTANTIATE_TEST_SUITE_P(Connections, CoresTest, testing::Values(1, 4, 16));

}  // namespace
}  // namespace quantd::server
