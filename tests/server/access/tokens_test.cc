#include "server/access/tokens.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "testing.h"

namespace quantd::access {
namespace {

TEST(Tokens, AreThoseOfTheFile) {
  const Folder folder;
  const auto tokens = *Tokens::Load(folder.Put("t", "# no\n\none\r\n  two==  \n"));
  EXPECT_EQ(tokens->size(), 2U);
  for (const char* good : {"one", "two=="}) EXPECT_TRUE(tokens->Contains(good));
  for (const char* bad : {"", "on", "onee", "# no", "two", "ONE"}) {
    EXPECT_FALSE(tokens->Contains(bad)) << bad;
  }
  EXPECT_TRUE(tokens->Check("Bearer one", "x").ok());
  EXPECT_TRUE(tokens->Check("BEARER  two== ", "x").ok());
  for (const char* bad :
       {"", "one", "Bearer", "Bearer ", "Bearer two", "Basic one", "Bearer one, Bearer one"}) {
    const absl::Status status = tokens->Check(bad, "x");
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << bad;
  }
}

TEST(Tokens, ManyThreadsAskWhileTheyChange) {
  const Folder folder;
  const auto tokens = *Tokens::Load(folder.Put("t", "always\nfirst\n"));
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!ended) {
        EXPECT_TRUE(tokens->Contains("always"));
        EXPECT_FALSE(tokens->Contains("never"));
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    folder.Put("next", i % 2 == 0 ? "second\nalways\n" : "always\nfirst\n");
    std::filesystem::rename(folder.path("next"), folder.path("t"));
    EXPECT_TRUE(tokens->Reload().ok());
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace quantd::access
