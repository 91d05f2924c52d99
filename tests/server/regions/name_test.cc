// Names, and what OpenBeneath does with the files behind them.
#include "server/regions/name.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "regions_testing.h"
#include "server/regions/open_beneath.h"

namespace quantd::regions {
namespace {

TEST(NameTest, NoNames) {
  for (const char* name : {"", ".", "..", ".hidden", "/", "/etc/passwd", "../x", "a/b", "a/../b",
                           "a b", "a\n", "\xc3\xa4", "%2e", "a\\b", "~", "$HOME", "*"}) {
    EXPECT_NE(NameError(name), "") << name;
  }
  EXPECT_NE(NameError(std::string("a\0b", 3)), "");
  EXPECT_NE(NameError(std::string("\0", 1)), "");
  EXPECT_THAT(NameError(std::string(256, 'x')), testing::HasSubstr("256"));
}

TEST(NameTest, EveryByteIsAllowedOrNot) {
  const std::string allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  for (int c = 0; c < 256; ++c) {
    const std::string name = {'x', static_cast<char>(c)};
    EXPECT_EQ(NameError(name).empty(), allowed.find(static_cast<char>(c)) != std::string::npos)
        << c;
  }
}

}  // namespace
}  // namespace quantd::regions
