// Who runs in a lane: the list of its sequences, and sums over those that decode (what they attend to,
// the blocks they are about to take, when the next one is done). All of a lane make tokens together, so
// contexts and due dates are kept relative to the tokens of the lane, and a step costs the same however
// many take part in it; only a step that leaves decodes out does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/serving/lane/own_paced.h"
#include "engine/serving/lane/pool_constants.h"
#include "engine/serving/policies/batch_policy.h"
#include "engine/serving/sequences/longest_context.h"
#include "engine/serving/sequences/step_calendar.h"
#include "engine/step/pace.h"

namespace engine {

class DecodeSet {
 public:
  void reset(const PoolConstants& common, Sequences& sequences);
  // Where what few events look at begins, or what is fetched when it is known that there is some.
  const void* seldom_used() const { return finishes_.behind_usual(); }
  // Who is done after so many steps, and who reads a prompt.
  void fetch_sequences(std::int64_t steps) const {
    if (common_->uneven) fetch_lines(&longest_, &crossings_);
    finishes_.fetch_others();
    const bool caches = common_->settings->prefix_caching;
    const Sequence* const all = sequences_->data();
    if (const std::int32_t next = done_after(steps); next >= 0) {
      all[next].fetch_leaving();
      if (caches) all[next].fetch_prefix();
    }
    if (const std::int32_t reader = first_reader(); reader >= 0) {
      all[reader].fetch_running();
      if (caches) all[reader].fetch_prefix();
    }
  }
  // The first that is done after so many steps, and the first that reads; -1: nobody.
  std::int32_t done_after(std::int64_t steps) const {
    return finishes_.first_by(running_.tokens + pace_->made(running_.step, steps));
  }
  std::int32_t first_reader() const {
    return running_.prefilling.empty() ? -1 : running_.prefilling.front();
  }

  const RunningSet& running() const { return running_; }
  const Pace& pace() const { return *pace_; }
  // Steps make tokens at another pace from now on, for which that of the pool leaves room.
  void change_pace(const Pace& pace);
  // Tokens that the next decode of all attends to, in all layers and in those with a window.
  double contexts() const { return contexts_; }
  double windows() const { return windows_; }
  // Decodes that still fill their window, and the fewest tokens until one of them has.
  std::int64_t filling() const { return filling_; }
  std::int64_t tokens_to_full_window() const { return crossings_.next() - running_.tokens; }
  // KV tokens of prompts being read.
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  // Tokens that the next decode of the longest sequence attends to; somebody decodes, and unequal
  // contexts matter.
  double longest();
  std::int64_t context(const Sequence& sequence) const {
    return sequence.decoding ? sequence.context_base + running_.tokens : sequence.computed;
  }

  // Somebody comes, to read a prompt or, `begin` following at once, to decode; or is gone.
  void append(std::int32_t slot) {
    Sequence& sequence = at(slot);
    sequence.before = running_.last;
    sequence.after = -1;
    (running_.last >= 0 ? at(running_.last).after : running_.first) = slot;
    running_.last = slot;
    ++running_.count;
  }
  void remove(std::int32_t slot) {
    const Sequence& sequence = at(slot);
    (sequence.before >= 0 ? at(sequence.before).after : running_.first) = sequence.after;
    (sequence.after >= 0 ? at(sequence.after).before : running_.last) = sequence.before;
    --running_.count;
    ++running_.departures;
  }
  void remember(const PolicyMemory& memory) { running_.remembered = memory; }
  void forget() { running_.remembered = {.since = running_.step}; }
  void begin_reading(std::int32_t slot) {
    running_.prefilling.push_back(slot);
    prompt_tokens_ += at(slot).computed;
  }
  void read(std::int64_t tokens) { prompt_tokens_ += tokens; }
  void stop_reading(std::int32_t slot);
  // It has read up to its target: those that have stop reading together, when the step is over.
  void has_read(std::int32_t slot) { prompt_tokens_ -= at(slot).computed; }
  void drop_readers() {
    running_.prefilling.erase_if(
        [this](std::int32_t slot) { return at(slot).computed == at(slot).target; });
  }
  // The sequence has read up to its target and made `generated` tokens.
  void begin(std::int32_t slot);
  // It stops before its end, or at it; what it has computed and generated is noted in it.
  void stop(std::int32_t slot);

