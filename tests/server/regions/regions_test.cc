// Regions by name, while their files appear, change and disappear.
#include "server/regions/regions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "quantd/field_error.h"
#include "regions_testing.h"
#include "server/regions/sigbus_guard.h"

namespace quantd::regions {
namespace regions_test {

using absl::StatusCode;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kPage = 4096;

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator list("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(list), end(list)));
}

class RegionsTest : public testing::Test {
 protected:
  RegionsTest() { Start({}); }
  void Start(const Limits& limits) { regions_ = *Regions::Open(folder_.path(), limits); }

  absl::StatusOr<SharedSpan> Find(const std::string& name, uint64_t offset, uint64_t size,
                                  Access access = Access::kRead) {
    return regions_->Find("x.shared_memory", name, offset, size, access);
  }
  std::string Text(const std::string& name, uint64_t offset, uint64_t size) {
    const absl::StatusOr<SharedSpan> place = Find(name, offset, size);
    if (!place.ok()) return place.status().ToString();
    return {place->bytes().begin(), place->bytes().end()};
  }
  void ExpectError(const absl::StatusOr<SharedSpan>& place, StatusCode code,
                   const std::string& text, const std::string& field = "x.shared_memory.region") {
    EXPECT_EQ(place.status().code(), code) << place.status();
    EXPECT_THAT(std::string(place.status().message()), HasSubstr(text));
    EXPECT_EQ(ErrorField(place.status()), field);
  }

