// What a connection does next at every time of its life.
#include "server/transport/lifetime.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace quantd::transport {
namespace lifetime_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Do = Lifetime::Do;
using Facts = Lifetime::Facts;

class LifetimeTest : public testing::Test {
 protected:
  Lifetime::Time At(milliseconds later) const { return start_ + later; }
  Do Look(milliseconds later, const Facts& facts = {}) {
    const Lifetime::Step step = life_.Look(At(later), facts);
    if (step.what == Do::kEnd) ended_ = step.why;
    return step.what;
  }
  Do Pong(size_t calls, milliseconds later = {}) { return life_.OnPong(calls, At(later)).what; }
  Do NoCall(milliseconds later = {}) { return life_.OnNoCall(At(later)).what; }
  Do Leave(milliseconds later = {}) { return life_.Leave(At(later)).what; }

  const Lifetime::Time start_{std::chrono::hours(1)};
  Limits limits_;
  Lifetime life_{limits_, start_};
  ConnectionEnd ended_ = ConnectionEnd::kAge;
};

TEST_F(LifetimeTest, HasToBeginWithinTenSeconds) {
  EXPECT_EQ(Look(seconds(10)), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(10'001)), Do::kEnd);
  EXPECT_EQ(ended_, ConnectionEnd::kNoHandshake);
  life_.Spoke();
  EXPECT_EQ(Look(milliseconds(10'001)), Do::kNothing);
}

TEST_F(LifetimeTest, ASilentPeerIsAskedAndHasAThirdOfTheTimeToAnswer) {
  life_.Spoke();
  EXPECT_EQ(Look(seconds(60)), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(60'001), {.throttled = true}), Do::kNothing) << "it is not read";
  EXPECT_EQ(Look(milliseconds(60'001)), Do::kPing);
  EXPECT_EQ(Look(milliseconds(80'001)), Do::kNothing) << "asked once";
  life_.Heard(At(seconds(70)));
  EXPECT_EQ(Look(milliseconds(80'002)), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(130'001)), Do::kPing);
  EXPECT_EQ(Look(milliseconds(150'002)), Do::kEnd);
  EXPECT_EQ(ended_, ConnectionEnd::kSilent);
}

TEST_F(LifetimeTest, WhoDoesNotReadMayOnlyStandWhileNobodyWaits) {
  life_.Spoke();
  EXPECT_EQ(Look(seconds(5), {.blocked = true, .anyone_waits = true}), Do::kNothing);
  EXPECT_EQ(Look(seconds(6), {.blocked = true}), Do::kNothing);
  EXPECT_EQ(Look(seconds(6), {.anyone_waits = true}), Do::kNothing);
  life_.Wrote(At(seconds(2)));
  EXPECT_EQ(Look(seconds(7), {.blocked = true, .anyone_waits = true}), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(7'001), {.blocked = true, .anyone_waits = true}), Do::kEnd);
  EXPECT_EQ(ended_, ConnectionEnd::kStalled);
}

TEST_F(LifetimeTest, ADrainWaitsForCallsAndForThoseThatAreUnderWay) {
  life_.Spoke();
  EXPECT_EQ(Pong(0), Do::kNothing) << "nobody asked";
  EXPECT_EQ(NoCall(), Do::kNothing);
  EXPECT_EQ(Leave(), Do::kAnnounce);
  EXPECT_EQ(Leave(), Do::kNothing);
  EXPECT_EQ(NoCall(), Do::kNothing) << "the client does not know yet";
  EXPECT_EQ(Pong(1), Do::kNothing);
  EXPECT_EQ(NoCall(), Do::kPing);
  EXPECT_EQ(Pong(1), Do::kNothing) << "one was under way";
  EXPECT_EQ(NoCall(), Do::kPing);
  EXPECT_FALSE(life_.left());
  EXPECT_EQ(Pong(0), Do::kGoAway);
  EXPECT_TRUE(life_.left());
  EXPECT_EQ(Pong(0), Do::kNothing);
  EXPECT_EQ(NoCall(), Do::kNothing);
}

TEST_F(LifetimeTest, ADrainWithoutCallsAsksOnceMore) {
  Leave();
  EXPECT_EQ(Pong(0), Do::kPing);
  EXPECT_EQ(Pong(0), Do::kGoAway);
}

// A client on a busy machine reads the GOAWAY seconds later, and makes calls until then.
TEST_F(LifetimeTest, ADrainWaitsSomeTimeForAnAnswer) {
  life_.Spoke();
  Leave(seconds(1));
  EXPECT_EQ(Look(seconds(6)), Do::kNothing);
  EXPECT_EQ(Look(seconds(9), {.calls = 1}), Do::kNothing) << "a call may take its time";
  EXPECT_EQ(Look(milliseconds(6'001)), Do::kGoAway);
  EXPECT_EQ(Look(seconds(9)), Do::kNothing);
}

TEST_F(LifetimeTest, AConnectionOfSomeAgeIsSentElsewhere) {
  limits_.max_connection_age = seconds(20);
  limits_.max_connection_age_grace = seconds(5);
  life_.Spoke();
  EXPECT_EQ(Look(seconds(20), {.calls = 1}), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(20'001), {.calls = 1}), Do::kAnnounce);
  EXPECT_EQ(Look(seconds(25), {.calls = 1}), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(25'001), {.calls = 1}), Do::kClose);
}

TEST_F(LifetimeTest, ThePeerHasASecondToCloseWhatIsOver) {
  life_.Linger(At(seconds(1)));
  EXPECT_TRUE(life_.lingers());
  EXPECT_EQ(Look(seconds(2)), Do::kNothing);
  EXPECT_EQ(Look(milliseconds(2'001)), Do::kClose);
}

TEST_F(LifetimeTest, ADrainDuringTheHandshakeOfTlsTellsNobody) {
  Leave();
  Pong(0);
  Pong(0);
  EXPECT_EQ(Look(seconds(1)), Do::kNothing);
  EXPECT_EQ(Look(seconds(1), {.handshaking = true}), Do::kClose);
}

}  // namespace
}  // namespace lifetime_test
}  // namespace quantd::transport
