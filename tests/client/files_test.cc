// Tensor files: what is written can be read back, and what is cut, mutated or lying is refused with
// a message, without a crash and without memory for what only a header claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "files/element_type.h"
#include "files/tensor_file.h"
#include "files/text.h"

namespace quantd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string Npy(const std::string& dictionary, size_t data_bytes, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, 0, static_cast<char>(dictionary.size() & 0xff),
           static_cast<char>(dictionary.size() >> 8)};
  if (version > 1) file += std::string(2, '\0');
  return file + dictionary + std::string(data_bytes, 'x');
}

std::string Safetensors(const std::string& json, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(json.size() >> (8 * i)));
  return file + json + std::string(data_bytes, 'x');
}

absl::Status ParseSafetensorsText(const std::string& file, TensorFile* result) {
  return ParseSafetensors(Bytes(file), result);
}

TEST(ParseNpy, ReadsWhatNumpyWrites) {
  const auto tensor =
      ParseNpy(Bytes(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n", 48)));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->shape, ElementsAre(3, 4));
  EXPECT_EQ(tensor->type->data_type, DataType::kFloat);
  EXPECT_EQ(tensor->byte_size, 48u);
  EXPECT_FALSE(tensor->fortran_order);
  EXPECT_FALSE(tensor->big_endian);
}

TEST(ParseNpy, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}",
       "truncated: shape [5] of float takes 20 bytes, the file has 16"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "astype"},
      {"{'descr': '<f4', 'shape': (1,)}", "a key is missing"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "fortran_order"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "shape"},
  };
  for (const auto& [dictionary, words] : rows) {
    EXPECT_THAT(ParseNpy(Bytes(Npy(dictionary, 16))).status().message(), HasSubstr(words));
  }
  EXPECT_THAT(ParseNpy(Bytes("PK\x03\x04")).status().message(), HasSubstr("not a .npy file"));
  // Sizes whose product overflows: nothing may be allocated or read for them.
  for (const char* shape :
       {"4611686018427387904, 4", "9223372036854775807,", "99999999999999999999,",
        "0, 4611686018427387904, 4611686018427387904", "4611686018427387903,"}) {
    const std::string dictionary =
        absl::StrCat("{'descr': '<f8', 'fortran_order': False, 'shape': (", shape, ")}");
    EXPECT_FALSE(ParseNpy(Bytes(Npy(dictionary, 64))).ok()) << shape;
  }
}

