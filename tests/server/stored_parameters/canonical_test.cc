#include "server/stored_parameters/canonical.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "quantd/values.h"
#include "sets_testing.h"
#include "wire_testing.h"

namespace quantd::stored_parameters {
namespace {

// A tensor of random values that are exact in its type, as raw_data or as values.
void Fill(v1::DataType type, std::vector<int64_t> shape, Random& random, bool as_values,
          v1::Tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  tensor.set_data_type(type);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  const auto core_type = static_cast<DataType>(type);
  const DataTypeInfo& info = Info(core_type);
  if (info.kind == DataTypeKind::kInteger) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < elements; ++i) {
      const auto span = static_cast<uint64_t>(info.maximum - info.minimum) + 1;
      values.push_back(info.minimum + static_cast<int64_t>(random() % span));
    }
    if (as_values) {
      tensor.mutable_int_values()->mutable_values()->Add(values.begin(), values.end());
      return;
    }
    const auto packed = PackIntegers(core_type, values, "test");
    ASSERT_TRUE(packed.ok());
    tensor.set_raw_data(std::string(packed->begin(), packed->end()));
    return;
  }
  std::vector<float> values;
  for (int64_t i = 0; i < elements; ++i)
    values.push_back(0.25F * static_cast<float>(1 + random() % 8));
  if (as_values) {
    tensor.mutable_float_values()->mutable_values()->Add(values.begin(), values.end());
    return;
  }
  const auto packed = PackFloats(core_type, values, "test");
  ASSERT_TRUE(packed.ok());
  tensor.set_raw_data(std::string(packed->begin(), packed->end()));
}

v1::ParameterSet RandomSet(Random random, bool as_values) {
  v1::ParameterSet set;
  if (random() % 3 == 0) {
    v1::QuantizeEmbeddingsRequest& request = *set.mutable_quantize_embeddings();
    request.set_recipe(static_cast<v1::EmbeddingRecipe>(random() % 5));
    if (random() % 2 == 0) request.set_normalize(true);
    if (random() % 2 == 0) request.set_non_finite(v1::NON_FINITE_IGNORE);
    if (request.recipe() == v1::EMBEDDING_RECIPE_RANGES) {
      const auto d = static_cast<int64_t>(1 + random() % 30);
      v1::Tensor& ranges = *request.mutable_ranges();
      Fill(v1::DATA_TYPE_FLOAT, {1, d}, random, false, ranges);
      ranges.set_shape(0, 2);
      ranges.mutable_raw_data()->append(ranges.raw_data());
      if (as_values) {
        std::vector<float> values(static_cast<size_t>(2 * d));
        std::memcpy(values.data(), ranges.raw_data().data(), ranges.raw_data().size());
        ranges.mutable_float_values()->mutable_values()->Add(values.begin(), values.end());
      }
    }
    return set;
  }
  v1::QuantizeRequest& request = *set.mutable_quantize();
  constexpr v1::DataType kScales[] = {v1::DATA_TYPE_FLOAT, v1::DATA_TYPE_FLOAT16,
                                      v1::DATA_TYPE_BFLOAT16};
  constexpr v1::DataType kOutputs[] = {v1::DATA_TYPE_UINT8, v1::DATA_TYPE_INT8,
                                       v1::DATA_TYPE_INT16, v1::DATA_TYPE_UINT4,
                                       v1::DATA_TYPE_INT4,  v1::DATA_TYPE_UINT2};
  std::vector<int64_t> shape;
  if (random() % 3 != 0) shape.push_back(static_cast<int64_t>(1 + random() % 40));
  const v1::DataType output = kOutputs[random() % std::size(kOutputs)];
  if (random() % 8 != 0) {
    Fill(kScales[random() % std::size(kScales)], shape, random, as_values,
         *request.mutable_scale());
  }
  const uint64_t zero_points = random() % 2;
  if (zero_points == 0) Fill(output, shape, random, as_values, *request.mutable_zero_point());
  if (random() % 2 == 0) request.set_output_type(output);
  if (random() % 2 == 0) request.set_axis(static_cast<int64_t>(random() % 5) - 2);
  if (random() % 3 == 0) request.set_saturate(random() % 2 == 0);
  if (random() % 4 == 0) request.set_precision(v1::DATA_TYPE_FLOAT);
  return set;
}

