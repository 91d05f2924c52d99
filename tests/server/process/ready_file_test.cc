#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "server/process/notify.h"

namespace quantd::process {
namespace {

TEST(ReadyFile, HoldsWhatNoTextIsAsWellAsJsonCan) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quantd-ready-" + std::to_string(getpid()));
  ASSERT_TRUE(WriteReadyFile(path, {"127.0.0.1:1", "unix:/run/\xFF.sock"}, "127.0.0.1:2").ok());
  std::ifstream file(path);
  const nlohmann::json ready = nlohmann::json::parse(file);
  EXPECT_EQ(ready["grpc"][0], "127.0.0.1:1");
  EXPECT_EQ(ready["grpc"][1], "unix:/run/\xEF\xBF\xBD.sock");
  EXPECT_EQ(ready["http"], "127.0.0.1:2");
  EXPECT_EQ(ready["pid"], getpid());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace quantd::process
