// Asynchronous calls: many at once, cancelled, late, chained; and a server that disappears.
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "cpp_connection.h"
#include "threads_fail.h"

namespace quantd::client {
namespace {

TEST_F(ConnectionTest, AThousandCallsAtOnce) {
  Client client(Serve());
  std::mutex mutex;
  std::condition_variable all;
  int answered = 0, right = 0;
  for (int i = 0; i < 1000; ++i) {
    const float first = static_cast<float>(i);
    client.QuantizeAsync(Tensor::Of<float>(std::vector<float>{first, 3}, {2}), Tensor::Scalar(8.0f),
                         {}, {}, [&, i](const absl::StatusOr<Quantized>& result) {
                           const std::lock_guard<std::mutex> lock(mutex);
                           const int wanted = std::min(255, static_cast<int>(std::rint(i / 8.0)));
                           right += result.ok() &&
                                    static_cast<uint8_t>(result->y.data[0]) == wanted &&
                                    result->original_type == v1::DATA_TYPE_FLOAT;
                           if (++answered == 1000) all.notify_all();
                         });
  }
  std::unique_lock<std::mutex> lock(mutex);
  ASSERT_TRUE(all.wait_for(lock, std::chrono::seconds(60), [&] { return answered == 1000; }));
  EXPECT_EQ(right, 1000);
}

TEST_F(ConnectionTest, AStartedCallCanBeCancelled) {
  Client client(Serve(1 << 20));
  for (const int from : {0, 3}) {  // a small one, and one that is being sent in pieces
    service_->calls = 0;
    service_->hang_from = from;
    std::promise<absl::Status> done;
    const AsyncCall call = client.DynamicQuantizeAsync(
        from == 0 ? Small() : Large(), from == 0 ? DynamicQuantizeOptions() : ByRow(),
        [&](const absl::StatusOr<Quantized>& result) { done.set_value(result.status()); });
    service_->WaitForCalls(from + 1);
    call.Cancel();
    call.Cancel();
    EXPECT_TRUE(absl::IsCancelled(done.get_future().get()));
    call.Cancel();  // after its end
  }
}

TEST_F(ConnectionTest, CancelEndsThePauseBetweenTwoAttempts) {
  Client client(Serve(1 << 20));
  service_->retry_after = absl::Seconds(25);  // less than the timeout, so the call would wait
  for (const bool large : {false, true}) {    // run by gRPC, and run by a thread
    service_->refuse = 100;
    service_->calls = 0;
    std::promise<absl::Status> done;
    const AsyncCall call = client.DynamicQuantizeAsync(
        large ? Large() : Small(), large ? ByRow() : DynamicQuantizeOptions(),
        [&](const absl::StatusOr<Quantized>& result) { done.set_value(result.status()); });
    service_->WaitForCalls(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // now it waits
    const absl::Time begin = absl::Now();
    call.Cancel();
    EXPECT_TRUE(absl::IsCancelled(done.get_future().get()));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
    EXPECT_LE(service_->calls, 3);  // one for each thread that sends pieces
  }
}

TEST_F(ConnectionTest, WithoutAThreadAStartedCallFails) {
  Client client("http://quantd");  // a thread reports its error
  const ThreadsFail threads_fail;
  EXPECT_TRUE(absl::IsResourceExhausted(AsyncCallOf(client)));
}

TEST_F(ConnectionTest, ACallbackMayStartTheNextCall) {
  Client client(Serve());
  std::promise<absl::Status> done;
  client.DynamicQuantizeAsync(Small(), {}, [&](absl::StatusOr<Quantized> first) {
    ASSERT_TRUE(first.ok()) << first.status();
    client.DequantizeAsync(
        first->y, first->scale, first->zero_point, {},
        [&](const absl::StatusOr<Tensor>& back) { done.set_value(back.status()); });
  });
  EXPECT_EQ(done.get_future().get(), absl::OkStatus());
}

}  // namespace
}  // namespace quantd::client
