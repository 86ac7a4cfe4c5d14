#include "engine/serving/lane/decode_set.h"

#include <algorithm>
#include <functional>

#include "engine/base/check.h"
#include "engine/base/random.h"

namespace engine {

void DecodeSet::reset(const PoolConstants& common, Sequences& sequences) {
  common_ = &common;
  sequences_ = &sequences;
  pace_ = &common.pace;
  SmallList<std::int32_t, 4> readers = std::move(running_.prefilling);
  readers.clear();
  running_ = {.prefilling = std::move(readers)};
  blocks_by_phase_.assign(std::size_t(common.blocks.size), 0);
  contexts_ = windows_ = 0;
  filling_ = prompt_tokens_ = 0;
  finishes_.reset();
  crossings_.reset();
  untold_.clear();
  longest_.reset();
  longest_stale_ = false;
  own_.clear();
  behind_ = {};
  done_.clear();
  look_ahead();
}

void DecodeSet::stop_reading(std::int32_t slot) {
  running_.prefilling.erase(
      std::find(running_.prefilling.begin(), running_.prefilling.end(), slot));
  prompt_tokens_ -= at(slot).computed;
}

void DecodeSet::begin(std::int32_t slot) {
  Sequence& sequence = at(slot);
  sequence.decoding = true;
  sequence.context_base = sequence.target - running_.tokens;
  sequence.finish_token = running_.tokens + sequence.output - sequence.generated;
  if (common_->first_message_tokens > 1 && sequence.first_token < 0) untold_.push_back(slot);
  ++running_.decoding;
  running_.finish_sum += sequence.finish_token;
  running_.base_sum += sequence.context_base;
  if (sequence.reserved == 0) {
    ++running_.growing;
    ++blocks_by_phase_[phase_of(sequence)];
  }
  const std::int64_t attended = sequence.target + 1;
  contexts_ += double(attended);
  if (common_->own_paces == nullptr) {
    finishes_.insert(slot, sequence.finish_token);
  } else {
    std::int32_t before = sequence.before;
    while (before >= 0 && !at(before).decoding) before = at(before).before;
    own_.insert(slot, before, sequence, mixed_seed(common_->seed, std::uint64_t(sequence.number)));
  }
  if (common_->uneven()) longest_.insert(sequence.context_base, sequence.finish_token);
  if (common_->window > 0) {
    windows_ += double(std::min(attended, common_->window));
    if (attended < common_->window) {
      ++filling_;
      if (crosses(sequence)) crossings_.insert(slot, crossing_of(sequence));
    }
  }
  look_at_blocks();
}

void DecodeSet::stop(std::int32_t slot) {
  Sequence& sequence = at(slot);
  const std::int64_t attended = context(sequence) + 1;
  contexts_ -= double(attended);
  if (common_->window > 0) {
    windows_ -= double(std::min(attended, common_->window));
    if (attended < common_->window) {
      --filling_;
      if (crosses(sequence)) crossings_.remove(slot, crossing_of(sequence));
    }
  }
  if (common_->own_paces == nullptr) {
    finishes_.remove(slot, sequence.finish_token);
  } else {
    own_.erase(slot);
  }
  if (!untold_.empty()) std::erase(untold_, slot);
  if (sequence.finish_token > running_.tokens) longest_stale_ = true;
  if (sequence.reserved == 0) {
    --running_.growing;
    --blocks_by_phase_[phase_of(sequence)];
  }
  --running_.decoding;
  running_.finish_sum -= sequence.finish_token;
  running_.base_sum -= sequence.context_base;
  sequence.computed = attended - 1;
  sequence.generated = sequence.output - (sequence.finish_token - running_.tokens);
  sequence.decoding = false;
  look_at_blocks();
}

std::int64_t DecodeSet::tokens_to_told(std::int32_t slot) const {
  const Sequence& sequence = (*sequences_)[std::size_t(slot)];
  const std::int64_t left = sequence.finish_token - running_.tokens;
  const std::int64_t made = sequence.output - left;
  return std::min(left, common_->first_message_tokens - made);
}

std::int64_t DecodeSet::tokens_to_next_told() const {
  std::int64_t least = StepCalendar::kNever;
  for (const std::int32_t slot : untold_) least = std::min(least, tokens_to_told(slot));
  return least;
}

void DecodeSet::skip(std::int64_t count) {
  longest_stale_ = true;
  const std::int64_t made = running_.next_tokens;
  const bool own_paces = common_->own_paces != nullptr;
  if (own_paces) own_.leave_out(count, made);
  for (std::int32_t slot = running_.last; count > 0; slot = at(slot).before) {
    Sequence& sequence = at(slot);
    if (!sequence.decoding) continue;
    --count;
    if (!own_paces) finishes_.remove(slot, sequence.finish_token);
    lag(sequence, slot, made);
    if (!own_paces) finishes_.insert(slot, sequence.finish_token);
    running_.base_sum -= made;
    running_.finish_sum += made;
  }
}

// What is the same for all is read once, and not behind a pointer: there are some hundred sequences in every step.
DecodeSet::Fewer DecodeSet::step_apart(std::int64_t decodes, const ReplicaView& view) {
  const std::int64_t all = running_.next_tokens, end = running_.tokens + all;
  const std::int64_t ahead = common_->pace.ahead();
  const BlockFilling blocks = common_->blocks;
  Sequence* const sequences = sequences_->data();
  behind_ =
      own_.behind({.decodes = std::size_t(decodes), .lane_tokens = running_.tokens, .tokens = all},
                  *common_->own_paces, *sequences_);
  const std::int64_t fewer_blocks = own_.fewer_blocks(end + view.ahead(), blocks.size);
  const std::size_t count = behind_.size();
  const std::int64_t* const behind = behind_.data();
  const std::int32_t* const slots = own_.slots().data();
  std::int64_t* const bases = own_.bases().data();
  if (common_->window > 0) {
    for (std::size_t i = 0; i < count; ++i) lag_in_window(at(slots[i]), slots[i], behind[i]);
  }
  done_.clear();
  std::int64_t fewer_tokens = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Sequence& sequence = sequences[std::size_t(slots[i])];
    const std::int64_t tokens = behind[i], base = bases[i] - tokens;
    const std::int64_t finish = sequence.finish_token + tokens;
    fewer_tokens += tokens;
    sequence.context_base = bases[i] = base;
    sequence.finish_token = finish;
    if (finish <= end) note_done(slots[i], finish);
  }
  // Nearly all have another phase now: they are counted anew.
  blocks_by_phase_.assign(blocks_by_phase_.size(), 0);
  std::int32_t* const phases = blocks_by_phase_.data();
  const std::size_t decoding = own_.slots().size();
  const bool all_grow = running_.growing == running_.decoding;
  for (std::size_t i = 0; i < decoding; ++i) {
    if (!all_grow && sequences[std::size_t(slots[i])].reserved > 0) continue;
    ++phases[blocks.phase(bases[i] + ahead)];
  }
  longest_stale_ = true;
  contexts_ -= double(fewer_tokens);
  running_.base_sum -= fewer_tokens;
  running_.finish_sum += fewer_tokens;
  return {.tokens = fewer_tokens, .blocks = fewer_blocks};
}