// 1,000 sets: the encoding is what protobuf writes for the set with raw_data, whatever form it
// arrived in, and encodes to itself.
TEST(Canonical, IsWhatProtobufWrites) {
  const uint64_t seed = wire::TestSeed(11);
  int stored = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const v1::ParameterSet raw = RandomSet(Random(seed + i), false);
    const v1::ParameterSet values = RandomSet(Random(seed + i), true);
    const absl::StatusOr<std::string> encoded = EncodeSet(raw);
    const absl::StatusOr<std::string> of_values = EncodeSet(values);
    ASSERT_EQ(encoded.status(), of_values.status()) << raw.ShortDebugString();
    if (!encoded.ok()) continue;
    ++stored;
    ASSERT_EQ(*encoded, raw.SerializeAsString()) << "QUANTD_TEST_SEED=" << seed + i;
    ASSERT_EQ(*of_values, *encoded) << "QUANTD_TEST_SEED=" << seed + i;
    const auto decoded = Decode(*encoded);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ((*decoded)->bytes, *encoded);
    EXPECT_EQ((*decoded)->skeleton.kind_case(), raw.kind_case());
  }
  EXPECT_GT(stored, 500);
}

TEST(Canonical, UnknownFieldsAndPaddingMakeNoDifference) {
  v1::ParameterSet set = ScaleSet(0.5F);
  v1::Tensor& zero_point = *set.mutable_quantize()->mutable_zero_point();
  zero_point.set_data_type(v1::DATA_TYPE_UINT4);
  zero_point.set_raw_data("\x03");
  const absl::StatusOr<std::string> expected = EncodeSet(set);
  ASSERT_TRUE(expected.ok()) << expected.status();
  zero_point.set_raw_data("\xf3");
  EXPECT_EQ(*EncodeSet(set), *expected);
  const std::string unknown = "\xf8\x07\x01";  // number 127
  std::string inner = set.quantize().SerializeAsString() + unknown;
  const std::string bytes = std::string("\x0a") + static_cast<char>(inner.size()) + inner + unknown;
  const wire::Split split = wire::SplitSet(View(bytes));
  v1::ParameterSet skeleton;
  ASSERT_TRUE(split.ok && skeleton.ParseFromString(split.skeleton));
  EXPECT_EQ(*Encode(skeleton, split.raw), *expected);
  // But a file must not contain them.
  EXPECT_FALSE(Decode(bytes).ok());
  EXPECT_FALSE(Decode(set.SerializeAsString()).ok());
  EXPECT_TRUE(Decode(*expected).ok());
}

TEST(Canonical, WhatIsWrongWithASetIsNamed) {
  const auto field = [](const v1::ParameterSet& set) {
    return ErrorField(EncodeSet(set).status());
  };
  EXPECT_EQ(field({}), "kind");
  v1::ParameterSet set = ScaleSet(0.5F);
  set.mutable_quantize()->mutable_x();
  EXPECT_EQ(field(set), "quantize.x");
  set = ScaleSet(0.5F);
  set.mutable_quantize()->set_report_error(true);
  EXPECT_EQ(field(set), "quantize.report_error");
  EXPECT_EQ(field(ScaleSet(0)), "quantize.scale");
  set = ScaleSet(0.5F);
  set.mutable_quantize()->mutable_scale()->add_shape(2);
  EXPECT_EQ(field(set), "quantize.scale.raw_data");
  set.mutable_quantize()->mutable_scale()->set_shape(0, -1);
  EXPECT_EQ(field(set), "quantize.scale.shape");
  set.mutable_quantize()->mutable_scale()->mutable_shared_memory()->set_region("a");
  EXPECT_EQ(field(set), "quantize.scale.shared_memory");
  set = ScaleSet(0.5F);
  set.mutable_quantize_embeddings()->set_recipe(static_cast<v1::EmbeddingRecipe>(9));
  EXPECT_EQ(field(set), "quantize_embeddings.recipe");
}

