#include "engine/serving/lane/lockstep_group.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/serving/lane/lane.h"

namespace engine {

void LockstepGroup::reset(const Setup& setup) {
  setup_ = setup;
  steps_ = false;
  until_ = 0;
  taken_ = 0;
  turns_.assign(setup.members, kNever);
  for (auto* bits : {&asking_, &due_, &taken_due_}) {
    bits->assign((setup.members + kWord - 1) / kWord, 0);
  }
  followers_.assign(setup.members, {});
  following_ = unequal_ = 0;
  sequences_ = 0;
  dues_.reset();
  newcomers_.clear();
  base_ = 0;
  seconds_ = moments_ = 0;
  senders_.clear();
  alike_.clear();
  changed_ = true;
  uncounted_steps_ = uncounted_seconds_ = 0;
  joined_.clear();
  joined_steps_.clear();
}

double LockstepGroup::next_event() const {
  if (steps_ || any_follow()) return until_;
  double next = kNever;
  each_asking(0, [&](std::size_t member) {
    next = std::min(next, turns_[member]);
    return true;
  });
  return std::max(until_, next);
}

// ---- members --------------------------------------------------------------------------------------

void LockstepGroup::join(Lane& lane, std::size_t member, const SingleStep& step) {
  count_shared();
  joined_.push_back({&lane, member, step.batch});
  joined_steps_.push_back(setup_.table->own_step(step.batch, step.length));
  joined_steps_.back().before += step.before;
}

std::size_t LockstepGroup::sender_of(const DecodeLine& line) {
  const Senders like = setup_.table->senders_of(line);
  std::size_t unused = senders_.size();
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    const bool alike = senders_[i].rows == like.rows && senders_[i].length == like.length;
    if (senders_[i].members > 0 && alike) return i;
    if (senders_[i].members == 0) unused = i;
  }
  if (unused == senders_.size()) {
    senders_.emplace_back();
    alike_.emplace_back(followers_);
  }
  senders_[unused] = like;
  return unused;
}

void LockstepGroup::follow(Stretches& lane, std::size_t member, const Stretch& stretch,
                           double held) {
  count_shared();
  Follower& one = followers_[member];
  one.lane = &lane;
  one.stretch = &stretch;
  one.sender = sender_of(*stretch.line);
  one.follows = true;
  one.plain = stretch.plain;
  one.sequences = stretch.sequences;
  begin_stretch(member, held);
  newcomers_.push_back(member);
  ++following_;
  if (!one.plain) ++unequal_;
  sequences_ += one.sequences;
  senders_[one.sender].members += 1;
  alike_[one.sender].add(member);
}

// It sends as much as before.
void LockstepGroup::follow_on(std::size_t member, double held) {
  AlikeFollowers& alike = alike_[followers_[member].sender];
  alike.forget_line(member);
  begin_stretch(member, held);
  alike.take_line(member);
}

[[gnu::always_inline]] inline void LockstepGroup::begin_stretch(std::size_t member, double held) {
  Follower& one = followers_[member];
  const Stretch& stretch = *one.stretch;
  const DecodeLine& line = *stretch.line;
  one.is_due = false;
  one.from = taken_;
  one.due = taken_ + stretch.steps;
  one.pace = {.busy = line.device(stretch.context, stretch.window) + line.added,
              .rise = line.slope * stretch.sequences + line.window_slope * stretch.growing,
              .least = line.least};
  if (!line.plain) {
    one.pace.before =
        line.proposals(stretch.context, stretch.window) + line.listing_slope * stretch.context;
    one.pace.before_rise = (line.proposing_slope + line.listing_slope) * stretch.sequences +
                           line.proposing_window_slope * stretch.growing;
  }
  one.held = held;
  one.held_seconds = 0;
  one.since = seconds_;
  one.since_moments = moments_;
  dues_.insert(std::int32_t(member), one.due);
}

void LockstepGroup::leave(std::size_t member) {
  count_shared();
  Follower& one = followers_[member];
  one.follows = false;
  --following_;
  if (!one.plain) --unequal_;
  sequences_ -= one.sequences;
  if (!one.is_due) dues_.remove(std::int32_t(member), one.due);
  if (one.from == taken_) std::erase(newcomers_, member);
  senders_[one.sender].members -= 1;
  alike_[one.sender].remove(member);
}

// In its step of number i it holds the tokens of its first step, and one more of each sequence for every step since.
double LockstepGroup::held_seconds(const Follower& one) const {
  if (!one.plain) return one.held_seconds;
  const double seconds = seconds_ - one.since, moments = moments_ - one.since_moments;
  return one.held_seconds + one.held * seconds +
         one.sequences * (moments - double(one.from - base_) * seconds);
}

