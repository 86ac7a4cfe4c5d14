// A group of replicas that share experts and so begin and end their steps together, as engines with data-parallel attention do. At
// a step boundary every member plans. The step lasts until the slowest member is done; members that have nothing to do take part
// with an empty batch. While no member has anything to do the group rests, and the first that gets something wakes it.
//
// A member that only decodes on follows the group: it is not looked at before its stretch is over, and a straight line says what its
// steps take. While one member's line is the longest, the group's steps lie on that line. Such a run of steps is called a piece.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/batch_shape.h"
#include "engine/serving/figures/measurement.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/figures/step_log.h"
#include "engine/serving/lane/lockstep_followers.h"
#include "engine/serving/sequences/step_calendar.h"
#include "engine/serving/sequences/stretch.h"
#include "engine/step/step_table.h"

namespace engine {

class Lane;

class LockstepGroup {
 public:
  // `members` replicas from `first` on, with the step table and the sums of their pool.
  struct Setup {
    StepTable* table = nullptr;
    PoolSums* sums = nullptr;
    ServingStats* stats = nullptr;
    StepLog* log = nullptr;
    std::size_t first = 0;
    std::size_t members = 1;
    DeploymentRole role = DeploymentRole::main;
    // Other replicas find what a member's cache gives up because of its age.
    bool expiry_in_sight = false;
  };
  void reset(const Setup& setup);

  std::size_t first() const { return setup_.first; }
  std::size_t members() const { return setup_.members; }

  // ---- its turns --------------------------------------------------------------------------------
  // When the present piece ends or, while the group rests, when a member plans.
  double next_event() const;
  bool steps() const { return steps_; }
  // The end of the present piece, or of the last one.
  double until() const { return until_; }
  // A member has something to plan at the first boundary from `time` on; `kNever`: it has nothing to plan, or it works.
  void wants_turn(std::size_t member, double time) {
    turns_[member] = time;
    std::uint64_t& word = asking_[member / kWord];
    word = time < kNever ? word | bit_of(member) : word & ~bit_of(member);
    if (time < until_) split(time);
  }
  // The first member from `from` on that has something to plan by `now`; members(): none has.
  std::size_t next_turn(std::size_t from, double now) const {
    std::size_t next = setup_.members;
    each_asking(from, [&](std::size_t member) {
      if (turns_[member] > now) return true;
      next = member;
      return false;
    });
    return next;
  }
  // Ends the present piece.
  void end();
  // Calls `visit` for the members whose work ends with it, in their order. Those whose work ends meanwhile come next time.
  template <class Visit>
  void take_due(Visit visit) {
    taken_due_.swap(due_);
    std::ranges::fill(due_, 0);
    each_bit(taken_due_, 0, [&visit](std::size_t member) {
      visit(member);
      return true;
    });
  }
  // All members have planned: begins the next piece, if any of them does something in it.
  void begin(double now);
  // The run is over: counts what followers did in pieces that have ended.
  void settle();

  // ---- its members ------------------------------------------------------------------------------
  // A member that plans has a batch in the next step only. Before it computes, `before` seconds pass for other things.
  struct SingleStep {
    const BatchShape& batch;
    double before = 0;
    int length = -1;  // proposed tokens, where their number is picked by load
  };
  void join(Lane& lane, std::size_t member, const SingleStep& step);
  // A member that plans decodes on for the steps of a stretch, holding `held` KV tokens in the first of them.
  void follow(Stretches& lane, std::size_t member, const Stretch& stretch, double held);
  // Makes a follower stop at the first boundary from `time` on. Returns the steps that it will have taken.
  std::int64_t stop(std::size_t member, double time);
  // What a follower did whose stretch is over. Then it leaves, or follows on with another stretch of the same sequences.
  struct Taken {
    double first_step = 0;
    double held_seconds = 0;  // KV tokens times seconds
  };
  Taken taken_by(std::size_t member) const {
    const Follower& one = followers_[member];
    return {.first_step = one.first_step, .held_seconds = held_seconds(one)};
  }
  void leave(std::size_t member);
  void follow_on(std::size_t member, double held);
  // Ends the present piece at the first boundary from `time` on.
  void split(double time);
  // Steps of a follower's stretch that have begun, and that are over, at a moment of the present piece.
  std::int64_t steps_until(std::size_t member, double time) const;
  std::int64_t steps_over(std::size_t member, double time) const;
  // Steps of it that ended before that moment, how long the first of them took, and when the last one ended.
  std::int64_t steps_ended(std::size_t member, double time) const {
    const std::int64_t before = taken_ - followers_[member].from;
    return steps_ ? before + piece_.steps_until(std::min(time, until_)) - 1 : before;
  }
  double first_step_of(std::size_t member) const {
    const bool begins = steps_ && taken_ == followers_[member].from;
    return begins ? piece_.first_step : followers_[member].first_step;
  }
  double last_boundary(double time) const {
    if (!steps_) return until_;
    const std::int64_t over = piece_.steps_until(std::min(time, until_)) - 1;
    return over > 0 ? piece_.start + piece_.seconds(over) : piece_.start;
  }