// No number of a set is used before it is known to be valid for some x.
TEST(Canonical, NumbersAtTheirLimitsAreRefused) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t number : {kLeast, kLeast + 1, kLeast + 64, int64_t{-65}, int64_t{64},
                               int64_t{1} << 62, kMost - 64, kMost - 1, kMost}) {
    SCOPED_TRACE(number);
    v1::ParameterSet set = LargeSet(2, 0.5F);
    set.mutable_quantize()->set_axis(number);
    const absl::Status status = EncodeSet(set).status();
    EXPECT_EQ(ErrorField(status), "quantize.axis") << status;
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("axis is ", number))) << status;
    EXPECT_FALSE(Decode(set.SerializeAsString()).ok());
    // Errors that depend on x are found when a request uses the set.
    set = LargeSet(2, 0.5F);
    set.mutable_quantize()->set_block_size(number);
    EncodeSet(set).status().IgnoreError();
    set = LargeSet(2, 0.5F);
    set.mutable_quantize()->add_block_shape(number);
    EncodeSet(set).status().IgnoreError();
    set = LargeSet(2, 0.5F);
    set.mutable_quantize()->mutable_scale()->set_shape(0, number);
    EXPECT_FALSE(EncodeSet(set).ok());
    set = {};
    set.mutable_quantize_embeddings()->set_recipe(v1::EMBEDDING_RECIPE_UNIT);
    set.mutable_quantize_embeddings()->set_dimensions(number);
    EXPECT_EQ(EncodeSet(set).ok(), number > 0 && number < int64_t{1} << 62);
  }
  for (const int64_t axis : {-64, -1, 0, 63}) {
    v1::ParameterSet set = LargeSet(2, 0.5F);
    set.mutable_quantize()->set_axis(axis);
    EXPECT_TRUE(EncodeSet(set).ok()) << axis;
  }
}

// Also for kinds and tensors that a later contract adds: their bytes are stored, and checked.
TEST(Canonical, EveryTensorOfEveryKindIsStored) {
  const google::protobuf::OneofDescriptor& kinds = *v1::ParameterSet::descriptor()->oneof_decl(0);
  for (int i = 0; i < kinds.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& kind = *kinds.field(i);
    for (int j = 0; j < kind.message_type()->field_count(); ++j) {
      const google::protobuf::FieldDescriptor& field = *kind.message_type()->field(j);
      if (field.message_type() != v1::Tensor::descriptor() || field.name() == "x") continue;
      const std::string name = absl::StrCat(kind.name(), ".", field.name());
      v1::ParameterSet set;
      auto& request = *set.GetReflection()->MutableMessage(&set, &kind);
      auto& tensor =
          dynamic_cast<v1::Tensor&>(*request.GetReflection()->MutableMessage(&request, &field));
      tensor.set_data_type(v1::DATA_TYPE_FLOAT);
      tensor.add_shape(2);
      tensor.set_raw_data("\1\2\3\4\5\6\7\10");
      const absl::StatusOr<std::string> stored = EncodeSet(set);
      ASSERT_TRUE(stored.ok()) << name << ": " << stored.status();
      EXPECT_EQ(*stored, set.SerializeAsString())
          << name << " is not stored as it is (canonical.cc)";
      tensor.mutable_raw_data()->pop_back();
      EXPECT_EQ(ErrorField(EncodeSet(set).status()), name + ".raw_data")
          << name << " is stored unchecked (check.cc)";
    }
  }
}

TEST(Canonical, SixteenMebibytesAndNoMore) {
  constexpr size_t kMost = (kMaxSetBytes - 40) / 4;
  const absl::StatusOr<std::string> large = EncodeSet(LargeSet(kMost, 0.5F));
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_LE(large->size(), kMaxSetBytes);
  EXPECT_TRUE(Decode(*large).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeSet(LargeSet(kMaxSetBytes / 4, 0.5F)).status()));
}

TEST(Canonical, BytesThatAreNoEncoding) {
  const std::string good = *EncodeSet(LargeSet(5, 0.5F));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(Decode(good.substr(0, size)).ok());
  EXPECT_FALSE(Decode(good + '\0').ok());
  EXPECT_FALSE(Decode(good + good).ok());
  EXPECT_FALSE(Decode(std::string(1 << 20, '\x7a')).ok());
  // An unknown field of two bytes would become 24 times as large when parsed.
  std::string many;
  for (int i = 0; i < 1 << 20; ++i) many += std::string("\x50\x00", 2);
  EXPECT_FALSE(Decode(many).ok());
}

}  // namespace
}  // namespace quantd::stored_parameters
