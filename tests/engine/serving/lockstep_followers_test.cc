#include "engine/serving/lane/lockstep_followers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/base/random.h"

namespace engine {
namespace {

constexpr std::int64_t kMembers = 24;

// Followers that come, go on with another line and go at random, as many as there are members; where asked for, the host sets
// the pace of some.
struct Crowd {
  std::vector<Follower> all{kMembers};
  AlikeFollowers alike{all};
  Stretch stretch;
  std::uint64_t drawn = 0;

  double draw() { return uniform(7, Stream::sessions, drawn++); }
  void toggle(std::size_t member, std::int64_t step, double least, double before) {
    Follower& one = all[member];
    const bool goes_on = one.follows && draw() < 0.5;
    if (goes_on) alike.forget_line(member);
    if (one.follows && !goes_on) {
      one.follows = false;
      return alike.remove(member);
    }
    one = {.stretch = &stretch, .place = one.place, .follows = true, .from = step};
    one.pace = {.busy = 0.02 + 0.001 * draw(),
                .rise = 1e-6 * draw(),
                .least = least * draw(),
                .before = before * draw(),
                .before_rise = 1e-3 * before * draw()};
    goes_on ? alike.take_line(member) : alike.add(member);
  }
  double longest(double shared, std::int64_t step) const {
    double longest = 0;
    for (const Follower& one : all) {
      if (one.follows) longest = std::max(longest, one.pace.step(shared, one.made(step)));
    }
    return longest;
  }
};

// Whoever is not asked takes no longer, in any step that was asked about.
TEST(LockstepFollowers, OneOfTheRivalsTakesLongest) {
  for (const double least : {0.0, 0.024}) {
    for (const double before : {0.0, 1e-3}) {
      Crowd crowd;
      std::size_t asked = 0, of = 0;
      for (std::int64_t step = 0; step < 20'000; step += 1 + std::int64_t(20 * crowd.draw())) {
        crowd.toggle(std::size_t(kMembers * crowd.draw()), step, least, before);
        const double shared = 0.001 * crowd.draw();
        const std::int64_t until = step + std::int64_t(300 * crowd.draw());
        const std::vector<std::uint32_t> rivals = crowd.alike.rivals(step, until);
        asked += rivals.size();
        of += std::size_t(std::ranges::count(crowd.all, true, &Follower::follows));
        for (const std::int64_t at : {step, (step + until) / 2, until}) {
          double longest = 0;
          for (const std::uint32_t member : rivals) {
            const Follower& one = crowd.all[member];
            longest = std::max(longest, one.pace.step(shared, one.made(at)));
          }
          ASSERT_EQ(longest, crowd.longest(shared, at)) << step << " " << at;
        }
      }
      if (least + before == 0) {
        EXPECT_LT(asked, of / 2);  // which is what they are for
      }
    }
  }
}

TEST(LockstepFollowers, TheirSecondsAreThoseOfEach) {
  for (const double least : {0.0, 0.0215, 0.1}) {
    for (const double before : {0.0, 1e-3}) {
      Crowd crowd;
      for (std::int64_t step = 0; step < 20'000; step += 1 + std::int64_t(20 * crowd.draw())) {
        crowd.toggle(std::size_t(kMembers * crowd.draw()), step, least, before);
        crowd.alike.rivals(step, step);
        const double shared = 0.001 * crowd.draw();
        const std::int64_t steps = 1 + std::int64_t(100 * crowd.draw());
        double each = 0;
        for (const Follower& one : crowd.all) {
          if (one.follows) each += one.pace.seconds(shared, one.made(step), double(steps));
        }
        ASSERT_NEAR(crowd.alike.seconds(shared, step, steps), each, 1e-12 * (1 + each)) << step;
      }
    }
  }
}

}  // namespace
}  // namespace engine
