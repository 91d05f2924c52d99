// What a calibration has reserved at every stage, in its messages and between them, to the byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "memory_testing.h"
#include "quantd/calibration.h"
#include "server/wire/calibrate.h"

namespace quantd::rpc {
namespace {

using ::testing::HasSubstr;

// The message, the memory for counting it, and what the calibration keeps.
TEST_F(Memory, OfACalibrationThatWaitsForACore) {
  gate_.Close();
  const double before = TakeBothCores();
  const auto request = Calibrate(Floats({kLong}), v1::CALIBRATION_METHOD_MIN_MAX);
  const std::string message = request.SerializeAsString();
  wire::CalibrateMessage decoded = *wire::DecodeCalibrate(View(message));
  const uint64_t keeps = *Calibrator::Create(decoded.options)->BytesWith(*decoded.x);
  Begin(1, "Calibrate");
  Send(*client_, 1, request);
  WaitsWith(before, message.size() + Calibrator::AddScratchBytes(kLong, 1) + keeps);
}

// Values are copied.
TEST_F(Memory, OfACalibrationOfValues) {
  const auto request = Calibrate(FloatValues({100}), v1::CALIBRATION_METHOD_MIN_MAX);
  const std::string message = request.SerializeAsString();
  wire::CalibrateMessage decoded = *wire::DecodeCalibrate(View(message));
  const uint64_t keeps = *Calibrator::Create(decoded.options)->BytesWith(*decoded.x);
  gate_.Close();
  Begin(1, "Calibrate");
  Send(*client_, 1, request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(message.size() + 400 + Calibrator::AddScratchBytes(100, 1) + keeps));
  gate_.Pass();
  // Its result asks for none of the message's memory.
  ASSERT_TRUE(gate_.Reached(2));
  EXPECT_TRUE(Bytes(keeps + 64 * kKiB + wire::CalibrationMemoryBytes(1, 0)));
}

TEST_F(Memory, OfACalibrationThatIsDecodedLate) {
  gate_.Close();
  const double before = TakeBothCores();
  const auto request = Calibrate(FloatValues({kLong}), v1::CALIBRATION_METHOD_MIN_MAX);
  const std::string message = request.SerializeAsString();
  Begin(1, "Calibrate");
  Send(*client_, 1, request);
  WaitsWith(before,
            message.size() +
                wire::DecodeMemoryBytes(wire::RestOf(wire::Method::kCalibrate, View(message))) +
                Calibrator::AddScratchBytes(message.size(), 2));
}

TEST_F(Memory, OfACalibrationThatTurnsOutToNeedMore) {
  constexpr int64_t kChannels = 100;
  v1::CalibrateRequest request =
      Calibrate(Floats({4, kChannels}), v1::CALIBRATION_METHOD_PERCENTILE);
  request.mutable_options()->set_axis(1);
  request.mutable_options()->set_return_state(true);
  client_ = server_->Connect();
  ASSERT_EQ(Call(*client_, 1, "Calibrate", request), 0);
  v1::CalibrateResponse response;
  ASSERT_TRUE(response.ParseFromString(client_->stream(1).Messages()->at(0)));
  // A message that is decoded at once may have as much beside its state.
  request.set_state(response.state());
  ASSERT_EQ(Call(*client_, 3, "Calibrate", request), 0);
  *request.mutable_x() = FloatValues({4, kChannels});
  EXPECT_EQ(Call(*client_, 5, "Calibrate", request), 8);
  EXPECT_THAT(client_->stream(5).Trailer("grpc-message"), HasSubstr("send x as raw_data"));
  EXPECT_TRUE(Bytes(0));
}

// A call that holds memory and sends nothing is given up only if others are refused meanwhile.
TEST_F(Memory, OfACalibrationThatIsIdleAfterOthersWereRefused) {
  Restart({"--memory_budget_bytes=16777216", "--stall_timeout=2"});
  v1::CalibrateRequest request = Calibrate(Floats({2, 120}), v1::CALIBRATION_METHOD_PERCENTILE);
  request.mutable_options()->set_axis(1);
  Begin(1, "Calibrate");
  Send(*client_, 1, request, false);
  ASSERT_TRUE(gate_.Reached(1));
  other_ = server_->Connect();
  EXPECT_EQ(Call(*other_, 1, "Calibrate", request), 14);
  v1::CalibrateRequest more;
  *more.mutable_x() = Floats({2, 120}, 3);
  Send(*client_, 1, more, false);
  ASSERT_TRUE(gate_.Reached(2));
  // Long enough for the server to look at it.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  client_->Say(transport::Data(1, "", true));
  client_->Say(transport::WindowUpdate(1, 1 << 20));
  EXPECT_EQ(client_->Status(1), 0);
}

// Two messages with x and one with a state, then the result, with or without its state.
class Calibration : public Memory, public testing::WithParamInterface<bool> {
 protected:
  // What the server's calibrator keeps after this message; known_ follows it.
  uint64_t Keeps(const std::string& message) {
    const wire::CalibrateMessage decoded = *wire::DecodeCalibrate(View(message));
    if (!known_.has_value()) known_ = *Calibrator::Create(decoded.options);
    if (decoded.x.has_value()) {
      const uint64_t keeps = *known_->BytesWith(*decoded.x);
      EXPECT_TRUE(known_->Add(*decoded.x, Executor(1), [] { return false; }).ok());
      return keeps;
    }
    // Half of it exists only while it is merged.
    const uint64_t keeps = *known_->BytesWithState(decoded.state) / 2;
    EXPECT_TRUE(known_->Merge(decoded.state).ok());
    return keeps;
  }