// From here on sums are small again, and so are their differences' errors of rounding.
void LockstepGroup::sum_up_held() {
  each_follower([this](Follower& one, std::size_t) {
    one.held_seconds = held_seconds(one);
    one.since = one.since_moments = 0;
  });
  base_ = taken_;
  seconds_ = moments_ = 0;
}

void LockstepGroup::change_due(std::size_t member, std::int64_t due) {
  Follower& one = followers_[member];
  if (one.is_due) return;
  dues_.remove(std::int32_t(member), one.due);
  one.due = due;
  dues_.insert(std::int32_t(member), due);
}

[[gnu::always_inline]] inline void LockstepGroup::take_dues(std::int64_t step) {
  for (std::int32_t member; (member = dues_.first_by(step)) >= 0;) {
    Follower& one = followers_[std::size_t(member)];
    dues_.remove(member, one.due);
    one.is_due = true;
    note_due(std::size_t(member));
  }
}

std::int64_t LockstepGroup::stop(std::size_t member, double time) {
  const Follower& one = followers_[member];
  if (steps_) {
    split(time);
    change_due(member, taken_ + piece_.steps);
  } else if (one.from == taken_) {
    change_due(member, taken_ + 1);  // it has planned, and the step has not begun
  } else if (one.due > taken_) {
    change_due(member, taken_);
    take_dues(taken_);
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
  const std::int64_t before = taken_ - followers_[member].from;
  if (!steps_) return std::max<std::int64_t>(before, 1);
  return before + piece_.steps_until(std::min(time, until_));
}

// A step adds all it adds at its end, which is looked at after this moment.
std::int64_t LockstepGroup::steps_over(std::size_t member, double time) const {
  const std::int64_t before = taken_ - followers_[member].from;
  if (!steps_) return before;
  std::int64_t over = piece_.steps_until(time);
  if (over == piece_.steps || piece_.start + piece_.seconds(over) > time + kSameMoment) --over;
  return before + over;
}

// ---- pieces ---------------------------------------------------------------------------------------

void LockstepGroup::begin(double now) {
  if (!any_follow() && joined_.empty()) return;
  if (changed_) setup_.table->find_shared(joined_steps_, senders_, shared_);
  changed_ = false;
  find_piece(now);
  until_ = piece_.end();
  steps_ = true;
  if (setup_.expiry_in_sight) end_where_cache_expires();
  for (Joined& one : joined_) {
    one.batch.expert_tokens = shared_.tokens;
    one.lane->run_step(one.batch, piece_.first_step);
  }
}

// A follower's part ends where its cache loses something. How long steps take is known for this piece only: the next one asks again.
void LockstepGroup::end_where_cache_expires() {
  each_follower([this](const Follower& one, std::size_t) {
    const double time = one.lane->next_to_expire();
    if (time <= until_) one.lane->end_part_at(time);
  });
}

// The longest line of the first step; of two that are as long, the steeper one.
[[gnu::always_inline]] inline void LockstepGroup::find_piece(double now) {
  double longest = 0, longest_rise = 0;
  for (const MemberStep& own : joined_steps_) {
    longest = std::max(longest, member_seconds(own, shared_.part));
  }
  const Follower* const followers = followers_.data();
  const std::int64_t step = taken_;
  each_kind([&](const Senders& senders, AlikeFollowers& alike) {
    const double shared = senders.shared;
    for (const std::uint32_t member : alike.rivals(step, step)) {
      const MemberPace& pace = followers[member].pace;
      const double made = followers[member].made(step);
      const double seconds = pace.step(shared, made);
      if (seconds < longest) continue;
      const bool on_floor = pace.busy + shared + pace.rise * made <= pace.least;
      const double rise = (on_floor ? 0 : pace.rise) + pace.before_rise;
      longest_rise = seconds > longest ? rise : std::max(longest_rise, rise);
      longest = seconds;
    }
  });
  piece_.start = now;
  piece_.first_step = longest;
  piece_.rise = longest_rise;
  const std::int64_t most = dues_.next() - taken_;
  // Where steps make unequal numbers of tokens, lines are not straight.
  const bool straight = joined_.empty() && unequal_ == 0;
  const std::int64_t steps = straight && most > 1 ? steps_of_longest(most) : 1;
  piece_.even = steps == 1 || piece_.rise == 0;
  piece_.take(steps);
}

// Steps before another line, of the device or of the host, is longer than the piece's.
[[gnu::always_inline]] inline std::int64_t LockstepGroup::steps_of_longest(std::int64_t most) {
  constexpr double rounding = 1e-13;
  const Stretch& piece = piece_;
  const auto longest_after = [&piece](double more) {
    return (piece.first_step + piece.rise * more) * (1 + rounding);
  };
  double last = double(most - 1), longest = longest_after(last);
  const Follower* const followers = followers_.data();
  const std::int64_t step = taken_;
  each_kind([&](const Senders& senders, AlikeFollowers& alike) {
    const double shared = senders.shared;
    for (const std::uint32_t member : alike.rivals(step, step + most)) {
      const MemberPace& pace = followers[member].pace;
      const double made = followers[member].made(step);
      while (pace.step(shared, made + last) > longest && most > 1) {
        const double before = pace.before + pace.before_rise * made;
        const bool busy = pace.busy + shared + pace.rise * (made + last) > pace.least;
        const double first = before + (busy ? pace.busy + shared + pace.rise * made : pace.least);
        const double rise = pace.before_rise + (busy ? pace.rise : 0);
        const double crossing = std::floor((piece.first_step - first) / (rise - piece.rise)) + 1;
        most = std::int64_t(std::clamp(crossing, 1.0, last));
        last = double(most - 1);
        longest = longest_after(last);
      }
    }
  });
  return most;
}

void LockstepGroup::end() {
  count_followers();
  uncounted_steps_ += double(piece_.steps);
  uncounted_seconds_ += piece_.lasts;
  // A step with prompts is another one next time.
  if (!joined_.empty()) count_shared();
  taken_ += piece_.steps;
  if (taken_ - base_ > kLongSums) sum_up_held();
  steps_ = false;
  for (const Joined& one : joined_) note_due(one.member);
  joined_.clear();
  joined_steps_.clear();
}

// Counts the shared part of all steps that were taken with the same senders, before these change.
void LockstepGroup::count_shared() {
  if (changed_) return;
  changed_ = true;
  if (uncounted_steps_ == 0) return;
  StepTable& table = *setup_.table;
  const double steps = std::exchange(uncounted_steps_, 0);
  const double seconds = std::exchange(uncounted_seconds_, 0);
  table.count_senders(senders_, shared_, steps);
  table.count_members(joined_steps_, shared_, seconds);
  const double idle = double(setup_.members - following_ - joined_.size());
  if (idle > 0) {
    table.count_idle(shared_, idle, steps, seconds);
    setup_.sums->empty_seconds += idle * seconds;
  }
}

// Counts what followers hold and wait for, which of them are due, and the gaps between their tokens. Gaps of a follower's first step are
// counted by the follower itself.
[[gnu::always_inline]] inline void LockstepGroup::count_followers() {
  if (!any_follow()) return;
  const double n = double(piece_.steps), seconds = piece_.lasts;
  const double pairs = n * (n - 1) / 2;
  // Over the steps of the piece: seconds times the number of steps before.
  const double moment = piece_.first_step * pairs + piece_.rise * pairs * (2 * n - 1) / 3;
  seconds_ += seconds;
  moments_ += double(taken_ - base_) * seconds + moment;
  if (unequal_ > 0) {
    each_follower([&](Follower& one, std::size_t) {
      if (!one.plain) one.held_seconds += (one.held + one.sequences * one.made(taken_)) * seconds;
    });
  }
  take_dues(taken_ + piece_.steps);
  each_kind([&](const Senders& each, AlikeFollowers& alike) {
    const double own = alike.seconds(each.own_shared, taken_, piece_.steps);
    setup_.table->count_wait(each.members * seconds - own, each.length);
  });
  const double later = sequences_ - take_newcomers();
  if (setup_.log != nullptr) {
    each_follower([this](const Follower& one, std::size_t member) { write_down(one, member); });
  }
  setup_.stats->step_began(piece_.start);
  if (later > 0 && setup_.stats->counts_gaps()) setup_.stats->add_gap(piece_.first_step, later);
  piece_.sequences = sequences_;
  if (n > 1) setup_.stats->add_gaps(piece_, 1, piece_.steps, seconds - piece_.first_step);
}

// Followers whose first step is over become ordinary ones. Returns how many sequences they have.
double LockstepGroup::take_newcomers() {
  double sequences = 0;
  for (const std::size_t member : newcomers_) {
    followers_[member].first_step = piece_.first_step;
    sequences += followers_[member].sequences;
  }
  newcomers_.clear();
  return sequences;
}

void LockstepGroup::write_down(const Follower& one, std::size_t member) const {
  const double made = one.made(taken_);
  Stretch stretch = piece_;
  stretch.context = one.stretch->context + one.stretch->sequences * made;
  stretch.window = one.stretch->window + one.stretch->growing * made;
  stretch.sequences = one.stretch->sequences;
  stretch.growing = one.stretch->growing;
  LoggedWork work{.role = setup_.role,
                  .replica = std::int32_t(setup_.first + member),
                  .start = piece_.start,
                  .end = until_,
                  .stretch = stretch};
  work.batch.expert_tokens = shared_.tokens;
  setup_.log->add(work);
}

void LockstepGroup::settle() {
  count_shared();
  each_follower([this](const Follower& one, std::size_t) {
    const std::int64_t steps = taken_ - one.from;
    if (steps > 0) one.lane->count_until(steps_ ? piece_.start : until_, steps);
  });
}

}  // namespace engine