TEST(Safetensors, WhatIsKeptIsBounded) {
  const auto text = [](const std::string& json) {
    TensorFile file;
    return std::string(ParseSafetensorsText(Safetensors(json, 0), &file).message());
  };
  const auto tensors = [](int count, absl::string_view shape) {
    std::string json = "{";
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&json, i == 0 ? "" : ",", "\"", i, R"(": {"dtype": "I8", "shape": )", shape,
                      R"(, "data_offsets": [0, 0]})");
    }
    return json + "}";
  };
  EXPECT_THAT(text(tensors(500'001, "[0]")), HasSubstr("more than 500000 tensors"));
  std::string shape = "[0";
  for (int i = 1; i < 64; ++i) shape += ",0";
  EXPECT_EQ(text(tensors(31'000, shape + "]")), "");
  EXPECT_THAT(text(tensors(32'000, shape + "]")), HasSubstr("more than 2000000 dimensions"));
  std::string metadata = "{\"__metadata__\": {";
  for (int i = 0; i <= 100'000; ++i) {
    absl::StrAppend(&metadata, i == 0 ? "" : ",", "\"", i, "\":\"\"");
  }
  EXPECT_THAT(text(metadata + "}}"), HasSubstr("more than 100000 keys"));
  const auto metadata_of = [&](size_t bytes) {
    return absl::StrCat("{\"__metadata__\": {\"k\": \"", std::string(bytes - 1, 'x'), "\"}}");
  };
  EXPECT_EQ(text(metadata_of(25'000'000)), "");
  EXPECT_THAT(text(metadata_of(25'000'001)),
              HasSubstr("__metadata__ has more than 25000000 bytes"));
}

TEST(Safetensors, HeaderIsReadBack) {
  std::vector<StoredTensor> tensors(2);
  tensors[0] = {"a", FindBySafetensors("BF16"), {2, 3}, 0, 12};
  tensors[1] = {"b \"quoted\" \xc3\xa9", FindBySafetensors("F8_E4M3"), {}, 12, 1};
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"k", "{\"x\": 1}"}};
  const std::string file = SafetensorsHeader(tensors, metadata) + std::string(13, 'x');
  TensorFile read;
  const absl::Status status = ParseSafetensorsText(file, &read);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.metadata, metadata);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.tensors[i].name, tensors[i].name);
    EXPECT_EQ(read.tensors[i].type, tensors[i].type);
    EXPECT_EQ(read.tensors[i].shape, tensors[i].shape);
    EXPECT_EQ(read.tensors[i].offset, tensors[i].offset + file.size() - 13);
  }
}

// What is written can be read again.
TEST(Safetensors, AHeaderThatWouldBeRefusedIsNotWritten) {
  const HeaderSizes most = {50'000'000, 500'000, 2'000'000, 25'000'000};
  EXPECT_TRUE(CheckSafetensorsHeader("x", most).ok());
  HeaderSizes sizes[4] = {most, most, most, most};
  sizes[0].bytes += 8;
  ++sizes[1].tensors;
  ++sizes[2].dimensions;
  ++sizes[3].metadata_bytes;
  const char* const words[] = {"50000000 bytes", "500000 tensors", "2000000 dimensions",
                               "25000000 bytes of __metadata__"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(CheckSafetensorsHeader("x", sizes[i]).message(),
              absl::StrCat("x would have a header of more than ", words[i]));
  }
}

std::string W(absl::string_view dtype, absl::string_view shape, absl::string_view offsets) {
  return absl::StrCat(R"({"w": {"dtype": ")", dtype, R"(", "shape": )", shape,
                      R"(, "data_offsets": )", offsets, "}}");
}
std::string Entry(absl::string_view name, int begin, int end) {
  return absl::StrCat("\"", name, R"(": {"dtype": "I8", "shape": [)", end - begin,
                      R"(], "data_offsets": [)", begin, ",", end, "]}");
}

TEST(ParseSafetensors, SaysWhatIsWrong) {
  const std::pair<std::string, const char*> rows[] = {
      {W("F32", "[5]", "[0, 20]"), "ends at 20, the file has 16"},
      {W("F32", "[5]", "[0, 16]"), "shape [5] of float takes 20 bytes, data_offsets span 16"},
      {W("F32", "[4]", "[16, 0]"), "increasing"},
      {W("F32", "[-4]", "[0, 16]"), ">= 0"},
      {W("F32", "[4.5]", "[0, 16]"), ">= 0"},
      {W("F32", "[4611686018427387904, 4]", "[0, 16]"), "tensor 'w'"},
      {W("F32", "[4,4611686018427387904]", "[0, 16]"),
       "tensor 'w': shape [4, 4611686018427387904] has 2^62 elements"},
      {W("F4", "[33]", "[0, 16]"), "takes 17 bytes"},
      {W("F33", "[4]", "[0, 16]"), "'F33'"},
      {R"({"w": 1})", "not an object"},
      {"{\"w\": " + std::string(100'000, '['), "not an object"},
      {"{\"w\": {\"x\": " + std::string(100'000, '['), "nested too deeply"},
      {R"({"__metadata__": {"a": 1}})", "strings"},
      {"[]", "not a JSON object"},
      {"{}" + std::string(1, '\0') + "{}", "not a JSON object"},
      {"\xef\xbb\xbf{}", "not a JSON object"},
      {"{\"\xff\xfe\": 1}", "UTF-8"},
      // Bytes that belong to two tensors or to none, and duplicate names.
      {absl::StrCat("{", Entry("a", 0, 9), ",", Entry("b", 7, 16), "}"),
       "tensors 'a' and 'b' overlap by 2 bytes"},
      {absl::StrCat("{", Entry("a", 0, 16), ",", Entry("b", 0, 16), "}"), "overlap by 16 bytes"},
      {absl::StrCat("{", Entry("a", 0, 3), ",", Entry("b", 4, 16), "}"),
       "a hole of 1 bytes lies before 'b'"},
      {absl::StrCat("{", Entry("a", 1, 16), "}"), "a hole of 1 bytes lies before 'a'"},
      {absl::StrCat("{", Entry("a", 0, 14), "}"), "the last 2 bytes belong to no tensor"},
      {absl::StrCat("{", Entry("a", 0, 16), ",", Entry("a", 0, 16), "}"), "the name 'a' twice"},
      {R"({"a": {"dtype": "I8", "shape": [16], "dtype": "U8", "data_offsets": [0, 16]}})",
       "'a' has 'dtype' twice"},
      {absl::StrCat(R"({"__metadata__": {"k": "1", "k": "2"},)", Entry("a", 0, 16), "}"),
       "'__metadata__' has 'k' twice"},
  };
  for (const auto& [json, words] : rows) {
    TensorFile file;
    EXPECT_THAT(ParseSafetensorsText(Safetensors(json, 16), &file).message(), HasSubstr(words));
  }
  for (const std::string& good :
       {W("F32", "[4]", "[0, 16]"),
        absl::StrCat("{", Entry("b", 4, 16), ",", Entry("e", 4, 4), ",", Entry("a", 0, 4), "}")}) {
    TensorFile file;
    EXPECT_TRUE(ParseSafetensorsText(Safetensors(good, 16), &file).ok()) << good;
  }
  TensorFile file;
  EXPECT_THAT(ParseSafetensorsText(std::string(7, 'x'), &file).message(), HasSubstr("8 bytes"));
  EXPECT_THAT(ParseSafetensorsText(std::string(8, '\xff'), &file).message(),
              HasSubstr("not a .safetensors"));
}

TEST(ParseDataType, TakesTheNamesOfTheContractAndUsualOnes) {
  for (const char* name : {"FLOAT8E4M3FN", "float8_e4m3fn", "fp8", "E4M3", "fp8-e4m3"}) {
    EXPECT_EQ(ParseDataType(name).value_or(DataType::kUnspecified), DataType::kFloat8E4M3Fn)
        << name;
  }
  for (const char* name : {"INT8", "DATA_TYPE_INT8", "int-8"}) {
    EXPECT_EQ(ParseDataType(name).value_or(DataType::kUnspecified), DataType::kInt8) << name;
  }
  EXPECT_FALSE(ParseDataType("DATA_TYPE_").ok());
}

TEST(ClosestName, IsTheOneMeant) {
  const std::vector<std::string> names = {"int8", "uint8", "float16", "quantize"};
  EXPECT_EQ(DidYouMean("itn8", names), ", did you mean int8");
  EXPECT_EQ(DidYouMean("unit8", names), ", did you mean uint8");
  EXPECT_EQ(DidYouMean("quantise", names), ", did you mean quantize");
  EXPECT_EQ(DidYouMean("colour", names), "");
  EXPECT_EQ(DidYouMean("", names), "");
  EXPECT_EQ(DidYouMean(std::string(1 << 20, 'x'), names), "");
}

TEST(Printable, ATerminalOnlyShowsIt) {
  EXPECT_EQ(Printable("model.layers.0/größe ✓"), "model.layers.0/größe ✓");
  EXPECT_EQ(Printable("a\r\nb\tc\x1b[2J\x7f"), "a\\x0d\\x0ab\\x09c\\x1b[2J\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(Printable("\xc2"), "\xc2");
}

// Good files, cut anywhere and mutated: accepted or refused, but never read beyond the end.
// Accepted tensors lie inside the file.
TEST(Files, CutAndMutatedFilesDoNoHarm) {
  const std::string npy = Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 48);
  const std::string safetensors = Safetensors(
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F16","shape":[2,4],"data_offsets":[0,16]}})", 16);
  const auto check = [](const std::string& file) {
    // A copy of exactly this size, so that a sanitizer sees reads beyond it.
    const std::vector<uint8_t> exact(file.begin(), file.end());
    if (const auto tensor = ParseNpy(exact); tensor.ok()) {
      EXPECT_LE(tensor->offset + tensor->byte_size, exact.size());
    }
    TensorFile parsed;
    if (ParseSafetensors(exact, &parsed).ok()) {
      for (const StoredTensor& tensor : parsed.tensors) {
        EXPECT_LE(tensor.offset + tensor.byte_size, exact.size());
      }
    }
  };
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (const std::string& good : {npy, safetensors}) {
    for (size_t length = 0; length <= good.size(); ++length) check(good.substr(0, length));
    for (int i = 0; i < 20000; ++i) {
      std::string bad = good;
      for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
        bad[random() % bad.size()] = "0123456789-{}[](),:'\"eEL\xff"[random() % 24];
      }
      check(bad);
    }
  }
}

}  // namespace
}  // namespace quantd::cli
