// What a call has set aside at every stage: while it waits for a core, while it computes, between
// messages, and while its answer is unread. Exact, to the byte.
#include "server/operations/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "quantd/calibration.h"
#include "server/operations/operation.h"
#include "server/wire/answer_layout.h"
#include "server/wire/calibrate.h"
#include "server/wire/decode.h"
#include "testing.h"

namespace quantd::rpc {
namespace {

using ::testing::HasSubstr;
using transport::CallHead;

constexpr char kBytes[] = "quantd_inflight_bytes";
constexpr char kRequests[] = "quantd_inflight_requests";
constexpr char kQueued[] = "quantd_queued_requests";
constexpr uint64_t kKiB = 1024;
constexpr int64_t kLong = 400'000;  // elements whose work takes a core

wire::BytesView View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// What the server says that a request takes: what is asked for, what computing it takes, and what
// is left of that for its answer.
struct Needs {
  explicit Needs(const v1::QuantizeRequest& request) : message(request.SerializeAsString()) {
    decoded = *wire::DecodeRequest(wire::Method::kQuantize, View(message));
    // Scales in shared memory are copied.
    for (const wire::SharedTensor& place : decoded.shared) {
      copy = Floats({static_cast<int64_t>(place.reference.byte_size / sizeof(float))}).raw_data();
      wire::TensorOf(decoded, place.field).bytes = ByteChunks(View(copy));
    }
    asked = message.size() + copy.size() + operations::MemoryBound(decoded);
    const operations::Operation operation = *operations::Plan(decoded);
    computing = message.size() + copy.size() + operation.memory_bytes();
    answer = wire::AnswerMemoryBytes(operation.answer_layout());
  }
  std::string message;
  std::string copy;
  wire::Request decoded;
  uint64_t asked = 0;
  uint64_t computing = 0;
  uint64_t answer = 0;
};

// What malloc has given out in this process: to the server, too.
size_t Allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class Memory : public testing::Test {
 protected:
  bool Bytes(uint64_t expected) const {
    return server_->Until(kBytes, static_cast<double>(expected));
  }
  void Begin(int32_t id, absl::string_view method) { client_->Say(CallHead(id, Path(method))); }
  // Both cores are taken, and what they hold.
  double TakeBothCores() {
    other_ = server_->Connect();
    for (const int32_t id : {1, 3}) {
      other_->Say(CallHead(id, Path("Quantize")));
      Send(*other_, id, Quantize(Floats({kLong})));
    }
    EXPECT_TRUE(gate_.Reached(2));
    EXPECT_TRUE(server_->Until("quantd_busy_cores", 2));
    return server_->Metric(kBytes);
  }
  // That the one which waits holds so much more; then it goes away.
  void WaitsWith(double before, uint64_t expected) {
    EXPECT_TRUE(server_->Until(kQueued, 1));
    EXPECT_EQ(server_->Metric(kBytes) - before, static_cast<double>(expected));
    client_->Say(transport::Rst(1));
    EXPECT_TRUE(client_->Heard());
    EXPECT_TRUE(server_->Until(kQueued, 0));
    EXPECT_TRUE(server_->Until(kBytes, before));
    EXPECT_EQ(server_->Metric("quantd_busy_cores"), 2);
    gate_.Open();
    for (const int32_t id : {1, 3}) EXPECT_EQ(other_->Status(id), 0);
    EXPECT_TRUE(server_->Until("quantd_busy_cores", 0));
    EXPECT_TRUE(Bytes(0));
  }

  void Restart(const std::vector<std::string>& flags) {
    client_.reset();
    server_ = std::make_unique<TestServer>(flags);
    client_ = server_->Connect(0);
  }

  std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>();
  // Grants nothing of the answers: they stay where they are.
  std::unique_ptr<transport::Client> client_ = server_->Connect(0);
  std::unique_ptr<transport::Client> other_;
  Gate gate_;
};

TEST_F(Memory, OfACall) {
  for (const int64_t elements : {1'000, 100'000}) {
    const v1::QuantizeRequest request = Quantize(Floats({elements}));
    const Needs needs(request);
    const int32_t id = elements == 1'000 ? 1 : 3;
    gate_.Close();
    Begin(id, "Quantize");
    Send(*client_, id, request);
    ASSERT_TRUE(gate_.Reached(id == 1 ? 1 : 2));
    EXPECT_TRUE(Bytes(needs.computing));
    EXPECT_EQ(server_->Metric(kRequests), 1);
    gate_.Open();
    EXPECT_TRUE(Bytes(needs.answer));
    // A small answer keeps nobody from working.
    EXPECT_TRUE(server_->Until(kRequests, needs.answer > 64 * kKiB ? 1 : 0));
    client_->Say(transport::Rst(id));
    EXPECT_TRUE(client_->Heard());
    EXPECT_TRUE(Bytes(0));
    EXPECT_TRUE(server_->Until(kRequests, 0));
  }
}

// An answer that is small to the byte, and one that is not.
TEST_F(Memory, OfASmallAnswer) {
  const uint64_t around = Needs(Quantize(Floats({60'000}))).answer - 60'000;
  const auto elements = static_cast<int64_t>(64 * kKiB - around);
  ASSERT_EQ(Needs(Quantize(Floats({elements}))).answer, 64 * kKiB);
  for (const int32_t id : {1, 3}) {
    Begin(id, "Quantize");
    Send(*client_, id, Quantize(Floats({elements + id / 3})));
    ASSERT_TRUE(gate_.Reached(id == 1 ? 1 : 2));
    EXPECT_TRUE(Bytes(64 * kKiB + static_cast<uint64_t>(id / 3)));
    EXPECT_TRUE(server_->Until(kRequests, id / 3));
    client_->Say(transport::Rst(id));
    EXPECT_TRUE(client_->Heard());
    EXPECT_TRUE(Bytes(0));
  }
}

// Nothing but the answer: what was planned, with scales that were made of others, is gone by then.
TEST_F(Memory, OfAnAnswerThatIsUnread) {
  constexpr int64_t kElements = 100'000;
  v1::QuantizeRequest request = Quantize(Floats({kElements}));
  request.set_axis(0);
  v1::Tensor& scale = *request.mutable_scale();
  scale.clear_raw_data();
  scale.set_data_type(v1::DATA_TYPE_FLOAT16);
  scale.add_shape(kElements);
  for (int64_t i = 0; i < kElements; ++i) absl::StrAppend(scale.mutable_raw_data(), "\x80<");
  const Needs needs(request);
  Begin(1, "Quantize");
  Send(*client_, 1, request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.answer));
  const size_t unread = Allocated();
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
  EXPECT_LT(unread, Allocated() + needs.answer + 64 * kKiB);
}

// What a call that fails has left, while its client does not read why.
TEST_F(Memory, OfAnItemThatFails) {
  v1::StreamRequest item;
  v1::DynamicQuantizeRequest& request = *item.mutable_dynamic_quantize();
  *request.mutable_x() = Floats({kLong}, std::numeric_limits<float>::quiet_NaN());
  Begin(1, "Stream");
  Send(*client_, 1, item, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(4 * kKiB));
  EXPECT_TRUE(server_->Until(kRequests, 0));
}

// What is in shared memory is not the server's, but for its copy of what decides which kernel runs.
TEST_F(Memory, OfACallWithItsScalesInSharedMemory) {
  constexpr int64_t kElements = 100'000;
  const std::string folder = absl::StrCat(testing::TempDir(), "/quantd_rpc_memory_", getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::ofstream(folder + "/scales") << Floats({kElements}).raw_data();
  Restart({"--shared_memory_dir=" + folder});
  v1::QuantizeRequest request = Quantize(Floats({kElements}));
  request.set_axis(0);
  v1::Tensor& scale = *request.mutable_scale();
  scale.add_shape(kElements);
  scale.mutable_shared_memory()->set_region("scales");
  scale.mutable_shared_memory()->set_byte_size(kElements * sizeof(float));
  const Needs needs(request);
  gate_.Close();
  Begin(1, "Quantize");
  Send(*client_, 1, request);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.computing));
  gate_.Open();
  EXPECT_TRUE(Bytes(needs.answer));
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
  unlink((folder + "/scales").c_str());
  rmdir(folder.c_str());
}

TEST_F(Memory, OfAnItem) {
  v1::StreamRequest item;
  *item.mutable_quantize() = Quantize(Floats({kLong}));
  const Needs needs(item.quantize());
  const uint64_t envelope = item.ByteSizeLong() - needs.message.size();
  gate_.Close();
  Begin(1, "Stream");
  Send(*client_, 1, item, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(needs.computing + envelope));
  // The next one is computed beside the answer, which is unread.
  Send(*client_, 1, item, false);
  gate_.Pass();
  ASSERT_TRUE(gate_.Reached(2));
  EXPECT_TRUE(Bytes(needs.answer + needs.computing + envelope));
  gate_.Open();
  EXPECT_TRUE(Bytes(2 * needs.answer));
  client_->Say(transport::Rst(1));
  EXPECT_TRUE(client_->Heard());
  EXPECT_TRUE(Bytes(0));
}

TEST_F(Memory, OfACallThatWaitsForACore) {
  gate_.Close();
  const double before = TakeBothCores();
  const v1::QuantizeRequest request = Quantize(Floats({kLong}));
  Begin(1, "Quantize");
  Send(*client_, 1, request);
  WaitsWith(before, Needs(request).asked);
}

// Before it is decoded: the parser's memory, and the widest answer that a byte can become.
TEST_F(Memory, OfACallThatIsDecodedLate) {
  gate_.Close();
  const double before = TakeBothCores();
  const std::string message = Quantize(FloatValues({kLong})).SerializeAsString();
  Begin(1, "Quantize");
  Send(*client_, 1, Quantize(FloatValues({kLong})));
  WaitsWith(before,
            message.size() + wire::DecodeMemoryBytes(false, View(message)) + 18 * message.size());
}

// Two of the largest messages are the most that one can become.
TEST_F(Memory, OfALargeCallThatIsDecodedLate) {
  constexpr uint64_t kMost = 8 << 20;
  Restart({absl::StrCat("--max_message_bytes=", kMost)});
  gate_.Close();
  const double before = TakeBothCores();
  const std::string message = Quantize(FloatValues({kLong})).SerializeAsString();
  ASSERT_GT(18 * message.size(), 2 * kMost);
  Begin(1, "Quantize");
  Send(*client_, 1, Quantize(FloatValues({kLong})));
  WaitsWith(before, message.size() + wire::DecodeMemoryBytes(false, View(message)) + 2 * kMost);
}

TEST_F(Memory, OfAnItemThatIsDecodedLate) {
  gate_.Close();
  const double before = TakeBothCores();
  v1::StreamRequest item;
  *item.mutable_quantize() = Quantize(FloatValues({kLong}));
  const std::string message = item.SerializeAsString();
  Begin(1, "Stream");
  Send(*client_, 1, item);
  WaitsWith(before,
            message.size() + wire::DecodeMemoryBytes(true, View(message)) + 18 * message.size());
}

// An answer that is wider than what could be thought of: values of two bits each.
TEST_F(Memory, OfACallThatTurnsOutToNeedMore) {
  v1::DequantizeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT2);
  request.mutable_x()->add_shape(400'000);
  request.mutable_x()->set_raw_data(std::string(100'000, '\1'));
  *request.mutable_scale() = Floats({});
  request.set_output_encoding(v1::TENSOR_ENCODING_VALUES);
  client_ = server_->Connect();
  ASSERT_EQ(Call(*client_, 1, "Dequantize", request), 0);
  // Too much of what nobody knows to be looked at before.
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      1'000, std::string(2'000, 'x'));
  EXPECT_EQ(Call(*client_, 3, "Dequantize", request), 8);
  EXPECT_THAT(client_->stream(3).Trailer("grpc-message"),
              HasSubstr("send its tensors as raw_data"));
  EXPECT_TRUE(Bytes(0));
}

// Its message, 64 KiB and as many bytes as elements beside it, and what it keeps.
TEST_F(Memory, OfACalibrationThatWaitsForACore) {
  gate_.Close();
  const double before = TakeBothCores();
  const auto request = Calibrate(Floats({kLong}), v1::CALIBRATION_METHOD_MIN_MAX);
  const std::string message = request.SerializeAsString();
  wire::CalibrateMessage decoded = *wire::DecodeCalibrate(View(message));
  const uint64_t keeps = *Calibrator::Create(decoded.options)->BytesWith(*decoded.x);
  Begin(1, "Calibrate");
  Send(*client_, 1, request);
  WaitsWith(before, message.size() + 64 * kKiB + kLong + keeps);
}

// Values are a second copy.
TEST_F(Memory, OfACalibrationOfValues) {
  const auto request = Calibrate(FloatValues({100}), v1::CALIBRATION_METHOD_MIN_MAX);
  const std::string message = request.SerializeAsString();
  wire::CalibrateMessage decoded = *wire::DecodeCalibrate(View(message));
  const uint64_t keeps = *Calibrator::Create(decoded.options)->BytesWith(*decoded.x);
  gate_.Close();
  Begin(1, "Calibrate");
  Send(*client_, 1, request, false);
  ASSERT_TRUE(gate_.Reached(1));
  EXPECT_TRUE(Bytes(message.size() + 400 + 64 * kKiB + 100 + keeps));
  gate_.Open();
  EXPECT_TRUE(Bytes(keeps));
}

TEST_F(Memory, OfACalibrationThatIsDecodedLate) {
  gate_.Close();
  const double before = TakeBothCores();
  const auto request = Calibrate(FloatValues({kLong}), v1::CALIBRATION_METHOD_MIN_MAX);
  const std::string message = request.SerializeAsString();
  Begin(1, "Calibrate");
  Send(*client_, 1, request);
  WaitsWith(before, message.size() + wire::CalibrateDecodeMemoryBytes(View(message)) + 64 * kKiB +
                        message.size());
}

TEST_F(Memory, OfACalibrationThatTurnsOutToNeedMore) {
  constexpr int64_t kChannels = 100;
  v1::CalibrateRequest request =
      Calibrate(Floats({4, kChannels}), v1::CALIBRATION_METHOD_PERCENTILE);
  request.mutable_options()->set_axis(1);
  request.mutable_options()->set_return_state(true);
  client_ = server_->Connect();
  ASSERT_EQ(Call(*client_, 1, "Calibrate", request), 0);
  v1::CalibrateResponse answer;
  ASSERT_TRUE(answer.ParseFromString(client_->stream(1).Messages()->at(0)));
  // As much beside a message that is decoded at once.
  request.set_state(answer.state());
  ASSERT_EQ(Call(*client_, 3, "Calibrate", request), 0);
  *request.mutable_x() = FloatValues({4, kChannels});
  EXPECT_EQ(Call(*client_, 5, "Calibrate", request), 8);
  EXPECT_THAT(client_->stream(5).Trailer("grpc-message"), HasSubstr("send x as raw_data"));
  EXPECT_TRUE(Bytes(0));
}

// Who holds memory and sends nothing is given up only for others that are refused meanwhile.
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
  // Long enough for it to be looked at.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  client_->Say(transport::Data(1, "", true));
  client_->Say(transport::WindowUpdate(1, 1 << 20));
  EXPECT_EQ(client_->Status(1), 0);
}

// Two messages with x and one with a state; then a result, with or without its own state.
class Calibration : public Memory, public testing::WithParamInterface<bool> {
 protected:
  // What the server's calibrator keeps after this message, and does so itself.
  uint64_t Keeps(const std::string& message) {
    const wire::CalibrateMessage decoded = *wire::DecodeCalibrate(View(message));
    if (!known_.has_value()) known_ = *Calibrator::Create(decoded.options);
    if (decoded.x.has_value()) {
      const uint64_t keeps = *known_->BytesWith(*decoded.x);
      EXPECT_TRUE(known_->Add(*decoded.x, Executor(1), [] { return false; }).ok());
      return keeps;
    }
    // Half of it is there only while it is merged.
    const uint64_t keeps = *known_->BytesWithState(decoded.state) / 2;
    EXPECT_TRUE(known_->Merge(decoded.state).ok());
    return keeps;
  }

  std::optional<Calibrator> known_;
};

TEST_P(Calibration, OfItsMessagesItsResultAndItsAnswer) {
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
    ASSERT_TRUE(gate_.Reached(++reached));
    const uint64_t elements = request.x().raw_data().size() / sizeof(float);
    EXPECT_TRUE(Bytes(message.size() + 64 * kKiB + elements + std::max(held, keeps)));
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
  // The result; a search keeps bins on every core.
  client_->Say(transport::Data(1, "", true));
  EXPECT_TRUE(client_->Taken());
  ASSERT_TRUE(gate_.Reached(++reached));
  const uint64_t searches = 2 * 192 * kKiB;
  EXPECT_TRUE(Bytes(held + 64 * kKiB + wire::CalibrationMemoryBytes(kChannels, 0) + searches));
  gate_.Open();
  // The answer alone, which is small and keeps nobody from working.
  EXPECT_TRUE(server_->Until(kRequests, 0));
  const double left = server_->Metric(kBytes);
  client_->Say(transport::WindowUpdate(1, 1 << 20));
  EXPECT_EQ(client_->Status(1), 0);
  const auto answers = client_->stream(1).Messages();
  ASSERT_TRUE(answers.has_value() && answers->size() == 1);
  uint64_t expected = 1024 + answers->at(0).size();
  // Of a state its turn has asked for no more than that.
  if (GetParam()) {
    expected = std::min(expected, wire::CalibrationMemoryBytes(0, known_->StateBytes()));
  }
  EXPECT_EQ(left, static_cast<double>(expected));
  EXPECT_TRUE(Bytes(0));
}

INSTANTIATE_TEST_SUITE_P(WithState, Calibration, testing::Bool());

}  // namespace
}  // namespace quantd::rpc
