#include "server/stored_parameters/library.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "sets_testing.h"

namespace quantd::stored_parameters {
namespace {

std::string PutSet(Library& library, const std::string& name, const v1::ParameterSet& set) {
  const absl::StatusOr<std::string> reference = library.Put(name, *EncodeSet(set));
  EXPECT_TRUE(reference.ok()) << reference.status();
  return reference.value_or("");
}

TEST(Library, FoundByReferenceAndByName) {
  const TemporaryFolder at;
  auto library = *Library::Open(at.path(), {});
  const std::string reference = PutSet(*library, "a", ScaleSet(0.5F));
  EXPECT_EQ(*library->FindInMemory(reference, "f"), nullptr);
  const absl::StatusOr<SetPointer> set = library->Find(reference, "f");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ((*set)->reference, reference);
  EXPECT_EQ(*library->FindInMemory(reference, "f"), *set);
  EXPECT_EQ(*library->Find("a", "f"), *set);
  EXPECT_EQ(*library->FindInMemory("a", "f"), nullptr);
  PutSet(*library, "a", ScaleSet(0.25F));
  const absl::Status ambiguous = library->Find("a", "f").status();
  EXPECT_TRUE(absl::IsInvalidArgument(ambiguous) && ErrorField(ambiguous) == "f") << ambiguous;
  const absl::Status nobody = library->Find("nobody", "f").status();
  EXPECT_TRUE(absl::IsNotFound(nobody) && ErrorField(nobody) == "f") << nobody;
  EXPECT_TRUE(absl::IsInvalidArgument(library->FindInMemory("../a", "f").status()));
  EXPECT_EQ(library->List("a@")->size(), 2U);
}

TEST(Library, AFileThatHasItsHashButIsNoSet) {
  const TemporaryFolder at;
  auto library = *Library::Open(at.path(), {});
  for (const std::string& bytes :
       {std::string("no set"), std::string(), std::string("\x0a\x00\x10\x00", 4)}) {
    const Reference reference{"a", Sha256(bytes)};
    at.Write(reference.FileName(), bytes);
    EXPECT_TRUE(absl::IsNotFound(library->Find(reference.Text(), "f").status()));
  }
}

// A file that is not a set occupies no name and is not listed, whatever it is.
TEST(Library, FilesThatAreDamagedCountForNothing) {
  const TemporaryFolder at;
  auto library = *Library::Open(at.path(), {});
  const std::string whole = *EncodeSet(LargeSet(100, 0.5F));
  const auto name_of = [](const std::string& bytes) {
    return Reference{"a", Sha256(bytes)}.FileName();
  };
  std::string turned = *EncodeSet(LargeSet(100, 0.25F));
  turned.back() ^= 1;
  at.Write(name_of(*EncodeSet(LargeSet(100, 0.25F))), turned);
  at.Write(name_of(*EncodeSet(LargeSet(100, 2))), whole.substr(0, 50));
  at.Write(name_of("empty"), "");
  at.Write(name_of("no set"), "no set");
  at.Write(name_of("large"), "");
  std::filesystem::resize_file(at / name_of("large"), uint64_t{1} << 40);
  std::filesystem::create_symlink("nothing", at / name_of("link"));
  EXPECT_EQ(library->List("")->size(), 0U);
  EXPECT_TRUE(absl::IsNotFound(library->Find("a", "f").status()));
  const std::string reference = *library->Put("a", whole);
  EXPECT_EQ(*library->List(""), std::vector<std::string>{reference});
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<SetPointer> set = library->Find("a", "f");
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_EQ((*set)->reference, reference);
  }
  // Put repairs the file: then the name has two sets.
  const std::string second = *library->Put("a", *EncodeSet(LargeSet(100, 0.25F)));
  EXPECT_EQ(library->List("")->size(), 2U);
  const absl::Status ambiguous = library->Find("a", "f").status();
  EXPECT_TRUE(absl::IsInvalidArgument(ambiguous)) << ambiguous;
  EXPECT_TRUE(absl::StrContains(ambiguous.message(), reference)) << ambiguous;
  EXPECT_TRUE(absl::StrContains(ambiguous.message(), second)) << ambiguous;
}

// A list reads at most as many bytes as the largest set has; other sets are listed by file name.
TEST(Library, AListLooksIntoSoMuch) {
  const TemporaryFolder at;
  auto library = *Library::Open(at.path(), {});
  std::vector<std::string> references;
  for (int i = 0; i < 3; ++i) {
    references.push_back(PutSet(*library, absl::StrCat("n", i),
                                LargeSet(2 << 20, 0.5F * static_cast<float>(i + 1))));
  }
  for (const std::string& reference : references) {
    std::string bytes(8 << 20, 'x');
    at.Write(ParseReference(reference, "f")->FileName(), bytes);
  }
  EXPECT_EQ(*library->List(""), std::vector<std::string>{references[2]});
}

TEST(Library, SaysWhatItWaitsFor) {
  const TemporaryFolder at;
  auto library = *Library::Open(at.path(), {});
  const std::string reference = PutSet(*library, "a", ScaleSet(0.5F));
  EXPECT_TRUE(library->Find("a", "f").ok());
  EXPECT_EQ(library->waits_for(), "");
}

TEST(Library, MemoryIsBounded) {
  const TemporaryFolder at;
  const Library::Limits limits{.kept_bytes = 1 << 20, .most_bytes = 3 << 20};
  auto library = *Library::Open(at.path(), limits);
  std::vector<SetPointer> used;
  std::vector<std::string> references;
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    references.push_back(PutSet(*library, "a", LargeSet(50'000, 0.5F * static_cast<float>(i + 1))));
    const absl::StatusOr<SetPointer> set = library->Find(references.back(), "f");
    if (set.ok()) {
      used.push_back(*set);
    } else {
      EXPECT_TRUE(absl::IsUnavailable(set.status())) << set.status();
      ++refused;
    }
    EXPECT_LE(library->cache().kept_bytes(), limits.kept_bytes);
    EXPECT_LE(library->cache().live_bytes(), limits.most_bytes);
  }
  EXPECT_GT(used.size(), 8U);
  EXPECT_GT(refused, 0);
  used.clear();
  for (const std::string& reference : references) EXPECT_TRUE(library->Find(reference, "f").ok());
  EXPECT_LE(library->cache().live_bytes(), limits.kept_bytes);
}

// 32 threads find sets while their files vanish, reappear and are damaged: they get the set or
// NOT_FOUND.
TEST(Library, FilesThatChange) {
  const TemporaryFolder at;
  const Library::Limits limits{.kept_bytes = 64 << 10, .most_bytes = 8 << 20};
  auto library = *Library::Open(at.path(), limits);
  std::vector<std::string> references, files, bytes;
  for (int i = 0; i < 12; ++i) {
    bytes.push_back(*EncodeSet(LargeSet(4000, 0.5F * static_cast<float>(i + 1))));
    references.push_back(*library->Put("a", bytes.back()));
    files.push_back(ParseReference(references.back(), "f")->FileName());
  }
  std::atomic<bool> ends{false};
  std::atomic<int> good{0}, missing{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t));
      while (!ends) {
        const size_t i = random() % references.size();
        const absl::StatusOr<SetPointer> set = library->Find(references[i], "f");
        if (set.ok()) {
          EXPECT_EQ((*set)->bytes, bytes[i]);
          ++good;
        } else {
          // Or UNAVAILABLE, if the file has grown since room was made for it.
          EXPECT_TRUE(absl::IsNotFound(set.status()) || absl::IsUnavailable(set.status()))
              << set.status();
          ++missing;
        }
      }
    });
  }
  Random random(99);
  for (int i = 0; i < 2000; ++i) {
    const size_t j = random() % files.size();
    std::string damaged = bytes[j];
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    switch (random() % 4) {
      case 0:
        std::filesystem::remove(at / files[j]);
        break;
      case 1:
        at.Write(files[j], damaged);
        break;
      case 2:
        at.Write(files[j], bytes[j].substr(0, random() % bytes[j].size()));
        break;
      default:
        EXPECT_TRUE(library->Put("a", bytes[j]).ok());
    }
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(good, 100);
  EXPECT_GT(missing, 10);
}

}  // namespace
}  // namespace quantd::stored_parameters