  std::optional<Calibrator> known_;
};

TEST_P(Calibration, OfItsMessagesItsResultAndItsResponse) {
  constexpr int64_t kChannels = 3;
  v1::CalibrateRequest first = Calibrate(Floats({100, kChannels}), v1::CALIBRATION_METHOD_MSE);
  first.mutable_options()->set_axis(1);
  first.mutable_options()->set_return_state(GetParam());
  v1::CalibrateRequest second;
  *second.mutable_x() = Floats({5'000, kChannels}, -7);
  gate_.Close();
  Begin(1, "Calibrate");
  uint64_t held = 0;
  int reached = 0;
  for (const v1::CalibrateRequest& request : {first, second}) {
    const std::string message = request.SerializeAsString();
    const uint64_t keeps = Keeps(message);
    Send(*client_, 1, request, false);
    const uint64_t elements = request.x().raw_data().size() / sizeof(float);
    // The second one counts as long, because the first one waited at the gate.
    const int threads = std::min(++reached, 2);
    ASSERT_TRUE(gate_.Reached(reached));
    EXPECT_TRUE(Bytes(message.size() + Calibrator::AddScratchBytes(elements, threads) +
                      std::max(held, keeps)));
    held = keeps;
    gate_.Pass();
    EXPECT_TRUE(Bytes(held));
    EXPECT_TRUE(server_->Until(kRequests, 0));
  }
  v1::CalibrateRequest third;
  third.set_state(known_->State());
  const std::string message = third.SerializeAsString();
  const uint64_t merged = Keeps(message);
  held = std::max(held, merged);
  Send(*client_, 1, third, false);
  ASSERT_TRUE(gate_.Reached(++reached));
  EXPECT_TRUE(Bytes(message.size() + 64 * kKiB + merged + held));
  gate_.Pass();
  EXPECT_TRUE(Bytes(held));
  // The result; a search keeps bins for every core.
  client_->Say(transport::Data(1, "", true));
  EXPECT_TRUE(client_->Taken());
  ASSERT_TRUE(gate_.Reached(++reached));
  const uint64_t searches = 2 * 192 * kKiB;
  EXPECT_TRUE(Bytes(held + 64 * kKiB + wire::CalibrationMemoryBytes(kChannels, 0) + searches));
  gate_.Open();
  // The response alone, which is small and does not count as an active request.
  EXPECT_TRUE(server_->Until(kRequests, 0));
  const double left = server_->Metric(kBytes);
  client_->Say(transport::WindowUpdate(1, 1 << 20));
  EXPECT_EQ(client_->Status(1), 0);
  const auto responses = client_->stream(1).Messages();
  ASSERT_TRUE(responses.has_value() && responses->size() == 1);
  uint64_t expected = 1024 + responses->at(0).size();
  // With a state, the request had asked for no more than that.
  if (GetParam()) {
    expected = std::min(expected, wire::CalibrationMemoryBytes(0, known_->StateBytes()));
  }
  EXPECT_EQ(left, static_cast<double>(expected));
  EXPECT_TRUE(Bytes(0));
}

INSTANTIATE_TEST_SUITE_P(WithState, Calibration, testing::Bool());

}  // namespace
}  // namespace quantd::rpc
