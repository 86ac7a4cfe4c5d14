// Members of a lockstep group that only decode on, by how many tokens they send to the experts. A piece does not look at all of
// them: of those that send as many, it looks at the few that can take longest, and at sums of their lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/serving/sequences/stretch.h"
#include "engine/step/lockstep.h"

namespace engine {

class Stretches;

struct Follower {
  Stretches* lane = nullptr;
  const Stretch* stretch = nullptr;
  std::size_t sender = 0;  // its kind among `senders_` of the group
  std::size_t place = 0;   // its place among the followers of that kind
  bool follows = false;
  bool is_due = false;             // its stretch is over
  bool plain = true;               // each of its sequences makes one token per step
  std::int64_t from = 0, due = 0;  // steps of the group at which its stretch begins and ends
  double sequences = 0;
  MemberPace pace;
  double held = 0;           // KV tokens in its first step
  double held_seconds = 0;   // KV tokens times seconds, summed up so far
  double since = 0;          // the group's sum of seconds up to where that is summed up
  double since_moments = 0;  // the group's sum of seconds times step numbers there
  double first_step = 0;     // seconds

  // Tokens that each of its sequences has made before the group's step of that number.
  double made(std::int64_t step) const {
    return plain ? double(step - from) : stretch->tokens(double(step - from));
  }
  // The member's own part of that step: seconds of the device, and seconds that pass before whoever sets the pace.
  double busy(std::int64_t step) const { return pace.busy + pace.rise * made(step); }
  double before(std::int64_t step) const { return pace.before + pace.before_rise * made(step); }
};

// Followers that send equally many tokens to the experts, so that the shared part of a step adds the same to each.
class AlikeFollowers {
 public:
  explicit AlikeFollowers(std::vector<Follower>& all) : all_(&all) {}
  void add(std::size_t member);
  void remove(std::size_t member);
  // A follower goes on with another line: called before the line changes, and afterwards.
  void forget_line(std::size_t member) {
    add_line((*all_)[member], -1);
    std::erase(rivals_, std::uint32_t(member));
    if (member == leader_) known_until_ = -1;
  }
  [[gnu::always_inline]] void take_line(std::size_t member) {
    const Follower& one = (*all_)[member];
    note_bounds(one, one.from);
    add_line(one, 1);
    if (!one.plain) known_until_ = -1;
    if (known_until_ >= 0 && can_lead(one)) rivals_.push_back(std::uint32_t(member));
  }
  // Followers of which one takes longest in every step from `step` to `until`.
  const std::vector<std::uint32_t>& rivals(std::int64_t step, std::int64_t until) {
    if (until > known_until_) find_rivals(step, until);
    return rivals_;
  }
  // Sum of the seconds of all followers over `steps` steps from `step` on, to each of which the shared part adds `shared`.
  double seconds(double shared, std::int64_t step, std::int64_t steps) {
    if (!straight_ || lowest_ + shared < least_) return seconds_one_by_one(shared, step, steps);
    const double n = double(steps);
    return n * (line_ + rise_ * double(step) + double(members_.size()) * shared) +
           rise_ * n * (n - 1) / 2;
  }

 private:
  double seconds_one_by_one(double shared, std::int64_t step, std::int64_t steps);
  void find_rivals(std::int64_t step, std::int64_t until);
  bool can_lead(const Follower& one) const {
    return one.busy(known_until_) >= leader_busy_ || one.before(known_until_) > leader_before_ ||
           one.pace.least > leader_least_ || !straight_;
  }
  // The sums of an empty set.
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
  // Adds a follower's line to the sum of all lines, which holds while the device sets the pace of each: its value at step 0, and
  // how much it rises with each step.
  void add_line(const Follower& one, double times) {
    const double rise = one.pace.rise + one.pace.before_rise;
    line_ += times * (one.pace.busy + one.pace.before - rise * double(one.from));
    rise_ += times * rise;
  }

  std::vector<Follower>* all_;  // by member
  std::vector<std::uint32_t> members_, rivals_;
  std::int64_t known_until_ = -1;  // the step up to which `rivals_` holds
  std::uint32_t leader_ = 0;       // the follower that had most to do when `rivals_` was found
  double leader_busy_ = 0, leader_before_ = 0, leader_least_ = 0;
  // Bounds over all followers since then, and whether all their lines are straight and do not fall.
  double lowest_ = std::numeric_limits<double>::infinity(), least_ = 0;
  bool straight_ = true;
  double line_ = 0, rise_ = 0;
};

}  // namespace engine
