// What a service manager receives, how it can disturb the sender, and invalid variables.
#include "server/process/notify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace quantd::process {
namespace {

using ::testing::HasSubstr;

// The manager's end: a datagram socket at /PATH or @NAME.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::memcpy(where.sun_path, name.data(), name.size());
    if (name[0] == '@') where.sun_path[0] = '\0';
    const size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&where), static_cast<socklen_t>(size)), 0)
        << name << ": " << std::strerror(errno);
  }
  ~Manager() { close(fd_); }

  // The next message, or "" when none is there.
  std::string Hear() const {
    std::array<char, 4096> bytes;
    const ssize_t count = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return count < 0 ? "" : std::string(bytes.data(), static_cast<size_t>(count));
  }

 private:
  const int fd_;
};

class NotifyTest : public ::testing::Test {
 protected:
  NotifyTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    Environment(nullptr, nullptr, nullptr);
  }
  ~NotifyTest() override {
    Environment(nullptr, nullptr, nullptr);
    EXPECT_EQ(system(absl::StrCat("rm -r ", folder_).c_str()), 0);
  }

  static void Environment(const char* socket, const char* usec, const char* pid) {
    const std::pair<const char*, const char*> all[] = {
        {"NOTIFY_SOCKET", socket}, {"WATCHDOG_USEC", usec}, {"WATCHDOG_PID", pid}};
    for (const auto& [name, value] : all) {
      value == nullptr ? unsetenv(name) : setenv(name, value, 1);
    }
  }

  std::string folder_ = testing::TempDir() + "quantd-notify-XXXXXX";
};

TEST_F(NotifyTest, WithoutAManagerNothingHappens) {
  for (const char* socket : {static_cast<const char*>(nullptr), ""}) {
    Environment(socket, "1000000", nullptr);
    absl::StatusOr<Notifier> notifier = Notifier::FromEnvironment();
    ASSERT_TRUE(notifier.ok()) << notifier.status();
    EXPECT_EQ(notifier->watchdog_interval(), absl::ZeroDuration());
    EXPECT_TRUE(notifier->Ready("x").ok());
    EXPECT_TRUE(notifier->Alive().ok());
    EXPECT_TRUE(notifier->Stopping("x", absl::Seconds(1)).ok());
  }
}

TEST_F(NotifyTest, TheManagerHearsEverything) {
  const std::string longest(107 - folder_.size() - 1, 'x');
  for (const std::string& name :
       {folder_ + "/socket", folder_ + "/" + longest, absl::StrCat("@quantd-notify-", getpid())}) {
    const Manager manager(name);
    Environment(name.c_str(), nullptr, nullptr);
    absl::StatusOr<Notifier> notifier = Notifier::FromEnvironment();
    ASSERT_TRUE(notifier.ok()) << notifier.status();
    ASSERT_TRUE(notifier->Ready("serving on a").ok()) << name;
    EXPECT_EQ(manager.Hear(), "READY=1\nSTATUS=serving on a\n");
    ASSERT_TRUE(notifier->Alive().ok());
    EXPECT_EQ(manager.Hear(), "WATCHDOG=1\n");
    ASSERT_TRUE(notifier->Stopping("draining", absl::Seconds(40.5)).ok());
    EXPECT_EQ(manager.Hear(), "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=40500000\n");
    EXPECT_EQ(manager.Hear(), "");
  }
}

TEST_F(NotifyTest, FromEnvironmentNamesTheVariable) {
  for (const char* socket : {"relative", "unix:/a", "vsock:2:1234", "@", "/", " /a", "abstract"}) {
    Environment(socket, nullptr, nullptr);
    EXPECT_THAT(std::string(Notifier::FromEnvironment().status().message()),
                HasSubstr(absl::StrCat("NOTIFY_SOCKET is '", socket, "'")));
  }
  for (const size_t size : {108, 1 << 20}) {
    Environment(("/" + std::string(size - 1, 'x')).c_str(), nullptr, nullptr);
    EXPECT_THAT(std::string(Notifier::FromEnvironment().status().message()),
                HasSubstr(absl::StrCat("NOTIFY_SOCKET has ", size, " bytes, must have 107")));
  }
  for (const char* usec : {"0", "-1", "1s", "x", "1e6", "99999999999999999999"}) {
    Environment("/a", usec, nullptr);
    EXPECT_THAT(std::string(Notifier::FromEnvironment().status().message()),
                HasSubstr(absl::StrCat("WATCHDOG_USEC is '", usec, "'")));
  }
  for (const char* pid : {"0", "-1", "x"}) {
    Environment("/a", "1000000", pid);
    EXPECT_THAT(std::string(Notifier::FromEnvironment().status().message()),
                HasSubstr(absl::StrCat("WATCHDOG_PID is '", pid, "'")));
  }
}

TEST_F(NotifyTest, TheWatchdogIsThisProcessOnlyWhenItIsMeant) {
  const auto interval = [](const char* usec, const std::string& pid) {
    Environment("/a", usec, pid.empty() ? nullptr : pid.c_str());
    return Notifier::FromEnvironment()->watchdog_interval();
  };
  EXPECT_EQ(interval("20000000", ""), absl::Seconds(5));
  EXPECT_EQ(interval("20000000", absl::StrCat(getpid())), absl::Seconds(5));
  EXPECT_EQ(interval("20000000", absl::StrCat(getpid() + 1)), absl::ZeroDuration());
  EXPECT_EQ(interval("", ""), absl::ZeroDuration());
  EXPECT_EQ(interval("9223372036854775807", ""), absl::Microseconds(INT64_MAX) / 4);
}

TEST_F(NotifyTest, AManagerThatIsGoneOrReadsNothingIsAnError) {
  const std::string name = folder_ + "/socket";
  Environment(name.c_str(), nullptr, nullptr);
  absl::StatusOr<Notifier> notifier = Notifier::FromEnvironment();
  ASSERT_TRUE(notifier.ok());
  EXPECT_THAT(std::string(notifier->Ready("x").message()), HasSubstr(name));  // nothing is there
  Environment("/dev/null", nullptr, nullptr);                                 // no socket
  EXPECT_FALSE(Notifier::FromEnvironment()->Alive().ok());
  {
    const Manager manager(name);
    absl::Status status;
    int told = 0;
    while ((status = notifier->Alive()).ok() && told < 100'000) ++told;
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << told;
    EXPECT_EQ(manager.Hear(), "WATCHDOG=1\n");
    EXPECT_TRUE(notifier->Alive().ok());  // there is room again
  }
  EXPECT_FALSE(notifier->Alive().ok());  // the manager is gone
  ASSERT_EQ(unlink(name.c_str()), 0);
  const Manager again(name);
  EXPECT_TRUE(notifier->Alive().ok());
  EXPECT_EQ(again.Hear(), "WATCHDOG=1\n");
}

}  // namespace
}  // namespace quantd::process
