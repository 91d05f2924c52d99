// Which names a region may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/regions/directory.h"

namespace quantd::regions {
namespace {

TEST(NameErrorTest, RefusesPathsAndHiddenFiles) {
  for (const char* name : {"", ".", "..", ".hidden", "/etc/passwd", "../x", "a/../b"}) {
    EXPECT_NE(NameError(name), "") << name;
  }
  EXPECT_THAT(NameError(std::string(256, 'x')), testing::HasSubstr("256"));
}

TEST(NameErrorTest, AllowsLettersDigitsAndThreeMarks) {
  const std::string allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  for (int c = 0; c < 256; ++c) {
    const std::string name = {'x', static_cast<char>(c)};
    EXPECT_EQ(NameError(name).empty(), allowed.find(static_cast<char>(c)) != std::string::npos)
        << c;
  }
}

}  // namespace
}  // namespace quantd::regions