// The first to end stands last; of several that end together, the one that came first.
void DecodeSet::note_done(std::int32_t slot, std::int64_t finish_token) {
  const auto place =
      std::ranges::lower_bound(done_, finish_token, std::greater<>{},
                               [this](std::int32_t other) { return at(other).finish_token; });
  done_.insert(place, slot);
}

// `advance` counts it as one that makes as many tokens as all: what that adds too much is taken away before.
void DecodeSet::lag(Sequence& sequence, std::int32_t slot, std::int64_t tokens) {
  if (common_->window > 0) lag_in_window(sequence, slot, tokens);
  if (sequence.reserved == 0) {
    const BlockFilling blocks = common_->blocks;
    const std::int64_t room = sequence.context_base + common_->pace.ahead();
    --blocks_by_phase_[blocks.phase(room)];
    ++blocks_by_phase_[blocks.phase(room - tokens)];
  }
  sequence.context_base -= tokens;
  sequence.finish_token += tokens;
}

void DecodeSet::lag_in_window(Sequence& sequence, std::int32_t slot, std::int64_t tokens) {
  if (context(sequence) + 1 >= common_->window) return;
  windows_ -= double(tokens);
  // Both dates move alike, so this stays as it is.
  if (!crosses(sequence)) return;
  crossings_.remove(slot, crossing_of(sequence));
  crossings_.insert(slot, crossing_of(sequence) + tokens);
}

void DecodeSet::change_pace(const Pace& pace) {
  const std::int64_t left_over = pace_->left_over(running_.step);
  changed_pace_ = pace;
  changed_pace_.carry = left_over;
  pace_ = &changed_pace_;
  running_.step = 0;
  look_ahead();
}

std::int32_t DecodeSet::first_done() {
  if (common_->own_paces != nullptr) {
    if (done_.empty()) return -1;
    const std::int32_t slot = done_.back();
    done_.pop_back();
    return slot;
  }
  return finishes_.first_by(running_.tokens);
}

double DecodeSet::longest() {
  if (longest_stale_) {
    longest_stale_ = false;
    longest_.reset();
    for (std::int32_t slot = running_.first; slot >= 0; slot = at(slot).after) {
      const Sequence& sequence = at(slot);
      if (sequence.decoding) longest_.insert(sequence.context_base, sequence.finish_token);
    }
  }
  return double(longest_.at(running_.tokens) + running_.tokens + 1);
}

