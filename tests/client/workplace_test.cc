// OUT.partial of a conversion: to whom it belongs. The rest: tests/e2e/test_quantctl_convert*.py.
#include "checkpoints/workplace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace {

// The error of a file system for an exchange, and for any rename of a folder that ends in
// ".partial"; 0: none.
std::atomic<int> exchange_error{0}, rename_error{0};

int Refused(int error) {
  errno = error;
  return -1;
}

}  // namespace

// Replaces libc's function.
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                         unsigned int flags) noexcept {
  if (exchange_error != 0 && (flags & RENAME_EXCHANGE) != 0) return Refused(exchange_error);
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  if (rename_error != 0 && absl::EndsWith(from, ".partial")) return Refused(rename_error);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace quantd::checkpoints {
namespace {

namespace fs = std::filesystem;

class WorkplaceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "/workplace_test_XXXXXX");
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    fs::create_directories(absl::StrCat(folder_, "/m"));
  }
  void TearDown() override { fs::remove_all(folder_); }

  WorkplaceOptions Options(const std::string& out) const {
    WorkplaceOptions options;
    options.model = absl::StrCat(folder_, "/m");
    options.out = absl::StrCat(folder_, "/", out);
    options.is_folder = true;
    options.state = {{"version", 1}, {"to", "fp8-tiles"}, {"files", Json::object()}};
    for (int i = 0; i < 8; ++i) options.names.insert(absl::StrCat(i));
    return options;
  }

  std::string folder_;
};

TEST_F(WorkplaceTest, ManyMayBeginAtOnce) {
  for (int round = 0; round < 30; ++round) {
    const std::string out = absl::StrCat("out", round);
    std::vector<absl::Status> statuses(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < statuses.size(); ++i) {
      threads.emplace_back([&, i] {
        WorkplaceOptions options = Options(out);
        options.shared = options.resume = true;
        const auto place = Workplace::Open(std::move(options));
        statuses[i] = place.status();
        if (place.ok()) std::ofstream((*place)->PathOf(absl::StrCat(i))) << "made";
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) ASSERT_TRUE(status.ok()) << status;
    WorkplaceOptions last = Options(out);
    last.resume = true;
    const auto place = Workplace::Open(std::move(last));
    ASSERT_TRUE(place.ok()) << place.status();
    EXPECT_TRUE((*place)->holds_finished());
    ASSERT_TRUE((*place)->Publish().ok());
    EXPECT_TRUE(fs::exists(absl::StrCat(folder_, "/", out, "/7")));
    EXPECT_FALSE(fs::exists(absl::StrCat(folder_, "/", out, "/.quantctl-convert.json")));
    EXPECT_FALSE(fs::exists(absl::StrCat(folder_, "/", out, ".partial")));
  }
}

TEST_F(WorkplaceTest, ErasesOnlyWhatARunHasMade) {
  const std::string partial = absl::StrCat(folder_, "/out.partial");
  WorkplaceOptions options = Options("out");
  options.force = true;
  fs::create_directory(partial);
  std::ofstream(absl::StrCat(partial, "/7")) << "mine";
  EXPECT_TRUE(absl::IsInvalidArgument(Workplace::Open(options).status()));
  options.resume = true;
  EXPECT_TRUE(absl::IsInvalidArgument(Workplace::Open(options).status()));
  EXPECT_TRUE(fs::exists(absl::StrCat(partial, "/7")));
  fs::remove(absl::StrCat(partial, "/7"));
  options.resume = false;
  EXPECT_TRUE(Workplace::Open(options).ok());
  std::ofstream(absl::StrCat(partial, "/7")) << "of a run that did not end";
  EXPECT_TRUE(Workplace::Open(options).ok());
  EXPECT_FALSE(fs::exists(absl::StrCat(partial, "/7")));
}

// As overlayfs does for folders of a lower layer (EXDEV), and some file systems always (EINVAL).
TEST_F(WorkplaceTest, RemovesOutOnlyForWhatCanBeRenamed) {
  const std::string out = absl::StrCat(folder_, "/out"), partial = absl::StrCat(out, ".partial");
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      found.push_back(entry.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  for (const int error : {EXDEV, EINVAL}) {
    fs::create_directory(out);
    std::ofstream(absl::StrCat(out, "/config.json")) << "{}";
    WorkplaceOptions options = Options("out");
    options.force = true;
    const auto place = Workplace::Open(options);
    ASSERT_TRUE(place.ok()) << place.status();
    std::ofstream((*place)->PathOf("7")) << "made";
    exchange_error = error;
    rename_error = EXDEV;
    const absl::Status failed = (*place)->Publish();
    EXPECT_EQ(failed.message(),
              absl::StrCat("cannot write ", partial, ": Invalid cross-device link"));
    EXPECT_EQ(names(), (std::vector<std::string>{"m", "out", "out.partial"}));
    EXPECT_TRUE(fs::exists(absl::StrCat(out, "/config.json")));
    EXPECT_TRUE(fs::exists(absl::StrCat(partial, "/7")));
    rename_error = 0;
    const absl::Status status = (*place)->Publish();
    EXPECT_TRUE(status.ok()) << status;
    exchange_error = 0;
    EXPECT_EQ(names(), (std::vector<std::string>{"m", "out"}));
    EXPECT_TRUE(fs::exists(absl::StrCat(out, "/7")));
    EXPECT_FALSE(fs::exists(absl::StrCat(out, "/config.json")));
    fs::remove_all(out);
  }
}

}  // namespace
}  // namespace quantd::checkpoints
