// Small responses of a stream: how many share a packet.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "world.h"

namespace quantd::transport {
namespace {

// Sends eight items in one packet, and reads nothing until all are answered. Returns for each
// response whether more bytes had reached the client than when the one before it was written.
std::vector<bool> Grew(World& world, int fd, Client& client, const std::string& head, bool ends) {
  std::vector<int> unread;
  world.on_echo = [&] { ioctl(fd, FIONREAD, &unread.emplace_back()); };
  const int before = world.When("/t/Echo/a", [](const Seen&) { return true; }).written;
  std::string items;
  for (int i = 0; i < 8; ++i) items += Prefixed("item");
  const std::string bytes = head + Data(1, items, ends);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  world.When("/t/Echo/a", [before](const Seen& seen) { return seen.written == before + 8; });
  EXPECT_TRUE(client.Heard());
  std::vector<bool> grew;
  for (size_t i = 1; i < unread.size(); ++i) grew.push_back(unread[i] > unread[i - 1]);
  return grew;
}

// Items are sent in bursts of 1, 2, 4 and so on, while later ones are still to be computed; and so
// again in the next iteration.
TEST(Bursts, FirstItemsDoNotWaitForTheLastOnes) {
  World world;
  const int fd = world.Connect();
  Client client(fd);
  ASSERT_TRUE(client.Heard());
  const std::vector<bool> bursts = {true, false, true, false, false, false, true};
  EXPECT_EQ(Grew(world, fd, client, CallHead(1, "/t/Echo/a"), false), bursts);
  EXPECT_EQ(Grew(world, fd, client, "", false), bursts);
}

// Those of a client that sends nothing more go together: it waits for nothing in between.
TEST(Bursts, TheLastItemsShareAPacket) {
  World world;
  const int fd = world.Connect();
  Client client(fd);
  ASSERT_TRUE(client.Heard());
  EXPECT_EQ(Grew(world, fd, client, CallHead(1, "/t/Echo/a"), true), std::vector<bool>(7, false));
}

}  // namespace
}  // namespace quantd::transport
