// The running sequences of a lane, and sums over those that decode: tokens they attend to, blocks they are about to take, when the
// next one ends. All sequences of a lane make tokens together, so contexts and ends are kept relative to the number of tokens that
// the lane has made. A step then costs the same however many sequences take part in it, unless it leaves some of them out.
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
  // What most events look at ends here.
  const void* seldom_used() const { return finishes_.behind_usual(); }
  // Fetches the first sequence that ends after so many steps, and the first that reads a prompt.
  void fetch_sequences(std::int64_t steps) const {
    if (common_->uneven()) fetch_lines(&longest_, &crossings_);
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
  // Slots of the first sequence that ends after so many steps, and of the first that reads a prompt; -1: there is none.
  std::int32_t done_after(std::int64_t steps) const {
    return finishes_.first_by(running_.tokens + pace_->made(running_.step, steps));
  }
  std::int32_t first_reader() const {
    return running_.prefilling.empty() ? -1 : running_.prefilling.front();
  }

  const RunningSet& running() const { return running_; }
  const Pace& pace() const { return *pace_; }
  // From now on steps make tokens at another pace, which needs no more room than the pool's pace.
  void change_pace(const Pace& pace);
  // Tokens that all sequences together attend to in the next decode step: in layers without a window, and in those with one.
  double contexts() const { return contexts_; }
  double windows() const { return windows_; }
  // Decoding sequences that have not filled their window yet, and the fewest tokens until one of them has.
  std::int64_t filling() const { return filling_; }
  std::int64_t tokens_to_full_window() const { return crossings_.next() - running_.tokens; }
  // KV tokens of prompts being read.
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  // Tokens that the longest sequence attends to in the next decode step. Only where sequences decode and unequal contexts matter.
  double longest();
  std::int64_t context(const Sequence& sequence) const {
    return sequence.decoding ? sequence.context_base + running_.tokens : sequence.computed;
  }

  // A sequence joins, to read its prompt or, where `begin` follows at once, to decode; or it leaves.
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
  // A sequence has read its prompt. `drop_readers` takes all such sequences off the list of readers when the step is over.
  void has_read(std::int32_t slot) { prompt_tokens_ -= at(slot).computed; }
  void drop_readers() {
    running_.prefilling.erase_if(
        [this](std::int32_t slot) { return at(slot).computed == at(slot).target; });
  }
  // The sequence has read up to its target and made `generated` tokens.
  void begin(std::int32_t slot);
  // The sequence stops, at its end or before. What it has computed and generated is noted in it.
  void stop(std::int32_t slot);

  // Leaves the newest `count` decoding sequences out of the next step: their contexts do not grow.
  void skip(std::int64_t count);
  // Where sequences have paces of their own: each of the first `decodes` sequences makes its own number of tokens in the next step,
  // none more than the lane counts, and those that end with it are known from here on. Returns how many tokens and blocks fewer
  // than the lane counts this takes.
  struct Fewer {
    std::int64_t tokens = 0, blocks = 0;
  };
  Fewer step_apart(std::int64_t decodes, const ReplicaView& view);
  // Calls `visit(sequence, tokens)` for each of those sequences, with the tokens that it makes in the next step.
  template <class Visit>
  void each_apart(Visit visit) {
    for (std::size_t i = 0; i < behind_.size(); ++i) {
      visit(at(own_.slots()[i]), running_.next_tokens - behind_[i]);
    }
  }
  // `sequences` decoding sequences have taken `steps` steps, of which only the last one may end a sequence.
  [[gnu::always_inline]] void advance(std::int64_t steps, double sequences) {
    const bool plain = pace_->plain();
    const std::int64_t made = plain ? steps : pace_->made(running_.step, steps);
    running_.step += steps;
    running_.tokens += made;
    contexts_ += double(made) * sequences;
    if (common_->window > 0) cross_windows(made);
    plain ? look_at_next_block() : look_ahead();
  }
  // Slot of the next sequence that has made its last token; -1: there is none.
  std::int32_t first_done();
  // Steps until a sequence makes its last token, or completes its first message.
  std::int64_t steps_to_next_end() const {
    const std::int64_t tokens = finishes_.next() - running_.tokens;
    return pace_->steps_for(running_.step,
                            untold_.empty() ? tokens : std::min(tokens, tokens_to_next_told()));
  }
  // Sequences whose clients have heard nothing yet, since their first message waits for more tokens. That a message is complete ends a
  // stretch as the end of an answer does.
  std::span<const std::int32_t> untold() const { return untold_; }
  // Hands those that have as many now to tell(slot), or all of their tokens.
  template <class Tell>
  void take_told(Tell tell) {
    std::erase_if(untold_, [&](std::int32_t slot) {
      const bool due = tokens_to_told(slot) <= 0;
      if (due) tell(slot);
      return due;
    });
  }

  // Blocks that the decoding sequences take over the next `steps` steps.
  std::int64_t blocks_needed(std::int64_t steps) const {
    return steps == 1 ? running_.next_blocks : blocks_for_tokens(pace_->made(running_.step, steps));
  }
  // The last of so many steps that takes any blocks; the first step where none does.
  std::int64_t last_step_that_takes(std::int64_t steps) const;
  // The most steps, up to `most`, for which `free` blocks suffice; one at least.
  std::int64_t steps_that_fit(std::int64_t most, std::int64_t free) const {
    const std::int64_t cycles = common_->blocks.filled(pace_->made(running_.step, most)) + 1;
    return cycles * running_.growing <= free ? most : fewer_steps_that_fit(most, free);
  }
  // The same where the first `steps` steps have their blocks already, which count as well.
  std::int64_t more_steps_that_fit(std::int64_t steps, std::int64_t most, std::int64_t free) const;

  // Counts everything anew from the sequences themselves and checks it: the reference for tests. Returns the blocks that only
  // they hold.
  std::int64_t recount(const ReplicaView& view);

 private:
  Sequence& at(std::int32_t slot) { return (*sequences_)[std::size_t(slot)]; }
  // A sequence's place in the histogram of blocks: its context with the room kept ahead of it, less the lane's tokens.
  std::size_t phase_of(const Sequence& sequence) const {
    return phase(sequence.context_base + common_->pace.ahead());
  }
  std::size_t phase(std::int64_t tokens) const { return common_->blocks.phase(tokens); }
  std::int64_t blocks_for_tokens(std::int64_t tokens) const;
  // Blocks that the next `count` tokens take, of which the first meets sequences of that phase.
  std::int64_t blocks_in_phases(std::size_t first, std::int64_t count) const;
  std::int64_t fewer_steps_that_fit(std::int64_t most, std::int64_t free) const;
  // Notes what the next decode step of all sequences makes, and the blocks that it takes.
  void look_ahead() {
    running_.next_tokens = pace_->made(running_.step, 1);
    look_at_blocks();
  }
  // The same where only the set of sequences has changed.
  void look_at_blocks() {
    if (running_.next_tokens == 1) return look_at_next_block();
    running_.next_blocks = blocks_for_tokens(running_.next_tokens);
  }
  void look_at_next_block() { running_.next_blocks = blocks_by_phase_[phase(-running_.tokens)]; }
  std::int64_t crossing_of(const Sequence& sequence) const {
    return common_->window - 1 - sequence.context_base;
  }
  // Whether a sequence fills its window before it ends. Only then is it in the calendar of windows.
  bool crosses(const Sequence& sequence) const {
    return crossing_of(sequence) < sequence.finish_token + common_->pace.most();
  }
  void cross_windows(std::int64_t made);
  std::int64_t tokens_to_told(std::int32_t slot) const;
  std::int64_t tokens_to_next_told() const;

  void note_done(std::int32_t slot, std::int64_t finish_token);
  void lag(Sequence& sequence, std::int32_t slot, std::int64_t tokens);
  void lag_in_window(Sequence& sequence, std::int32_t slot, std::int64_t tokens);

  const PoolConstants* common_ = nullptr;
  Sequences* sequences_ = nullptr;
  // The present one; the pool's makes the most tokens and needs the most room.
  const Pace* pace_ = nullptr;
  RunningSet running_;
  SmallList<std::int32_t, 16> blocks_by_phase_;  // decoding sequences by context modulo block size
  double contexts_ = 0;
  double windows_ = 0;
  std::int64_t filling_ = 0;
  std::int64_t prompt_tokens_ = 0;
  StepCalendar finishes_;   // the lane's tokens at which sequences end
  LongestContext longest_;  // among the decoding sequences
  // It has to be found anew: a sequence left before its end, or was left out of a step.
  bool longest_stale_ = false;
  StepCalendar crossings_;  // the lane's tokens at which windows are full
  std::vector<std::int32_t> untold_;
  Pace changed_pace_;  // the present pace, where it is not the pool's
  // Where sequences have paces of their own
  OwnPaced own_;
  std::span<const std::int64_t>
      behind_;  // tokens by which each falls behind the lane in the present step
  std::vector<std::int32_t> done_;  // sequences that end with it
};

}  // namespace engine