// A sequence whose window was full before the last of these tokens grew by fewer tokens than the others.
void DecodeSet::cross_windows(std::int64_t made) {
  const std::int64_t now = running_.tokens;
  windows_ += double(made) * double(filling_);
  for (std::int64_t full; (full = crossings_.next()) <= now; --filling_) {
    crossings_.remove(crossings_.first_by(full), full);
    windows_ -= double(now - full);
  }
}

// A decode takes a block when its context is a whole number of blocks, so a full cycle of as many tokens
// as a block holds takes one each.
std::int64_t DecodeSet::blocks_for_tokens(std::int64_t tokens) const {
  const BlockFilling& filling = common_->blocks;
  const std::int64_t size = filling.size, cycles = filling.filled(tokens);
  const std::int64_t rest = tokens - cycles * size;
  // Of the last cycle, the shorter part is looked at: that of these tokens, or the one behind them.
  if (2 * rest <= size) {
    return cycles * running_.growing + blocks_in_phases(phase(-running_.tokens), rest);
  }
  return (cycles + 1) * running_.growing -
         blocks_in_phases(phase(-running_.tokens - rest), size - rest);
}

std::int64_t DecodeSet::blocks_in_phases(std::size_t first, std::int64_t count) const {
  const auto last_phase = std::size_t(common_->blocks.size - 1);
  std::int64_t blocks = 0;
  for (; count > 0; --count) {
    blocks += blocks_by_phase_[first];
    first = first == 0 ? last_phase : first - 1;
  }
  return blocks;
}

std::int64_t DecodeSet::last_step_that_takes(std::int64_t steps) const {
  if (pace_->plain()) {
    while (steps > 1 && blocks_by_phase_[phase(1 - running_.tokens - steps)] == 0) --steps;
    return steps;
  }
  const std::int64_t all = blocks_needed(steps);
  while (steps > 1 && blocks_needed(steps - 1) == all) --steps;
  return steps;
}

// Only called where sequences grow, and where a full block for each of them per cycle would take more than there are.
std::int64_t DecodeSet::fewer_steps_that_fit(std::int64_t most, std::int64_t free) const {
  const std::int64_t size = common_->blocks.size, most_tokens = pace_->made(running_.step, most);
  std::int64_t tokens = free / running_.growing * size;  // whole cycles
  if (tokens >= most_tokens) return most;
  std::int64_t left = free % running_.growing;
  std::size_t phase_now = phase(-running_.tokens);
  while (tokens < most_tokens && blocks_by_phase_[phase_now] <= left) {
    left -= blocks_by_phase_[phase_now];
    phase_now = phase_now == 0 ? std::size_t(size - 1) : phase_now - 1;
    ++tokens;
  }
  // Of steps only whole ones: one fewer than those that make more.
  return std::max<std::int64_t>(1, pace_->steps_for(running_.step, tokens + 1) - 1);
}

std::int64_t DecodeSet::more_steps_that_fit(std::int64_t steps, std::int64_t most,
                                            std::int64_t free) const {
  // A full cycle takes a block of each: with fewer it is not far.
  if (!pace_->plain() || free >= running_.growing) {
    return std::max(steps, steps_that_fit(most, blocks_needed(steps) + free));
  }
  const auto last_phase = std::size_t(common_->blocks.size - 1);
  std::size_t phase_now = phase(-(running_.tokens + steps));
  while (steps < most && blocks_by_phase_[phase_now] <= free) {
    free -= blocks_by_phase_[phase_now];
    phase_now = phase_now == 0 ? last_phase : phase_now - 1;
    ++steps;
  }
  return steps;
}

std::int64_t DecodeSet::recount(const ReplicaView& view) {
  double contexts = 0, windows = 0, longest_now = 0;
  std::int64_t decoding = 0, count = 0, held = 0, prompts = 0;
  std::vector<std::int32_t> phases(blocks_by_phase_.size(), 0);
  for (std::int32_t slot = running_.first; slot >= 0; slot = at(slot).after) {
    const Sequence& sequence = at(slot);
    ++count;
    held += view.blocks_held(sequence) - sequence.kv.shared;
    if (!sequence.decoding) {
      prompts += sequence.computed;
      continue;
    }
    ++decoding;
    const std::int64_t attended = context(sequence) + 1;
    contexts += double(attended);
    windows += double(std::min(attended, common_->window));
    longest_now = std::max(longest_now, double(attended));
    if (sequence.reserved == 0) ++phases[phase_of(sequence)];
    const std::int64_t made = attended - sequence.prompt;
    check(made == sequence.output - (sequence.finish_token - running_.tokens),
          "a sequence has made the tokens of its steps");
  }
  check(count == running_.count && decoding == running_.decoding, "counts match the list");
  check(contexts == contexts_, "the contexts add up");
  check(common_->window == 0 || windows == windows_, "the windows add up");
  check(!common_->uneven() || decoding == 0 || longest_now == longest(), "the longest is known");
  check(prompts == prompt_tokens_, "the prompts add up");
  check(std::ranges::equal(phases, blocks_by_phase_), "the block phases add up");
  return held;
}

}  // namespace engine
