// Calls that wait for a disk that does not answer, and what happens to other calls.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "quantd/v1/parameters.pb.h"
#include "testing.h"

namespace {

std::atomic<bool> disk_hangs{false};
std::atomic<int> disk_asked{0};

}  // namespace

// Replaces libc's function: writes wait here.
extern "C" int fsync(int fd) {
  ++disk_asked;
  disk_hangs.wait(true);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace quantd::rpc {
namespace {

class Disk : public testing::Test {
 protected:
  Disk() {
    std::filesystem::create_directory(folder_);
    disk_asked = 0;
    disk_hangs = true;
  }
  ~Disk() override {
    Answer();
    std::filesystem::remove_all(folder_);
  }

  static void Answer() {
    disk_hangs = false;
    disk_hangs.notify_all();
  }
  static void Put(transport::Client& client, int32_t id) {
    v1::PutParametersRequest put;
    put.set_name(absl::StrCat("set", id));
    *put.mutable_parameters()->mutable_quantize()->mutable_scale() = Floats({}, 0.5F);
    client.Say(transport::CallHead(id, "/quantd.v1.ParametersService/PutParameters"));
    Send(client, id, put);
  }
  size_t files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/quantd_rpc_disk_", getpid());
};

// A call that is reset before its turn is gone: it holds no place, no memory and no permit, and
// nothing of it is written.
TEST_F(Disk, CallsThatAreCancelledLeaveTheQueue) {
  const TestServer server({"--parameters_dir=" + folder_});
  const auto client = server.Connect();
  Put(*client, 1);
  EXPECT_TRUE(client->Until([] { return disk_asked > 0; }));
  const double held = server.Metric("quantd_inflight_bytes");
  int32_t id = 3;
  for (int round = 0; round < 20; ++round) {
    const int32_t first = id;
    for (; id < first + 2 * 50; id += 2) Put(*client, id);
    EXPECT_TRUE(server.Until("quantd_inflight_requests", 51));
    for (int32_t reset = first; reset < id; reset += 2) client->Say(transport::Rst(reset));
    EXPECT_TRUE(client->Heard());
    EXPECT_TRUE(server.Until("quantd_inflight_requests", 1));
    EXPECT_TRUE(server.Until("quantd_inflight_bytes", held));
  }
  Put(*client, id);
  Answer();
  EXPECT_EQ(client->Status(1), 0);
  EXPECT_EQ(client->Status(id), 0);
  EXPECT_TRUE(server.Until("quantd_inflight_requests", 0));
  EXPECT_EQ(files(), 2U);
}

// Calls whose deadline passes also leave the queue. The one that has begun is told so as well, but
// its set is stored.
TEST_F(Disk, CallsWhoseDeadlineHasPassedLeaveTheQueue) {
  const TestServer server({"--parameters_dir=" + folder_});
  const auto client = server.Connect();
  for (const int32_t id : {1, 3, 5}) {
    v1::PutParametersRequest put;
    put.set_name(absl::StrCat("set", id));
    *put.mutable_parameters()->mutable_quantize()->mutable_scale() = Floats({}, 0.5F);
    client->Say(
        transport::Headers(id, transport::CallFields("/quantd.v1.ParametersService/PutParameters",
                                                     {{"grpc-timeout", "100m"}})));
    Send(*client, id, put);
    if (id != 1) continue;
    ASSERT_TRUE(client->Until([] { return disk_asked > 0; }));
  }
  for (const int32_t id : {1, 3, 5}) EXPECT_EQ(client->Status(id), 4);
  EXPECT_TRUE(server.Until("quantd_inflight_requests", 1));
  Answer();
  EXPECT_TRUE(server.Until("quantd_inflight_requests", 0));
  EXPECT_TRUE(server.Until("quantd_inflight_bytes", 0));
  EXPECT_EQ(files(), 1U);
}

// Where no call may wait for others, the disk still takes time, and the client is told how long.
TEST_F(Disk, TheTimeThatACallHasWaitedIsSaid) {
  const TestServer server({"--parameters_dir=" + folder_, "--queue_timeout=0"});
  const auto client = server.Connect();
  Put(*client, 1);
  EXPECT_EQ(client->Status(1), 14);
  EXPECT_NE(client->stream(1).Trailer("grpc-message").find("has not answered for 1000 ms"),
            std::string::npos);
  Answer();
  EXPECT_TRUE(server.Until("quantd_inflight_requests", 0));
}

}  // namespace
}  // namespace quantd::rpc
