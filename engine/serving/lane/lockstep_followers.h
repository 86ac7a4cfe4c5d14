// Members of a group that decode on, by how much they send to the experts. A piece does not look at all of them: of those that
// send alike, it asks the few that can take longest, and sums of their lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/serving/sequences/stretch.h"
#include "engine/step/lockstep.h"

namespace engine {

class Lane;

struct Follower {
  Lane* lane = nullptr;
  const Stretch* stretch = nullptr;
  std::size_t sender = 0;  // among those of the group
  std::size_t place = 0;   // among those that send alike
  bool follows = false;
  bool is_due = false;             // its stretch is over
  bool plain = true;               // its sequences make a token in each step
  std::int64_t from = 0, due = 0;  // steps of the group
  double sequences = 0;
  MemberPace pace;
  double held = 0;           // KV tokens, in its first step
  double held_seconds = 0;   // of KV tokens, as far as they are summed up
  double since = 0;          // where that ends: the group's seconds,
  double since_moments = 0;  // and its moments
  double first_step = 0;     // seconds

  // Tokens that each of its sequences made in as many steps of the group, less those before it came.
  double made(std::int64_t step) const {
    return plain ? double(step - from) : stretch->tokens(double(step - from));
  }
  // Of the local part, before the step of that number: what the device takes, and what is waited for whoever sets the pace.
  double busy(std::int64_t step) const { return pace.busy + pace.rise * made(step); }
  double before(std::int64_t step) const { return pace.before + pace.before_rise * made(step); }
};

// Followers that send as many tokens to the experts: the shared part adds as much to each.
class AlikeFollowers {
 public:
  explicit AlikeFollowers(std::vector<Follower>& all) : all_(&all) {}
  void add(std::size_t member);
  void remove(std::size_t member);
  // One of them goes on with another line: before it has changed, and then.
  void forget_line(std::size_t member);
  void take_line(std::size_t member);
  // Those of them of whom one takes longest in every step from `step` to `until`.
  const std::vector<std::uint32_t>& rivals(std::int64_t step, std::int64_t until) {
    if (until > known_until_) find_rivals(step, until);
    return rivals_;
  }
  // Seconds of all of them in as many steps from `step` on, to which the shared part adds `shared`.
  double seconds(double shared, std::int64_t step, std::int64_t steps);

 private:
  void find_rivals(std::int64_t step, std::int64_t until);
  bool can_lead(const Follower& one) const {
    return one.busy(known_until_) >= leader_busy_ || one.before(known_until_) > leader_before_ ||
           one.pace.least > leader_least_ || !straight_;
  }
  // Of nobody.
  void forget_sums() {
    lowest_ = std::numeric_limits<double>::infinity();
    least_ = line_ = rise_ = 0;
    straight_ = true;
  }
  void note_bounds(const Follower& one, std::int64_t step) {
    lowest_ = std::min(lowest_, one.busy(step));
    least_ = std::max(least_, one.pace.least);
    straight_ = straight_ && one.plain && one.pace.rise >= 0 && one.pace.before_rise >= 0;
  }
  // What all of their steps add up to while the device sets the pace of each: at step 0, and what a step adds.
  void add_line(const Follower& one, double times) {
    const double rise = one.pace.rise + one.pace.before_rise;
    line_ += times * (one.pace.busy + one.pace.before - rise * double(one.from));
    rise_ += times * rise;
  }

  std::vector<Follower>* all_;  // by member
  std::vector<std::uint32_t> members_, rivals_;
  std::int64_t known_until_ = -1;  // the step up to which the rivals are known
  std::uint32_t leader_ = 0;       // had most to do on the device when they were found
  double leader_busy_ = 0, leader_before_ = 0, leader_least_ = 0;
  // Of all that came since they were found: bounds, and whether their lines are straight and rise.
  double lowest_ = std::numeric_limits<double>::infinity(), least_ = 0;
  bool straight_ = true;
  double line_ = 0, rise_ = 0;
};

}  // namespace engine