  Folder folder_;
  std::unique_ptr<Regions> regions_;
};

TEST_F(RegionsTest, FindGivesASpanOfTheFile) {
  const int file = folder_.Create("a", 10);
  EXPECT_EQ(pwrite(file, "0123456789", 10, 0), 10);
  EXPECT_EQ(Text("a", 0, 10), "0123456789");
  EXPECT_EQ(Text("a", 3, 4), "3456");
  EXPECT_EQ(Text("a", 10, 0), "");
  EXPECT_EQ(pwrite(file, "ab", 2, 3), 2);
  EXPECT_EQ(Text("a", 2, 4), "2ab5");
  EXPECT_EQ(regions_->mappings(), 1);
  const absl::StatusOr<SharedSpan> place = Find("a", 1, 3, Access::kWrite);
  place->bytes()[2] = 'z';
  char byte = 0;
  EXPECT_EQ(pread(file, &byte, 1, 3), 1);
  EXPECT_EQ(byte, 'z');
  EXPECT_EQ(regions_->mappings(), 1);
  close(file);
}

TEST_F(RegionsTest, FindRefusesSpansBeyondTheFile) {
  folder_.Make("a", 100);
  struct Row {
    uint64_t offset;
    uint64_t size;
    const char* text;
  };
  for (const Row& row :
       {Row{0, 101, "101 bytes from offset 0, region 'a' has 100 bytes"}, Row{100, 1, "has 100"},
        Row{101, 0, "offset 101"}, Row{UINT64_MAX, 1, "offset 18446744073709551615"},
        Row{1, UINT64_MAX, ""}, Row{UINT64_MAX, UINT64_MAX, ""}, Row{UINT64_MAX - 10, 20, ""},
        Row{uint64_t{1} << 63, uint64_t{1} << 63, ""}}) {
    ExpectError(Find("a", row.offset, row.size), StatusCode::kInvalidArgument, row.text,
                "x.shared_memory");
  }
  EXPECT_TRUE(Find("a", 100, 0).ok());
  folder_.Make("empty", 0);
  EXPECT_TRUE(Find("empty", 0, 0).ok());
  ExpectError(Find("empty", 0, 1), StatusCode::kInvalidArgument, "has 0 bytes", "x.shared_memory");
}

TEST_F(RegionsTest, FindRefusesWhatIsNoRegularFile) {
  folder_.Make("file", 100);
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_EQ(symlink("/etc/passwd", (folder_ / "passwd").c_str()), 0);
  EXPECT_EQ(symlink("file", (folder_ / "link").c_str()), 0);
  EXPECT_EQ(symlink("/etc", (folder_ / "etc").c_str()), 0);
  EXPECT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  if (mknod((folder_ / "device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) {
    ExpectError(Find("device", 0, 1), StatusCode::kNotFound, "not a regular file");
  }
  for (const char* name : {"folder", "passwd", "link", "etc", "pipe"}) {
    ExpectError(Find(name, 0, 1), StatusCode::kNotFound, "not a regular file");
    ExpectError(Find(name, 0, 0), StatusCode::kNotFound, name);
  }
  ExpectError(Find("nothing", 0, 1), StatusCode::kNotFound, "'nothing' is not in");
  ExpectError(Find("../x", 0, 1), StatusCode::kInvalidArgument, "region is");  // name_test.cc
  EXPECT_EQ(regions_->mappings(), 0);
}

TEST_F(RegionsTest, HolesCountUntilTheirFileIsGone) {
  Start({.holes = 4 * kPage, .idle = {}});
  const auto sparse = [this](const std::string& name, uint64_t pages) {
    const int file = folder_.Create(name, 0);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(pages * kPage)), 0);
    close(file);
  };
  sparse("a", 3);
  std::optional<SharedSpan> a = *Find("a", 0, 3 * kPage, Access::kWrite);
  std::fill(a->bytes().begin(), a->bytes().end(), 7);
  EXPECT_EQ(regions_->hole_bytes(), 3 * kPage);
  EXPECT_TRUE(Find("a", 0, 1).ok());
  EXPECT_EQ(regions_->hole_bytes(), 3 * kPage);

  sparse("b", 2);
  const std::string text =
      "has 8192 bytes, of which 0 are allocated, and the server allocates at most 4096 more";
  ExpectError(Find("b", 0, 1), StatusCode::kFailedPrecondition, text);
  // Pages that the server has allocated remain while the region is not used.
  a.reset();
  regions_->Sweep();
  ExpectError(Find("b", 0, 1), StatusCode::kFailedPrecondition, text);
  EXPECT_EQ(regions_->mappings(), 1);
  // Files without holes are not affected.
  folder_.Make("full", 9 * kPage);
  EXPECT_TRUE(Find("full", 0, 1).ok());

  // They are gone with the file, at the latest when the server needs their room.
  std::filesystem::remove(folder_ / "a");
  EXPECT_TRUE(Find("b", 0, 1).ok());
  EXPECT_EQ(regions_->hole_bytes(), 2 * kPage);
  std::filesystem::remove(folder_ / "b");
  regions_->Sweep();
  EXPECT_EQ(regions_->hole_bytes(), 0);

  Start({.mappings = 2, .holes = 4 * kPage});
  sparse("a", 1);
  sparse("b", 1);
  a = *Find("a", 0, 1);
  ExpectError(Find("b", 0, 1), StatusCode::kFailedPrecondition,
              "has holes, as 1 other regions have; the limit is 1: allocate all of it");
}

TEST_F(RegionsTest, FilesThatMayOnlyBeRead) {
  close(folder_.Create("a", 10, 'x', 0444));
  const bool root = geteuid() == 0;  // may write everything
  if (root) {
    EXPECT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  EXPECT_EQ(Text("a", 0, 2), "xx");
  ExpectError(Find("a", 0, 2, Access::kWrite), StatusCode::kPermissionDenied, "can't be opened");
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  EXPECT_EQ(chmod((folder_ / "a").c_str(), 0600), 0);
  EXPECT_TRUE(Find("a", 0, 2, Access::kWrite).ok());
}

TEST_F(RegionsTest, FindSeesAReplacedFile) {
  folder_.Make("a", 10, 'x');
  const absl::StatusOr<SharedSpan> before = Find("a", 0, 3);
  folder_.Make("b", 10, 'y');
  std::filesystem::rename(folder_ / "b", folder_ / "a");
  EXPECT_EQ(Text("a", 0, 3), "yyy");
  EXPECT_EQ(before->bytes()[0], 'x');
  EXPECT_FALSE(before->damaged());
  std::filesystem::remove(folder_ / "a");
  ExpectError(Find("a", 0, 3), StatusCode::kNotFound, "'a'");
  EXPECT_EQ(before->bytes()[2], 'x');
}

TEST_F(RegionsTest, FindSeesAGrownFile) {
  const int file = folder_.Create("a", 10, 'x');
  EXPECT_EQ(Text("a", 0, 10), std::string(10, 'x'));
  EXPECT_EQ(posix_fallocate(file, 0, 3 * kPage), 0);
  EXPECT_EQ(pwrite(file, "end", 3, 3 * kPage - 3), 3);
  EXPECT_EQ(Text("a", 3 * kPage - 3, 3), "end");
  EXPECT_EQ(ftruncate(file, 5), 0);
  EXPECT_EQ(Text("a", 0, 5), "xxxxx");
  EXPECT_FALSE(Find("a", 0, 6).ok());
  close(file);
}

TEST_F(RegionsTest, ATruncatedOneIsDamagedAndNotUsedAgain) {
  const int file = folder_.Create("a", 4 * kPage, 'x');
  const absl::StatusOr<SharedSpan> place = Find("a", 0, 4 * kPage);
  const absl::StatusOr<SharedSpan> other = Find("a", 0, 1);
  EXPECT_EQ(ftruncate(file, 0), 0);
  EXPECT_FALSE(place->damaged());
  volatile const uint8_t* bytes = place->bytes().data();
  EXPECT_EQ(bytes[2 * kPage], 0);
  EXPECT_TRUE(place->damaged());
  EXPECT_TRUE(other->damaged());
  // The same file, and as long, but another mapping.
  EXPECT_EQ(posix_fallocate(file, 0, 4 * kPage), 0);
  const absl::StatusOr<SharedSpan> again = Find("a", 0, 4 * kPage);
  EXPECT_NE(again->bytes().data(), place->bytes().data());
  EXPECT_FALSE(again->damaged());
  close(file);
}

TEST_F(RegionsTest, Overlaps) {
  folder_.Make("a", 100);
  folder_.Make("b", 100);
  EXPECT_EQ(link((folder_ / "a").c_str(), (folder_ / "same").c_str()), 0);
  const SharedSpan x = *Find("a", 10, 20);
  EXPECT_TRUE(Find("a", 10, 20)->Overlaps(20, x));
  EXPECT_TRUE(Find("a", 29, 10)->Overlaps(10, x));
  EXPECT_FALSE(Find("a", 30, 10)->Overlaps(10, x));
  EXPECT_TRUE(Find("a", 0, 11)->Overlaps(11, x));
  EXPECT_FALSE(Find("a", 0, 11)->Overlaps(10, x));
  EXPECT_FALSE(Find("a", 0, 10)->Overlaps(10, x));
  EXPECT_TRUE(Find("a", 0, 100)->Overlaps(100, x));
  EXPECT_FALSE(Find("a", 15, 0)->Overlaps(0, x));
  EXPECT_FALSE(Find("b", 10, 20)->Overlaps(20, x));
  EXPECT_TRUE(Find("same", 12, 2)->Overlaps(2, x));
}

TEST_F(RegionsTest, SweepUnmapsWhatIsIdle) {
  folder_.Make("used", 10);
  folder_.Make("idle", 10);
  for (const bool soon : {false, true}) {
    Start({.idle = std::chrono::hours(soon ? 0 : 1)});
    const absl::StatusOr<SharedSpan> used = Find("used", 0, 10);
    EXPECT_TRUE(Find("idle", 0, 10).ok());
    EXPECT_EQ(regions_->mapped_bytes(), 20);
    regions_->Sweep();
    EXPECT_EQ(regions_->mappings(), soon ? 1 : 2);
    EXPECT_EQ(used->bytes()[0], 0);
  }
}

TEST_F(RegionsTest, ThousandsOfFilesNeedNoDescriptors) {
  Start({.mappings = 100});
  const size_t descriptors = OpenDescriptors();
  for (int i = 0; i < 3000; ++i) {
    const std::string name = absl::StrCat("r", i);
    folder_.Make(name, 10, static_cast<char>(i));
    EXPECT_EQ(Text(name, 0, 1), std::string(1, static_cast<char>(i)));
    EXPECT_LE(regions_->mappings(), 100);
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST_F(RegionsTest, WhatCannotBeGuardedIsNotMapped) {
  folder_.Make("a", kPage);
  std::vector<int> slots;
  for (int slot; (slot = ProtectFromSigbus(nullptr, 0)) >= 0;) slots.push_back(slot);
  ExpectError(Find("a", 0, 1), StatusCode::kResourceExhausted, "all 2048 mappings are in use");
  std::ifstream file("/proc/self/maps");
  const std::string maps(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(maps, Not(HasSubstr(folder_.path())));
  for (const int slot : slots) Unguard(slot);
  EXPECT_TRUE(Find("a", 0, 1).ok());
}

TEST_F(RegionsTest, FindRefusesMoreThanTheLimits) {
  Start({.mappings = 2, .bytes = 3 * kPage});
  for (const char* name : {"a", "b", "c"}) folder_.Make(name, kPage);
  folder_.Make("large", 4 * kPage);
  ExpectError(Find("large", 0, 1), StatusCode::kResourceExhausted, "'large' has 16384 bytes");
  std::optional<SharedSpan> a = *Find("a", 0, 1);
  std::optional<SharedSpan> b = *Find("b", 0, 1);
  ExpectError(Find("c", 0, 1), StatusCode::kResourceExhausted, "2 mappings");
  a.reset();
  EXPECT_TRUE(Find("c", 0, 1).ok());
  EXPECT_EQ(regions_->mappings(), 2);
  folder_.Make("half", 2 * kPage);
  EXPECT_TRUE(Find("half", 0, 1).ok());
  folder_.Make("whole", 3 * kPage);
  ExpectError(Find("whole", 0, 1), StatusCode::kResourceExhausted, "in use");
  b.reset();
  EXPECT_TRUE(Find("whole", 0, 1).ok());
  EXPECT_EQ(regions_->mapped_bytes(), 3 * kPage);
  // One whose file was replaced counts as long as it is used.
  Start({.mappings = 2});
  a = *Find("a", 0, 1);
  std::filesystem::rename(folder_ / "b", folder_ / "a");
  b = *Find("a", 0, 1);
  ExpectError(Find("c", 0, 1), StatusCode::kResourceExhausted,
              "has 4096 bytes; 2 mappings of 8192 bytes are in use; the limit is 2 mappings of ");
}

TEST_F(RegionsTest, EachPeerLeavesOthersAPartOfTheMappings) {
  Start({.mappings = 8});
  std::vector<SharedSpan> used;
  int names = 0;
  const auto find = [&](uint64_t peer) {
    const std::string name = "r" + std::to_string(names++);
    folder_.Make(name, kPage);
    absl::StatusOr<SharedSpan> span = regions_->Find("x", name, 0, 1, Access::kRead, peer);
    if (span.ok()) used.push_back(*std::move(span));
    return span.status();
  };
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(find(1).ok());
  const absl::Status refused = find(1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("three quarters of the mappings for one client"));
  EXPECT_TRUE(find(2).ok());
  used.erase(used.begin());
  EXPECT_TRUE(find(1).ok()) << "what is idle counts for nobody";
}

TEST_F(RegionsTest, OpenRefusesWhatIsNoDirectory) {
  for (const std::string& path : {folder_ / "missing", folder_ / "file", std::string("")}) {
    folder_.Make("file", 1);
    const auto regions = Regions::Open(path, {});
    EXPECT_EQ(regions.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(regions.status().message()), HasSubstr("--shared_memory_dir"));
    EXPECT_THAT(std::string(regions.status().message()), testing::Not(HasSubstr("\n")));
  }
}

}  // namespace regions_test
}  // namespace quantd::regions
