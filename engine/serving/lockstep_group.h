// Replicas that share experts, which begin and end their steps together, as engines with data-parallel attention do: at a
// boundary every member plans, the step lasts until the slowest is done, and those that have nothing to do take part in it
// with nothing. While nobody has anything to do all of them rest; whoever gets something wakes them.
//
// A member that decodes on follows the group: it is not looked at before its stretch is over, and what its steps take is
// known from a straight line. As long as one line is the longest, so are the group's steps on it: a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/batch_shape.h"
#include "engine/serving/measurement.h"
#include "engine/serving/serving_stats.h"
#include "engine/serving/step_log.h"
#include "engine/serving/stretch.h"
#include "engine/step/step_table.h"

namespace engine {

class Lane;

class LockstepGroup {
 public:
  // Of `members` replicas from `first` on, in a pool that has this table and these sums.
  struct Setup {
    StepTable* table = nullptr;
    PoolSums* sums = nullptr;
    ServingStats* stats = nullptr;
    StepLog* log = nullptr;
    std::size_t first = 0;
    std::size_t members = 1;
    DeploymentRole role = DeploymentRole::main;
  };
  void reset(const Setup& setup);

  std::size_t first() const { return setup_.first; }
  std::size_t members() const { return setup_.members; }

  // ---- its turns --------------------------------------------------------------------------------
  // When a piece ends, or else when somebody plans.
  double next_event() const;
  bool steps() const { return steps_; }
  // The end of the present piece, or of the last one.
  double until() const { return until_; }
  // A member has something to plan from `time` on, at the next boundary; never: it has not, or it works.
  void wants_turn(std::size_t member, double time) {
    turns_[member] = time;
    if (time < until_) split(time);
  }
  bool has_turn(std::size_t member, double now) const { return turns_[member] <= now; }
  // The piece is over.
  void end();
  // Members whose work is over, in their order; asked once.
  std::span<const std::size_t> take_due();
  // All have planned: the next piece begins, if anybody does something in it.
  void begin(double now);
  // The run is over: what followers did in pieces that are over is counted.
  void settle();

  // ---- its members ------------------------------------------------------------------------------
  // One that plans has this batch in the next step alone, for which it does something else before that takes so long.
  void join(Lane& lane, std::size_t member, const BatchShape& batch, double before);
  // One that plans decodes on for the steps of a stretch, with so many KV tokens held in the first of them.
  void follow(Lane& lane, std::size_t member, const Stretch& stretch, double held);
  // A follower stops at the first boundary from `time` on. Returns the steps it will have taken.
  std::int64_t stop(std::size_t member, double time);
  // What a follower took whose stretch is over.
  struct Taken {
    double first_step = 0;
    double held_seconds = 0;  // of KV tokens
  };
  Taken leave(std::size_t member);
  // The present piece ends at the first boundary from `time` on.
  void split(double time);
  // Steps of a follower's stretch: that have begun, and that are over, by a moment of the present piece.
  std::int64_t steps_until(std::size_t member, double time) const;
  std::int64_t steps_over(std::size_t member, double time) const;

 private:
  struct Joined {
    Lane* lane = nullptr;
    std::size_t member = 0;
    BatchShape batch;
  };
  struct Follower {
    Lane* lane = nullptr;
    const Stretch* stretch = nullptr;
    std::size_t member = 0;
    std::size_t sender = 0;  // of senders_
    bool plain = true;       // its sequences make a token in each step
    double sequences = 0;
    MemberPace pace;
    std::int64_t from = 0, due = 0;  // steps of the group
    double held = 0;                 // KV tokens, in its first step
    double held_seconds = 0;         // of KV tokens, in pieces that are over
    double first_step = 0;           // seconds

    // Tokens that each of its sequences made in as many steps of the group, less those before it came.
    double made(std::int64_t step) const {
      return plain ? double(step - from) : stretch->tokens(double(step - from));
    }
  };

  std::size_t sender_of(const DecodeLine& line);
  Follower& follower(std::size_t member) { return followers_[std::size_t(follows_[member])]; }
  const Follower& follower(std::size_t member) const {
    return followers_[std::size_t(follows_[member])];
  }
  void remove(std::size_t member);
  void find_piece(double now);
  std::int64_t steps_of_longest(std::int64_t most) const;
  void cut(std::int64_t steps);
  void count_followers();
  void write_down(const Follower& follower) const;

  Setup setup_;
  bool steps_ = false;
  double until_ = 0;
  std::int64_t taken_ = 0;  // steps, before the present piece
  Stretch piece_;
  std::vector<double> turns_;                 // by member
  std::vector<std::size_t> due_, taken_due_;  // members
  std::vector<std::int32_t> follows_;         // by member: its place among the followers; -1: none
  std::vector<Follower> followers_;
  std::vector<Senders> senders_;  // some of them without members
  StepTable::SharedStep shared_;
  bool changed_ = true;  // since what is shared was found
  // Of the step that is planned, or of the present one.
  std::vector<Joined> joined_;
  std::vector<MemberStep> joined_steps_;
};

}  // namespace engine
