#include "server/access/tokens.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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

TEST(Tokens, FilesThatCannotBeUsed) {
  const Folder folder;
  std::string many;
  for (int i = 0; i < 257; ++i) many += "some-token\n";
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "it contains no token"},
           {"# only\n\n", "it contains no token"},
           {"two words\n", "line 1 is not a token"},
           {"good\nb\u00e4d\n", "line 2 is not a token"},
           {"====", "line 1 is not a token"},
           {std::string(5000, 'x'), "line 1 has 5000 bytes, a token may have at most 4096"},
           {many, "it has more than 256 tokens"}}) {
    const std::string path = folder.Put("t", text);
    const std::string message(Tokens::Load(path).status().message());
    EXPECT_TRUE(absl::StartsWith(message, path + ": " + why)) << message;
    EXPECT_TRUE(absl::EndsWith(message, " (--auth_token_file)")) << message;
    for (const char* secret : {"two", "good", "some-token", "xxx"}) {
      EXPECT_FALSE(absl::StrContains(message.substr(path.size()), secret)) << message;
    }
  }
}

// In a process of its own, because a digest stays available once it was found.
TEST(TokensDeathTest, WithoutADigestThereIsNoToken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Folder folder;
  const std::string path = folder.Put("t", "one\n");
  const auto load = [&] {
    EVP_set_default_properties(nullptr, "provider=none");
    const auto tokens = Tokens::Load(path);
    std::cerr << tokens.status().message();
    std::exit(tokens.ok() && (*tokens)->Contains("another") ? 1 : 0);
  };
  EXPECT_EXIT(load(), testing::ExitedWithCode(0), "t: OpenSSL has no SHA-256 .*--auth_token_file");
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
