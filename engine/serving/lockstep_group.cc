#include "engine/serving/lockstep_group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/serving/lane.h"

namespace engine {

void LockstepGroup::reset(const Setup& setup) {
  setup_ = setup;
  steps_ = false;
  until_ = 0;
  taken_ = 0;
  turns_.assign(setup.members, kNever);
  follows_.assign(setup.members, -1);
  due_.clear();
  followers_.clear();
  senders_.clear();
  changed_ = true;
  joined_.clear();
  joined_steps_.clear();
}

double LockstepGroup::next_event() const {
  if (steps_ || !followers_.empty()) return until_;
  return std::max(until_, *std::ranges::min_element(turns_));
}

// ---- members --------------------------------------------------------------------------------------

void LockstepGroup::join(Lane& lane, std::size_t member, const BatchShape& batch, double before) {
  joined_.push_back({&lane, member, batch});
  joined_steps_.push_back(setup_.table->own_step(batch));
  joined_steps_.back().before += before;
}

std::size_t LockstepGroup::sender_of(const DecodeLine& line) {
  const Senders like = setup_.table->senders_of(line);
  std::size_t unused = senders_.size();
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    if (senders_[i].members > 0 && senders_[i].rows == like.rows) return i;
    if (senders_[i].members == 0) unused = i;
  }
  if (unused == senders_.size()) senders_.emplace_back();
  senders_[unused] = like;
  return unused;
}

void LockstepGroup::follow(Lane& lane, std::size_t member, const Stretch& stretch, double held) {
  const DecodeLine& line = stretch.line;
  Follower& one = followers_.emplace_back();
  follows_[member] = std::int32_t(followers_.size() - 1);
  one.lane = &lane;
  one.stretch = &stretch;
  one.member = member;
  one.plain = stretch.pace.plain();
  one.sequences = stretch.sequences;
  one.sender = sender_of(line);
  one.pace = {.busy = line.device(stretch.context, stretch.window) + line.added,
              .rise = line.slope * stretch.sequences + line.window_slope * stretch.growing,
              .least = line.least,
              .before = line.proposals(stretch.context, stretch.window) +
                        line.listing_slope * stretch.context,
              .before_rise = (line.proposing_slope + line.listing_slope) * stretch.sequences +
                             line.proposing_window_slope * stretch.growing};
  one.from = taken_;
  one.due = taken_ + stretch.steps;
  one.held = held;
  senders_[one.sender].members += 1;
  changed_ = true;
}

void LockstepGroup::remove(std::size_t member) {
  const auto place = std::size_t(std::exchange(follows_[member], -1));
  senders_[followers_[place].sender].members -= 1;
  changed_ = true;
  if (place + 1 < followers_.size()) {
    followers_[place] = followers_.back();
    follows_[followers_[place].member] = std::int32_t(place);
  }
  followers_.pop_back();
}

LockstepGroup::Taken LockstepGroup::leave(std::size_t member) {
  const Follower& one = follower(member);
  const Taken taken{.first_step = one.first_step, .held_seconds = one.held_seconds};
  remove(member);
  return taken;
}

std::int64_t LockstepGroup::stop(std::size_t member, double time) {
  Follower& one = follower(member);
  if (steps_) {
    split(time);
    one.due = taken_ + piece_.steps;
  } else if (one.from == taken_) {
    one.due = taken_ + 1;  // it has planned, and the step has not begun
  } else if (one.due > taken_) {
    one.due = taken_;
    due_.push_back(member);
  }
  return one.due - one.from;
}

void LockstepGroup::split(double time) {
  if (steps_ && time < until_) cut(piece_.steps_until(time));
}

void LockstepGroup::cut(std::int64_t steps) {
  piece_.take(steps);
  until_ = piece_.end();
}

std::int64_t LockstepGroup::steps_until(std::size_t member, double time) const {
  const std::int64_t before = taken_ - follower(member).from;
  if (!steps_) return std::max<std::int64_t>(before, 1);
  return before + piece_.steps_until(std::min(time, until_));
}

// A step adds all it adds at its end, which is looked at after this moment.
std::int64_t LockstepGroup::steps_over(std::size_t member, double time) const {
  const std::int64_t before = taken_ - follower(member).from;
  if (!steps_) return before;
  std::int64_t over = piece_.steps_until(time);
  if (over == piece_.steps || piece_.start + piece_.seconds(over) > time + kSameMoment) --over;
  return before + over;
}

// ---- pieces ---------------------------------------------------------------------------------------

void LockstepGroup::begin(double now) {
  if (followers_.empty() && joined_.empty()) return;
  // A step with prompts is another one next time.
  if (std::exchange(changed_, !joined_.empty()) || !joined_.empty()) {
    shared_ = setup_.table->shared_step(joined_steps_, senders_);
  }
  find_piece(now);
  until_ = piece_.end();
  steps_ = true;
  for (Joined& one : joined_) {
    one.batch.expert_tokens = shared_.tokens;
    one.lane->run_step(one.batch, piece_.first_step);
  }
}

