#include "engine/serving/lane/lockstep_followers.h"

namespace engine {

void AlikeFollowers::add(std::size_t member) {
  Follower& one = (*all_)[member];
  one.place = members_.size();
  members_.push_back(std::uint32_t(member));
  take_line(member);
}

// Without the leader another follower may lead that could not before.
void AlikeFollowers::remove(std::size_t member) {
  const Follower& one = (*all_)[member];
  forget_line(member);
  members_[one.place] = members_.back();
  (*all_)[members_.back()].place = one.place;
  members_.pop_back();
  if (members_.empty()) forget_sums();
}

// The leader's time does not fall. A follower that does not reach the leader's present time, in either part, by the last of these steps
// takes no longer than the leader in any of them.
void AlikeFollowers::find_rivals(std::int64_t step, std::int64_t until) {
  // So far beyond that it is seldom asked, so near that few are rivals.
  constexpr std::int64_t further = 64;
  constexpr double rounding = 1e-12;
  known_until_ = until + further;
  forget_sums();
  leader_busy_ = -1;
  for (const std::uint32_t member : members_) {
    const Follower& one = (*all_)[member];
    note_bounds(one, step);
    add_line(one, 1);
    if (one.busy(step) <= leader_busy_) continue;
    leader_ = member;
    leader_busy_ = one.busy(step);
    leader_before_ = one.before(step);
    leader_least_ = one.pace.least;
  }
  leader_busy_ *= 1 - rounding;
  rivals_.clear();
  for (const std::uint32_t member : members_) {
    if (can_lead((*all_)[member])) rivals_.push_back(member);
  }
}

double AlikeFollowers::seconds_one_by_one(double shared, std::int64_t step, std::int64_t steps) {
  const double n = double(steps);
  double own = 0;
  lowest_ = std::numeric_limits<double>::infinity();
  for (const std::uint32_t member : members_) {
    const Follower& one = (*all_)[member];
    own += one.pace.seconds(shared, one.made(step), n);
    lowest_ = std::min(lowest_, one.busy(step));
  }
  return own;
}

}  // namespace engine
