// Small responses of a stream: how many share a packet.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

// Items are sent in bursts of 1, 2, 4 and so on, while later ones are still to be computed.
TEST(Bursts, FirstItemsDoNotWaitForTheLastOnes) {
  World world;
  const int fd = world.Connect();
  Client client(fd);
  ASSERT_TRUE(client.Heard());
  std::vector<int> unread;  // bytes that have reached the client after each write
  world.on_echo = [&] { ioctl(fd, FIONREAD, &unread.emplace_back()); };
  std::string items;
  for (int i = 0; i < 8; ++i) items += Prefixed("item");
  const std::string call = CallHead(1, "/t/Echo/a") + Data(1, items);
  ASSERT_EQ(write(fd, call.data(), call.size()), call.size());
  // The client reads nothing before.
  world.When("/t/Echo/a", [](const Seen& seen) { return seen.written == 8; });
  ASSERT_TRUE(client.Heard());
  ASSERT_EQ(unread.size(), 8U);
  const std::vector<int> sent = {0, 1, 1, 3, 3, 3, 3, 7};  // items before each write
  for (size_t i = 1; i < sent.size(); ++i) {
    EXPECT_EQ(unread[i] > unread[i - 1], sent[i] > sent[i - 1]) << i;
  }
}

}  // namespace
}  // namespace quantd::transport
