// Compressed messages: what was sent arrives, and costs no more than it may.
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "server/transport/encoding.h"
#include "world.h"

namespace quantd::transport {
namespace compression_test {

// Much longer than an upload may stand still while others wait.
constexpr std::chrono::milliseconds kStands{1'500};

std::string Compress(absl::string_view bytes, Encoding encoding) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, WindowBits(encoding), 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string to(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  to.resize(stream.total_out);
  deflateEnd(&stream);
  return to;
}

std::string Flagged(absl::string_view compressed) {
  std::string message = Prefixed(compressed);
  message[0] = 1;
  return message;
}

std::string Head(int32_t id, absl::string_view path, absl::string_view encoding) {
  Fields fields = CallFields(path);
  fields.emplace_back("grpc-encoding", encoding);
  return Headers(id, fields);
}

TEST(Compression, MessagesAreWhatTheyWere) {
  for (const Encoding encoding : {Encoding::kGzip, Encoding::kDeflate}) {
    const std::string name(NameOf(encoding));
    for (const size_t size : {0, 1, 5, 1'000, 65'536, 262'143, 262'144, 262'145, 5'000'000}) {
      for (const bool zeros : {true, false}) {
        World world;
        Client client(world.Connect());
        const std::string bytes = zeros ? std::string(size, '\0') : Pattern(size, size);
        const std::string body = Flagged(Compress(bytes, encoding)) + Prefixed("plain") +
                                 Flagged(Compress("last", encoding));
        client.Say(Head(1, "/t/Collect/a", name));
        ASSERT_TRUE(client.SayFrames(1, body, 16'000, true));
        ASSERT_EQ(client.Status(1), 0) << name << " " << size;
        const Seen seen = world.Over("/t/Collect/a");
        ASSERT_EQ(seen.messages.size(), 3U);
        EXPECT_TRUE(seen.messages[0] == bytes) << name << " " << size;
        EXPECT_EQ(seen.messages[1], "plain");
        EXPECT_EQ(seen.messages[2], "last");
      }
    }
  }
}

// A message that is too large is refused at the limit, whatever size it claims; one that is broken
// too.
TEST(Compression, BombsAndWhatIsNoneAreRefused) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kTooLarge = absl::StatusCode::kResourceExhausted;
  const std::string bomb(64 << 20, '\0');
  const std::string large = Compress(bomb, Encoding::kGzip);
  std::string lies = large;
  lies.replace(lies.size() - 4, 4, std::string("\0\0\1\0", 4));
  const std::string right = Compress(Pattern(1, 100'000), Encoding::kGzip);
  std::string broken = right;
  broken[broken.size() / 2] = static_cast<char>(broken[broken.size() / 2] ^ 0x55);
  struct Row {
    Encoding encoding;
    std::string bytes;
    absl::StatusCode status;
  };
  const std::vector<Row> rows = {
      {Encoding::kGzip, large, kTooLarge},
      {Encoding::kGzip, lies, kInvalid},
      {Encoding::kDeflate, Compress(bomb, Encoding::kDeflate), kTooLarge},
      {Encoding::kGzip, "", kInvalid},
      {Encoding::kGzip, right + right, kInvalid},
      {Encoding::kGzip, broken, kInvalid},
      // Their last four bytes, which should be the size, are more than the limit.
      {Encoding::kGzip, "no gzip", kTooLarge},
      {Encoding::kGzip, right.substr(0, right.size() / 2), kTooLarge},
      {Encoding::kGzip, right.substr(0, right.size() - 1), kTooLarge},
      {Encoding::kGzip, right + "x", kTooLarge},
      {Encoding::kGzip, Compress("deflate", Encoding::kDeflate), kTooLarge},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows.data());
    World world(World::Options{.limits = {.max_message_bytes = 8 << 20}});
    Client client(world.Connect());
    client.Say(Head(1, "/t/Collect/a", NameOf(row.encoding)));
    ASSERT_TRUE(client.SayFrames(1, Flagged(row.bytes), 16'000, true));
    EXPECT_EQ(client.Status(1), static_cast<int>(row.status));
    EXPECT_TRUE(world.Over("/t/Collect/a").messages.empty());
  }
}

// Clients disconnect at any moment.
TEST(Compression, ACallMayEndWhileItsMessageIsInflated) {
  const std::string bytes = Flagged(Compress(std::string(30 << 20, 'x'), Encoding::kGzip));
  for (int i = 0; i < 20; ++i) {
    World world;
    {
      Client client(world.Connect());
      std::string all;
      for (int32_t id = 1; id < 9; id += 2) {
        all += Head(id, "/t/Collect/a", "gzip") + Data(id, bytes.substr(0, 16'000));
      }
      client.Say(all);
      if (i % 2 == 0) {
        client.Say(Rst(1) + Rst(5));
        EXPECT_TRUE(client.Heard());
      }
      for (int32_t id = 1; id < 9; id += 2) client.Say(Data(id, bytes.substr(16'000, 16'000)));
    }
    EXPECT_TRUE(world.Empty());
  }
}

// Uploads that stand still while others wait lose their memory. A message that has arrived does not
// stand still: it keeps the memory that it was inflated into.
TEST(Compression, AMessageThatIsHereKeepsItsMemory) {
  World world(World::Options{.budget = 8 << 20});  // of which large messages have 7 MiB
  Client client(world.Connect());
  client.Say(Head(1, "/t/Late/a", "gzip"));
  client.Say(Data(1, Flagged(Compress(std::string(3 << 20, '\0'), Encoding::kGzip)), true));
  ASSERT_TRUE(client.Heard());
  world.When("/t/Late/a", [](const Seen& seen) { return seen.messages.size() == 1; });
  Client other(world.Connect(8));
  other.Say(CallHead(1, "/t/Collect/b"));
  other.Say(DataFrames(1, Prefixed(Pattern(1, 5 << 20)).substr(0, 60'000), 16'000));
  ASSERT_TRUE(other.Heard());
  const uint64_t held = world.receiving().held_bytes();
  EXPECT_GE(held, 3U << 20);
  EXPECT_FALSE(other.Until([&] { return world.receiving().held_bytes() != held; }, kStands));
  EXPECT_EQ(world.receiving().waiting(), 1);
  world.Release("/t/Late/a");
  EXPECT_EQ(client.Status(1), 0);
  EXPECT_TRUE(other.Until([&] { return world.receiving().waiting() == 0; }));
  EXPECT_EQ(world.context().counters.abuse(AbuseAction::kUploadStalled), 0U);
}

}  // namespace compression_test
}  // namespace quantd::transport
