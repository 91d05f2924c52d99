// The JSON reader: it accepts what nlohmann's parser accepts, and reads the same.
#include "files/json_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace quantd::cli {
namespace {

bool IsTaken(const std::string& text) {
  JsonReader json(text);
  return json.Skip() && json.End();
}

// The value as nlohmann's type, built from the visitors' calls.
bool Build(JsonReader& json, nlohmann::json* to) {
  std::string buffer;
  absl::string_view text;
  double number = 0;
  switch (json.Next()) {
    case '{':
      *to = nlohmann::json::object();
      return json.Object(
          [&](absl::string_view key) { return Build(json, &(*to)[std::string(key)]); });
    case '[':
      *to = nlohmann::json::array();
      return json.Array([&] { return Build(json, &to->emplace_back()); });
    case '"':
      if (!json.String(&text, &buffer)) return false;
      *to = std::string(text);
      return true;
    case '-':
    case '0':
      if (!json.Double(&number)) return false;
      *to = number;
      return true;
    default:
      if (json.Next() != 'n') *to = json.Next() == 't';
      return json.Skip();
  }
}

TEST(JsonReader, DepthIsBounded) {
  const auto nested = [](size_t levels) {
    return absl::StrCat(std::string(levels, '['), std::string(levels, ']'));
  };
  EXPECT_TRUE(IsTaken(nested(JsonReader::kMaxDepth)));
  const std::string deeper = nested(JsonReader::kMaxDepth + 1), deepest(1'000'000, '[');
  for (const std::string& text : {deeper, deepest}) {
    JsonReader json(text);
    EXPECT_FALSE(json.Skip());
    EXPECT_TRUE(json.too_deep());
  }
}

// Mutations of good texts: accepted by both, with the same values, or by neither.
TEST(JsonReader, IsNlohmannsParser) {
  const std::string good =
      R"({"a":[1,-2.5e-3,true,null,{"é":"x\n\u00e9\ud83d\ude00"}],"b":{"c":"","d":[[],{}]},"e":0})";
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good.substr(0, random() % 8 == 0 ? random() % good.size() : good.size());
    for (int n = static_cast<int>(random() % 3); n > 0 && !text.empty(); --n) {
      text[random() % text.size()] = "0123456789-{}[](),:'\"eE\\u\xff \xc3/n"[random() % 29];
    }
    ASSERT_EQ(IsTaken(text), nlohmann::json::accept(text)) << text;
    if (!IsTaken(text)) continue;
    ++taken;
    nlohmann::json ours;
    JsonReader json(text);
    ASSERT_TRUE(Build(json, &ours)) << text;
    ASSERT_EQ(ours, nlohmann::json::parse(text)) << text;
  }
  EXPECT_GT(taken, 500);
}

}  // namespace
}  // namespace quantd::cli