// The longest line of the first step; of two that are as long, the steeper one.
void LockstepGroup::find_piece(double now) {
  const std::int64_t taken = taken_;
  const Senders* const senders = senders_.data();
  double longest = 0, longest_rise = 0;
  for (const MemberStep& own : joined_steps_) {
    longest = std::max(longest, member_seconds(own, shared_.part));
  }
  std::int64_t due = std::numeric_limits<std::int64_t>::max();
  for (const Follower& one : followers_) {
    const MemberPace& pace = one.pace;
    const double made = one.made(taken);
    due = std::min(due, one.due);
    const double seconds = pace.step(senders[one.sender].shared, made);
    if (seconds < longest) continue;
    const bool on_floor = pace.busy + senders[one.sender].shared + pace.rise * made <= pace.least;
    const double rise = (on_floor ? 0 : pace.rise) + pace.before_rise;
    longest_rise = seconds > longest ? rise : std::max(longest_rise, rise);
    longest = seconds;
  }
  piece_.start = now;
  piece_.first_step = longest;
  piece_.rise = longest_rise;
  const std::int64_t most = due - taken;
  // Where steps make unequal numbers of tokens, lines are not straight.
  const bool plain = !followers_.empty() && followers_[0].plain;
  const std::int64_t steps = joined_.empty() && plain && most > 1 ? steps_of_longest(most) : 1;
  piece_.even = steps == 1 || piece_.rise == 0;
  piece_.take(steps);
}

// Steps before another line, of the device or of the host, is longer than the piece's.
std::int64_t LockstepGroup::steps_of_longest(std::int64_t most) const {
  constexpr double rounding = 1e-13;
  const Stretch piece = piece_;
  const Senders* const senders = senders_.data();
  const std::int64_t taken = taken_;
  double last = double(most - 1);
  double longest = (piece.first_step + piece.rise * last) * (1 + rounding);
  for (const Follower& one : followers_) {
    const MemberPace& pace = one.pace;
    const double shared = senders[one.sender].shared, made = one.made(taken);
    while (pace.step(shared, made + last) > longest && most > 1) {
      const double before = pace.before + pace.before_rise * made;
      const bool busy = pace.busy + shared + pace.rise * (made + last) > pace.least;
      const double first = before + (busy ? pace.busy + shared + pace.rise * made : pace.least);
      const double rise = pace.before_rise + (busy ? pace.rise : 0);
      const double crossing = std::floor((piece.first_step - first) / (rise - piece.rise)) + 1;
      most = std::int64_t(std::clamp(crossing, 1.0, last));
      last = double(most - 1);
      longest = (piece.first_step + piece.rise * last) * (1 + rounding);
    }
  }
  return most;
}

void LockstepGroup::end() {
  StepTable& table = *setup_.table;
  const double steps = double(piece_.steps), seconds = piece_.seconds(piece_.steps);
  count_followers();
  for (const Senders& each : senders_) {
    if (each.members > 0) table.count_senders(each, shared_, steps);
  }
  for (const MemberStep& own : joined_steps_) table.count_member(own, shared_, seconds);
  const double idle = double(setup_.members - followers_.size() - joined_.size());
  if (idle > 0) {
    table.count_idle(shared_, idle, steps, seconds);
    setup_.sums->empty_seconds += idle * seconds;
  }
  taken_ += piece_.steps;
  steps_ = false;
  for (const Joined& one : joined_) due_.push_back(one.member);
  joined_.clear();
  joined_steps_.clear();
}

// What followers hold and wait for, who of them is due, and the gaps between their tokens: those of a follower's first step
// are its own.
void LockstepGroup::count_followers() {
  const double n = double(piece_.steps), seconds = piece_.seconds(piece_.steps);
  const double pairs = n * (n - 1) / 2;
  // Over the steps of the piece: seconds times the number of steps before.
  const double moment = piece_.first_step * pairs + piece_.rise * pairs * (2 * n - 1) / 3;
  const std::int64_t before = taken_, after = taken_ + piece_.steps;
  const Senders* const senders = senders_.data();
  double own = 0, newcomers = 0, all = 0;
  for (Follower& one : followers_) {
    const double made = one.made(before), sequences = one.sequences;
    own += one.pace.seconds(senders[one.sender].own_shared, made, n);
    one.held_seconds += (one.held + sequences * made) * seconds + sequences * moment;
    all += sequences;
    if (one.due <= after) due_.push_back(one.member);
    if (one.from != before) continue;
    one.first_step = piece_.first_step;
    newcomers += sequences;
  }
  if (all == 0) return;
  if (setup_.log != nullptr) {
    for (const Follower& one : followers_) write_down(one);
  }
  setup_.table->count_wait(double(followers_.size()) * seconds - own);
  setup_.stats->step_began(piece_.start);
  if (all > newcomers) setup_.stats->add_gap(piece_.first_step, all - newcomers);
  piece_.sequences = all;
  if (n > 1) setup_.stats->add_gaps(piece_, 1, piece_.steps, seconds - piece_.first_step);
}

void LockstepGroup::write_down(const Follower& one) const {
  const double made = one.made(taken_);
  Stretch stretch = piece_;
  stretch.context = one.stretch->context + one.stretch->sequences * made;
  stretch.window = one.stretch->window + one.stretch->growing * made;
  stretch.sequences = one.stretch->sequences;
  stretch.growing = one.stretch->growing;
  LoggedWork work{.role = setup_.role,
                  .replica = std::int32_t(setup_.first + one.member),
                  .start = piece_.start,
                  .end = until_,
                  .stretch = stretch};
  work.batch.expert_tokens = shared_.tokens;
  setup_.log->add(work);
}

std::span<const std::size_t> LockstepGroup::take_due() {
  taken_due_.clear();
  taken_due_.swap(due_);
  std::ranges::sort(taken_due_);
  return taken_due_;
}

void LockstepGroup::settle() {
  for (std::size_t i = followers_.size(); i-- > 0;) {
    const std::int64_t steps = taken_ - followers_[i].from;
    if (steps > 0) followers_[i].lane->count_until(steps_ ? piece_.start : until_, steps);
  }
}

}  // namespace engine