  // The next step leaves the newest `count` decodes out: they stay where they are.
  void skip(std::int64_t count);
  // Where sequences have paces of their own: the first `decodes` of them take the next step apart, none further than the
  // lane does, and those that are done with it are known from here on. How many tokens, and blocks, fewer that takes.
  struct Fewer {
    std::int64_t tokens = 0, blocks = 0;
  };
  Fewer step_apart(std::int64_t decodes, const ReplicaView& view);
  // Of one of those in the next step: whose it is, and the tokens it makes.
  template <class Visit>
  void each_apart(Visit visit) {
    for (std::size_t i = 0; i < behind_.size(); ++i) {
      visit(at(own_.slots()[i]), running_.next_tokens - behind_[i]);
    }
  }
  // So many of those decoding take part in `steps` steps, of which only the last may end a sequence.
  [[gnu::always_inline]] void advance(std::int64_t steps, double sequences) {
    const std::int64_t made = pace_->made(running_.step, steps);
    running_.step += steps;
    running_.tokens += made;
    contexts_ += double(made) * sequences;
    if (common_->window > 0) cross_windows(made);
    look_ahead();
  }
  // The next of those that have made their last token; -1: nobody.
  std::int32_t first_done();
  // Steps until somebody has.
  std::int64_t steps_to_next_end() const {
    return pace_->steps_for(running_.step, finishes_.next() - running_.tokens);
  }

  // Blocks that the decodes take over the next `steps` steps.
  std::int64_t blocks_needed(std::int64_t steps) const {
    return steps == 1 ? running_.next_blocks : blocks_for_tokens(pace_->made(running_.step, steps));
  }
  // The last of so many steps that takes some; the first where none does.
  std::int64_t last_step_that_takes(std::int64_t steps) const;
  // The most steps, up to `most`, for which `free` blocks suffice; one at least.
  std::int64_t steps_that_fit(std::int64_t most, std::int64_t free) const {
    const std::int64_t cycles = common_->blocks.filled(pace_->made(running_.step, most)) + 1;
    return cycles * running_.growing <= free ? most : fewer_steps_that_fit(most, free);
  }
  // The same after `steps` steps that have their blocks: all that have, those included.
  std::int64_t more_steps_that_fit(std::int64_t steps, std::int64_t most, std::int64_t free) const;

  // The reference: everything counted again from the sequences themselves. Returns the blocks they hold
  // beside shared ones.
  std::int64_t recount(const ReplicaView& view);

 private:
  Sequence& at(std::int32_t slot) { return (*sequences_)[std::size_t(slot)]; }
  // Where blocks are counted: the context with the room that is kept ahead of it, less the lane's tokens.
  std::size_t phase_of(const Sequence& sequence) const {
    return phase(sequence.context_base + common_->pace.ahead());
  }
  std::size_t phase(std::int64_t tokens) const { return common_->blocks.phase(tokens); }
  std::int64_t blocks_for_tokens(std::int64_t tokens) const;
  std::int64_t fewer_steps_that_fit(std::int64_t most, std::int64_t free) const;
  // What the next decode of all makes and takes.
  void look_ahead() {
    running_.next_tokens = pace_->made(running_.step, 1);
    look_at_blocks();
  }
  // The same, where only who takes part has changed.
  void look_at_blocks() {
    running_.next_blocks = running_.next_tokens == 1 ? blocks_by_phase_[phase(-running_.tokens)]
                                                     : blocks_for_tokens(running_.next_tokens);
  }
  std::int64_t crossing_of(const Sequence& sequence) const {
    return common_->window - 1 - sequence.context_base;
  }
  // Whether it fills its window before it ends: only then does the calendar of windows hold it.
  bool crosses(const Sequence& sequence) const {
    return crossing_of(sequence) < sequence.finish_token + common_->pace.most();
  }
  void cross_windows(std::int64_t made);

  void note_done(std::int32_t slot, std::int64_t finish_token);
  void lag(Sequence& sequence, std::int32_t slot, std::int64_t tokens);
  void lag_in_window(Sequence& sequence, std::int32_t slot, std::int64_t tokens);

  const PoolConstants* common_ = nullptr;
  Sequences* sequences_ = nullptr;
  const Pace* pace_ =
      nullptr;  // now; that of the pool makes the most tokens and takes the most room
  RunningSet running_;
  SmallList<std::int32_t, 16> blocks_by_phase_;  // growing decodes by context modulo block size
  double contexts_ = 0;
  double windows_ = 0;
  std::int64_t filling_ = 0;
  std::int64_t prompt_tokens_ = 0;
  StepCalendar finishes_;       // last tokens, by the lane's tokens
  LongestContext longest_;      // among the decodes ...
  bool longest_stale_ = false;  // ... but somebody left or was left out before time
  StepCalendar crossings_;      // windows that are full
  Pace changed_pace_;           // where it is not that of the pool
  // where sequences have paces of their own
  OwnPaced own_;
  std::span<const std::int64_t> behind_;  // those of the present step
  std::vector<std::int32_t> done_;        // after it
};

}  // namespace engine
