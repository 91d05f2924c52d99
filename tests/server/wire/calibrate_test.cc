// The messages of a calibration: those that protobuf's parser accepts, with the same meaning, and x
// and state are views of their bytes.
#include "server/wire/calibrate.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "message_generator.h"
#include "quantd/field_error.h"
#include "server/wire/decode.h"
#include "server/wire/encode.h"
#include "server/wire/split.h"
#include "server/wire/writer.h"
#include "wire_testing.h"

namespace quantd::wire {
namespace calibrate_test {

constexpr int kMessages = 60'000;

bool LiesIn(BytesView part, BytesView whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

// One message in eight consists of two parts.
std::string RandomCalibrate(Random& random) {
  std::string message;
  if (OneIn(random, 2)) {
    message = RandomMessage(*v1::CalibrateRequest::descriptor(), random);
  } else {
    v1::CalibrateRequest request;
    const auto elements = static_cast<int64_t>(Below(random, 50));
    if (!OneIn(random, 4)) {
      *request.mutable_x() = MakeTensor(v1::DATA_TYPE_FLOAT, {elements},
                                        std::string(static_cast<size_t>(elements) * 4, '\x3f'));
    }
    if (OneIn(random, 2)) request.set_state(std::string(Below(random, 100), 'S'));
    if (OneIn(random, 2)) request.mutable_options()->set_method(v1::CALIBRATION_METHOD_PERCENTILE);
    if (OneIn(random, 2)) request.mutable_options()->set_percentile(99);
    if (OneIn(random, 4)) request.mutable_options()->set_axis(-1);
    message = request.SerializeAsString();
  }
  if (OneIn(random, 8)) message += RandomCalibrate(random);
  if (OneIn(random, 4)) message = Mutate(std::move(message), random);
  return message;
}

TEST(Calibrate, MeansWhatProtobufMeans) {
  const google::protobuf::LogSilencer silencer;
  Random random(TestSeed(20261123));
  int accepted = 0, malformed = 0;
  for (int i = 0; i < kMessages; ++i) {
    const std::string bytes = RandomCalibrate(random);
    const std::vector<uint8_t> message = ToBytes(bytes);
    const BytesView view(message);
    v1::CalibrateRequest parsed;
    const bool parses = parsed.ParseFromString(bytes);
    const absl::StatusOr<CalibrateMessage> decoded = DecodeCalibrate(view);
    const bool is_malformed =
        !decoded.ok() && absl::StrContains(decoded.status().message(), "truncated");
    ASSERT_EQ(parses, !is_malformed) << Hex(bytes);
    const uint64_t rest = RestOf(Method::kCalibrate, view).bytes;
    ASSERT_GE(rest, SplitRequest(Method::kCalibrate, view).skeleton.size());
    ASSERT_LE(rest, view.size());
    malformed += is_malformed ? 1 : 0;
    if (!decoded.ok()) continue;
    ++accepted;
    ASSERT_EQ(decoded->has_options, parsed.has_options());
    ASSERT_EQ(decoded->return_state, parsed.options().return_state());
    ASSERT_EQ(decoded->options.axis.has_value(), parsed.options().has_axis());
    if (decoded->options.axis.has_value()) {
      ASSERT_EQ(*decoded->options.axis, parsed.options().axis());
    }
    ASSERT_EQ(decoded->options.method == CalibrationMethod::kMinMax,
              parsed.options().method() <= v1::CALIBRATION_METHOD_MIN_MAX);
    ASSERT_EQ(decoded->options.percentile, parsed.options().percentile());
    ASSERT_EQ(ToString(decoded->state), parsed.state()) << Hex(bytes);
    ASSERT_TRUE(decoded->state.empty() || LiesIn(decoded->state, view));
    ASSERT_EQ(decoded->x.has_value(), parsed.has_x());
    if (!parsed.has_x()) continue;
    ASSERT_EQ(static_cast<int>(decoded->x->data_type), parsed.x().data_type());
    ASSERT_EQ(decoded->x->shape.size(), static_cast<size_t>(parsed.x().shape_size()));
    ASSERT_EQ(decoded->shared.has_value(), parsed.x().has_shared_memory());
    if (!parsed.x().has_raw_data()) continue;
    ASSERT_EQ(ToString(decoded->x->bytes), parsed.x().raw_data());
    ASSERT_TRUE(decoded->x->bytes.size() == 0 || LiesIn(decoded->x->bytes, view));
  }
  EXPECT_GT(accepted, kMessages / 5);
  EXPECT_GT(malformed, kMessages / 20);
}

TEST(Calibrate, WhatIsNeitherXNorStateIsToldBefore) {
  v1::CalibrateRequest request;
  *request.mutable_x() = MakeTensor(v1::DATA_TYPE_FLOAT, {1000}, std::string(4000, 'x'));
  request.set_state(std::string(5000, 's'));
  const std::string bytes = request.SerializeAsString();
  EXPECT_EQ(RestOf(Method::kCalibrate, View(bytes)).bytes, bytes.size() - 9000);
  EXPECT_LT(SplitRequest(Method::kCalibrate, View(bytes)).skeleton.size(), 40u);
  // Options may contain any bytes, also tags with the numbers of x and state.
  for (const char tag : {'\x12', '\x1a'}) {
    std::string options;
    for (int i = 0; i < 1000; ++i) options += {tag, '\0'};
    std::string message = {'\x0a', '\xd0', '\x0f'};
    message += options;
    EXPECT_EQ(RestOf(Method::kCalibrate, View(message)).bytes, message.size());
    EXPECT_TRUE(DecodeCalibrate(View(message)).ok());
  }
}

TEST(Calibrate, GroupsAndMessagesShareTheDepth) {
  for (int depth = 96; depth <= 102; ++depth) {
    std::string message(static_cast<size_t>(depth), '\x0b');
    message += std::string(static_cast<size_t>(depth), '\x0c');
    EXPECT_EQ(SplitRequest(Method::kCalibrate, View(message)).ok, depth <= 100) << depth;
    std::string in_x;
    AppendBytesField(2, message, in_x);
    EXPECT_EQ(SplitRequest(Method::kCalibrate, View(in_x)).ok, depth <= 99) << depth;
    EXPECT_EQ(v1::CalibrateRequest().ParseFromString(in_x), depth <= 99) << depth;
  }
}

TEST(Calibrate, NamesTheFieldThatIsWrong) {
  const auto field_of = [](const v1::CalibrateRequest& request) {
    return ErrorField(DecodeCalibrate(View(request.SerializeAsString())).status());
  };
  v1::CalibrateRequest request;
  EXPECT_EQ(field_of(request), "");
  request.mutable_options()->set_method(static_cast<v1::CalibrationMethod>(5));
  EXPECT_EQ(field_of(request), "method");
  request.mutable_options()->set_method(v1::CALIBRATION_METHOD_MSE);
  request.mutable_options()->set_symmetry(static_cast<v1::Symmetry>(-1));
  EXPECT_EQ(field_of(request), "symmetry");
  request.mutable_options()->clear_symmetry();
  request.mutable_options()->set_output_type(static_cast<v1::DataType>(77));
  EXPECT_EQ(field_of(request), "output_type");
  request.mutable_options()->clear_output_type();
  request.mutable_options()->set_non_finite(static_cast<v1::NonFinite>(3));
  EXPECT_EQ(field_of(request), "non_finite");
  request.clear_options();
  request.mutable_x()->add_shape(1);
  EXPECT_EQ(field_of(request), "x.data_type");
  request.mutable_x()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_x()->mutable_float_values()->add_values(1);
  EXPECT_EQ(field_of(request), "x.float_values");
}

TEST(Calibrate, TheResponseIsWhatWasFound) {
  memory::Pool pool;
  for (const DataType type : {DataType::kInt4, DataType::kUint16, DataType::kFloat8E4M3Fn}) {
    Calibration found;
    found.shape = {3};
    found.range_shape = {2, 3};
    found.scale = {1, 2, 0.5F};
    found.range = {-1, -2, -3, 4, 5, 6};
    found.has_zero_point = type != DataType::kFloat8E4M3Fn;
    if (found.has_zero_point) found.zero_point = {0, 5, 7};
    found.elements = 17;
    found.non_finite_elements = 2;
    const memory::Piece piece = EncodeCalibration(found, type, "state", pool);
    EXPECT_LE(piece.size, MaxCalibrationBytes(3, 5));
    EXPECT_GE(piece.begin, piece.buffer.data() + kRoomBefore);
    v1::CalibrateResponse expected;
    *expected.mutable_scale() = MakeTensor(v1::DATA_TYPE_FLOAT, {3}, Bytes(found.scale));
    *expected.mutable_range() = MakeTensor(v1::DATA_TYPE_FLOAT, {2, 3}, Bytes(found.range));
    if (type == DataType::kInt4) {
      *expected.mutable_zero_point() = MakeTensor(v1::DATA_TYPE_INT4, {3}, "\x50\x07");
    }
    if (type == DataType::kUint16) {
      *expected.mutable_zero_point() =
          MakeTensor(v1::DATA_TYPE_UINT16, {3}, Bytes<uint16_t>({0, 5, 7}));
    }
    expected.set_elements(17);
    expected.set_non_finite_elements(2);
    expected.set_state("state");
    EXPECT_EQ(ToString(piece), expected.SerializeAsString());
  }
}

TEST(Calibrate, AResponseOfManyChannelsFitsWhatWasTold) {
  memory::Pool pool;
  for (const size_t channels : {0, 1, 127, 100'000}) {
    Calibration found;
    found.shape = {static_cast<int64_t>(channels)};
    found.range_shape = {2, static_cast<int64_t>(channels)};
    found.scale.assign(channels, 1);
    found.zero_point.assign(channels, 1);
    found.has_zero_point = true;
    found.range.assign(2 * channels, 1);
    found.elements = found.non_finite_elements = UINT64_MAX;
    const std::string state(channels, 's');
    const memory::Piece piece = EncodeCalibration(found, DataType::kInt16, state, pool);
    EXPECT_LE(piece.size, MaxCalibrationBytes(channels, channels));
    EXPECT_GE(piece.size + 256, MaxCalibrationBytes(channels, channels))
        << "for lengths and counts";
    EXPECT_LE(CalibrationMemoryBytes(channels, channels), 4 * piece.size + 1024);
    EXPECT_GE(CalibrationMemoryBytes(channels, channels), 2 * piece.size);
  }
}

}  // namespace calibrate_test
}  // namespace quantd::wire
