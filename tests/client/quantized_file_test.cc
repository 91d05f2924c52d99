// The description of quantized tensors: what is written can be read, what is damaged is refused.
#include "files/quantized_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace quantd::cli {
namespace {

using ::testing::HasSubstr;

TEST(QuantizedEntries, AreReadBack) {
  QuantizedEntry entry;
  entry.name = "w";
  entry.input_type = DataType::kBfloat16;
  entry.granularity.axis = -1;
  entry.granularity.block_size = 32;
  entry.granularity.block_shape = {-1, 8};
  entry.y = {"w", DataType::kUint4, {3, 5}};
  entry.scale = {"w_scale", DataType::kFloat8E8M0, {3, 1}};
  entry.zero_point = Reference{"w_zero_point", DataType::kUint4, {3, 1}};
  const auto read = QuantizedEntriesFromJson(QuantizedEntriesToJson({entry}));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(QuantizedEntriesToJson(*read), QuantizedEntriesToJson({entry}));
  EXPECT_FALSE((*read)[0].was_float64);
  entry.was_float64 = true;
  EXPECT_TRUE((*QuantizedEntriesFromJson(QuantizedEntriesToJson({entry})))[0].was_float64);
  EXPECT_EQ((*read)[0].y.type, DataType::kUint4);
  EXPECT_FALSE((*read)[0].tensor_scale.has_value());
}

TEST(QuantizedEntries, DamagedOnesAreRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"version": 2, "tensors": {}})", R"({"version": 1, "tensors": 3})",
        R"({"version": 1, "tensors": {"w": {}}})", R"({"version": 1, "tensors": {"w": 5}})",
        R"({"version": 1, "tensors": {"w": {"input_type": "float", "y": 1, "scale": 2}}})",
        R"({"version": 1, "tensors": {"w": {"input_type": "float",
            "y": {"tensor": "w", "type": "int9", "shape": []},
            "scale": {"tensor": "s", "type": "float", "shape": ["x"]}}}})"}) {
    EXPECT_THAT(QuantizedEntriesFromJson(text).status().message(), HasSubstr("damaged")) << text;
  }
}

// The rules of FORMAT.md for the description; the reader of the Python client has the same.
TEST(QuantizedEntries, AreWhatTheFormatSays) {
  const auto text = [](absl::string_view document, absl::string_view more = "",
                       absl::string_view type = "int8", absl::string_view input = "float") {
    const std::string entry = absl::StrCat(
        R"({"input_type": ")", input, "\", ", more, R"("y": {"tensor": "w", "type": ")", type,
        R"(", "shape": [2]}, "scale": {"tensor": "s", "type": "float", "shape": []}})");
    const std::string json = absl::StrReplaceAll(document, {{"ENTRY", entry}});
    return std::string(QuantizedEntriesFromJson(json).status().message());
  };
  const char one[] = R"({"version": 1, "tensors": {"w": ENTRY}})";
  EXPECT_EQ(text(one), "");
  EXPECT_EQ(text(R"({"x": [{}], "tensors": {"w": ENTRY}, "version": 1})"), "");
  EXPECT_EQ(text(one, R"("x": {"y": 1}, "axis": -1, "block_shape": [-1], )"), "");
  EXPECT_THAT(text(R"({"version": true, "tensors": {}})"), HasSubstr("another version"));
  EXPECT_THAT(text(R"({"version": 1.0, "tensors": {}})"), HasSubstr("damaged"));
  EXPECT_THAT(text(R"({"version": 1, "tensors": {}} x)"), HasSubstr("damaged"));
  EXPECT_THAT(text(R"({"version": 1, "tensors": {}, "version": 1})"), HasSubstr("damaged"));
  EXPECT_THAT(text(R"({"version": 1, "tensors": {"w": ENTRY, "w": ENTRY}})"),
              HasSubstr("'w' twice"));
  for (const char* more : {R"("axis": null, )", R"("axis": 1, "axis": 1, )", R"("axis": 1.0, )",
                           R"("block_size": 9223372036854775808, )", R"("block_shape": null, )",
                           R"("original_type": null, )", R"("y": 1, )"}) {
    EXPECT_THAT(text(one, more), HasSubstr("damaged")) << more;
  }
  for (const char* type : {"fp8", "INT8", "float64", ""}) {
    EXPECT_THAT(text(one, "", type), HasSubstr("types of tensor 'w'")) << type;
  }
  EXPECT_THAT(text(one, "", "int8", "int8"), HasSubstr("types of tensor 'w'"));
}

}  // namespace
}  // namespace quantd::cli