 private:
  struct Joined {
    Lane* lane = nullptr;
    std::size_t member = 0;
    BatchShape batch;
  };
  static constexpr std::size_t kWord = 64;  // bits
  static std::uint64_t bit_of(std::size_t member) { return std::uint64_t{1} << member % kWord; }
  static constexpr std::int64_t kLongSums = 4096;  // steps

  // Calls `visit` for the members from `from` on that have something to plan, as long as it says true.
  template <class Visit>
  void each_asking(std::size_t from, Visit visit) const {
    each_bit(asking_, from, visit);
  }
  template <class Visit>
  static void each_bit(const std::vector<std::uint64_t>& words, std::size_t from, Visit visit) {
    std::uint64_t later = ~std::uint64_t{0} << from % kWord;
    for (std::size_t word = from / kWord; word < words.size(); ++word) {
      for (std::uint64_t bits = words[word] & later; bits != 0; bits &= bits - 1) {
        if (!visit(word * kWord + std::size_t(std::countr_zero(bits)))) return;
      }
      later = ~std::uint64_t{0};
    }
  }
  void note_due(std::size_t member) { due_[member / kWord] |= bit_of(member); }
  std::size_t sender_of(const DecodeLine& line);
  bool any_follow() const { return following_ > 0; }
  // Calls `visit` for each kind of senders that has members, and for its followers.
  template <class Visit>
  void each_kind(Visit visit) {
    AlikeFollowers* alike = alike_.data();
    for (const Senders& each : senders_) {
      if (each.members > 0) visit(each, *alike);
      ++alike;
    }
  }
  template <class Visit>
  void each_follower(Visit visit) {
    for (std::size_t member = 0; member < followers_.size(); ++member) {
      if (followers_[member].follows) visit(followers_[member], member);
    }
  }
  // KV tokens times seconds that a follower held until the end of the last piece.
  double held_seconds(const Follower& one) const;
  void sum_up_held();
  void change_due(std::size_t member, std::int64_t due);
  // Lists the followers whose stretch is over at `step`.
  void take_dues(std::int64_t step);
  void begin_stretch(std::size_t member, double held);
  void find_piece(double now);
  void end_where_cache_expires();
  std::int64_t steps_of_longest(std::int64_t most);
  void cut(std::int64_t steps);
  void count_shared();
  void count_followers();
  double take_newcomers();
  void write_down(const Follower& follower, std::size_t member) const;

  Setup setup_;
  bool steps_ = false;
  double until_ = 0;
  std::int64_t taken_ = 0;  // steps before the present piece
  Stretch piece_;
  std::vector<double> turns_;  // by member
  // One bit per member: it has something to plan; its work is over.
  std::vector<std::uint64_t> asking_, due_, taken_due_;
  std::vector<Follower> followers_;  // by member, whether or not it follows
  std::size_t following_ = 0;        // number of followers
  std::size_t unequal_ = 0;  // of these, followers whose steps make unequal numbers of tokens
  double sequences_ = 0;     // of all followers
  StepCalendar dues_;        // steps at which followers' stretches are over
  std::vector<std::size_t> newcomers_;  // followers from the next piece on
  // Sums over the steps from `base_` on that have ended: their seconds, and their seconds times their number.
  std::int64_t base_ = 0;
  double seconds_ = 0, moments_ = 0;
  std::vector<Senders> senders_;       // kinds of members by what they send; some have no members
  std::vector<AlikeFollowers> alike_;  // the followers of each kind
  StepTable::SharedStep shared_;
  bool changed_ = true;  // members send something else since `shared_` was found
  double uncounted_steps_ = 0, uncounted_seconds_ = 0;  // steps since then
  // Members with a batch in the step that is planned, or in the present one
  std::vector<Joined> joined_;
  std::vector<MemberStep> joined_steps_;
};

}  // namespace engine
