#include "server/stored_parameters/reference.h"

#include <gtest/gtest.h>

#include "quantd/field_error.h"
#include "server/stored_parameters/hash.h"

namespace quantd::stored_parameters {
namespace {

const std::string kHex(64, 'a');

TEST(Reference, NamesAreNoPaths) {
  for (const char* good : {"a", "0", "layer.0", "a..b", "a-_.", "x86"}) EXPECT_TRUE(IsName(good));
  EXPECT_TRUE(IsName(std::string(64, 'a')));
  EXPECT_FALSE(IsName(std::string(65, 'a')));
  EXPECT_FALSE(IsName(absl::string_view("a\0b", 3)));
  for (const char* bad : {"", ".", "..", ".a", "-a", "_a", "A", "a/b", "/", "a b", "a@b", "a:b",
                          "a\n", "\xc3\xa9", "a\\b", "~"}) {
    EXPECT_FALSE(IsName(bad)) << bad;
    EXPECT_EQ(ErrorField(CheckName(bad, "name")), "name");
  }
}

TEST(Reference, FullOnesAndNames) {
  const auto full = ParseReference("layer.0@sha256:" + kHex, "parameters");
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->name, "layer.0");
  EXPECT_EQ(full->hash, kHex);
  EXPECT_EQ(full->Text(), "layer.0@sha256:" + kHex);
  EXPECT_EQ(full->FileName(), "layer.0@" + kHex + ".quantd");
  const auto name = ParseReference("layer.0", "parameters");
  ASSERT_TRUE(name.ok());
  EXPECT_FALSE(name->is_full());
  EXPECT_EQ(name->Text(), "layer.0");
}

TEST(Reference, WhatIsNone) {
  for (const std::string& bad :
       std::vector<std::string>{"", "@sha256:" + kHex, "a@sha256:", "a@sha256:" + kHex.substr(1),
                                "a@sha256:" + kHex + "a", "a@sha256:" + std::string(64, 'A'),
                                "a@sha256:" + std::string(64, 'g'), "a@md5:" + kHex, "a@" + kHex,
                                "a@sha256:" + kHex + "@", "../a@sha256:" + kHex, "a/b",
                                "a@sha256:../" + kHex.substr(3), std::string(100'000, 'a')}) {
    const auto parsed = ParseReference(bad, "reference");
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << bad.substr(0, 100);
    EXPECT_EQ(ErrorField(parsed.status()), "reference");
    EXPECT_LT(parsed.status().message().size(), 1000);
  }
}

TEST(Reference, FilesAreWhatTheirNamesSay) {
  const auto found = ParseFileName("a@" + kHex + ".quantd");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->Text(), "a@sha256:" + kHex);
  for (const std::string& stranger :
       {std::string("README"), "." + kHex, "a@" + kHex, "a@" + kHex + ".quantd~",
        ".a@" + kHex + ".quantd", "A@" + kHex + ".quantd", "a@" + kHex + "a.quantd",
        "@" + kHex + ".quantd", std::string(".quantd"), std::string("..data")}) {
    EXPECT_FALSE(ParseFileName(stranger).has_value()) << stranger;
  }
}

TEST(Hash, AsSha256sumPrintsIt) {
  // The example in FIPS 180-4, and no bytes at all.
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace quantd::stored_parameters
