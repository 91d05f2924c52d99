// OUT.partial of a conversion: whose it is. The rest: tests/e2e/test_quantctl_convert*.py.
#include "checkpoints/workplace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

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

}  // namespace
}  // namespace quantd::checkpoints
