// SIGBUS: in guarded memory it sets a mark, elsewhere it ends the process.
#include "server/regions/sigbus_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <vector>

#include "regions_testing.h"

namespace quantd::regions {
namespace sigbus_guard_test {

constexpr size_t kPage = 4096;
const uint64_t damaged_at_start = CountDamaged();

class Mapped {
 public:
  Mapped(int file, size_t size) : size_(size) {
    data_ = static_cast<uint8_t*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~Mapped() { munmap(data_, size_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  volatile uint8_t* at(size_t offset) const { return data_ + offset; }
  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_;
  size_t size_;
};

class SigbusGuardTest : public testing::Test {
 protected:
  SigbusGuardTest() { InstallSigbusGuard(); }
  Folder folder_;
};

TEST_F(SigbusGuardTest, WhatIsCutShortReadsAsZerosAndIsDamaged) {
  const int file = folder_.Create("a", 8 * kPage, 'x');
  const Mapped mapped(file, 8 * kPage);
  const int slot = ProtectFromSigbus(mapped.data(), 8 * kPage);
  ASSERT_GE(slot, 0);
  EXPECT_EQ(*mapped.at(7 * kPage), 'x');
  EXPECT_EQ(ftruncate(file, 2 * kPage), 0);
  EXPECT_FALSE(IsDamaged(slot));
  const uint64_t damaged_before = CountDamaged();
  EXPECT_EQ(*mapped.at(kPage), 'x');
  EXPECT_FALSE(IsDamaged(slot));
  EXPECT_EQ(*mapped.at(4 * kPage + 17), 0);
  EXPECT_TRUE(IsDamaged(slot));
  // An earlier page is found missing later.
  EXPECT_EQ(*mapped.at(3 * kPage), 0);
  *mapped.at(8 * kPage - 1) = 'y';
  EXPECT_EQ(*mapped.at(8 * kPage - 1), 'y');
  EXPECT_EQ(*mapped.at(kPage), 'x');
  // What was written meanwhile is not in the file when it grows again.
  EXPECT_EQ(ftruncate(file, 8 * kPage), 0);
  char last = 'z';
  EXPECT_EQ(pread(file, &last, 1, 8 * kPage - 1), 1);
  EXPECT_EQ(last, 0);
  EXPECT_EQ(damaged_at_start, 0u);
  EXPECT_EQ(CountDamaged(), damaged_before + 1);
  Unguard(slot);
  close(file);
}

TEST_F(SigbusGuardTest, AllSlotsTaken) {
  std::vector<int> slots;
  const int file = folder_.Create("a", kPage);
  const Mapped mapped(file, kPage);
  for (size_t i = 0; i < kMaxGuarded; ++i) slots.push_back(ProtectFromSigbus(mapped.data(), kPage));
  EXPECT_EQ(ProtectFromSigbus(mapped.data(), kPage), -1);
  for (const int slot : slots) {
    EXPECT_GE(slot, 0);
    Unguard(slot);
  }
  close(file);
}

using SigbusGuardDeathTest = SigbusGuardTest;

TEST_F(SigbusGuardDeathTest, ElsewhereItEndsTheProcess) {
  const int file = folder_.Create("a", 2 * kPage);
  const Mapped mapped(file, 2 * kPage);
  const int slot = ProtectFromSigbus(mapped.data(), kPage);  // the first page only
  EXPECT_EQ(ftruncate(file, 0), 0);
  EXPECT_DEATH(*mapped.at(kPage) = 1, "");
  Unguard(slot);
  EXPECT_DEATH(*mapped.at(0) = 1, "");
  EXPECT_DEATH(raise(SIGBUS), "");
  EXPECT_DEATH(kill(getpid(), SIGBUS), "");
  close(file);
}

}  // namespace sigbus_guard_test
}  // namespace quantd::regions
