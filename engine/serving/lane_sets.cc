// The sets of a lane: who reads, who decodes, what they hold, and when they will be done. Nothing here
// takes time that grows with the batch, except where a step leaves decodes out.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/serving/lane.h"

namespace engine {

void Lane::append_running(std::int32_t slot) {
  Sequence& sequence = at(slot);
  sequence.before = running_.last;
  sequence.after = -1;
  (running_.last >= 0 ? at(running_.last).after : running_.first) = slot;
  running_.last = slot;
  ++running_.count;
  ++replica_->running;
}

void Lane::remove_running(std::int32_t slot) {
  Sequence& sequence = at(slot);
  (sequence.before >= 0 ? at(sequence.before).after : running_.first) = sequence.after;
  (sequence.after >= 0 ? at(sequence.after).before : running_.last) = sequence.before;
  --running_.count;
  --replica_->running;
}

void Lane::admit(const Admission& admission, double now) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(admission.slot);
  replica.waiting.remove(admission.slot);
  if (replica.settings->ordering == Ordering::fair_share) replica.shares.serve(sequence.order);
  if (sequence.scheduled < 0) {
    sequence.scheduled = std::max(now, sequence.arrival);  // not before it by less than a moment
    sequence.cached = sequence.computed;
  }
  replica.stats->looked_up(sequence.target, sequence.computed);
  std::int64_t blocks = replica.pool.blocks_for(
      admission.whole_prompt ? sequence.target : sequence.computed + admission.tokens);
  if (admission.reserved_tokens > 0) {
    blocks = std::max(blocks, replica.pool.blocks_for(admission.reserved_tokens));
    blocks = sequence.reserved = std::min(blocks, replica.pool.total());
  } else if (admission.whole_prompt) {
    sequence.taken = blocks;
  }
  replica.pool.take(std::max(blocks, sequence.kv.shared) - sequence.kv.shared);
  append_running(admission.slot);
  running_.prefilling.push_back(admission.slot);
  prompt_tokens_ += sequence.computed;
}

void Lane::begin_decoding(std::int32_t slot, double now) {
  Sequence& sequence = at(slot);
  replica_->tokens_made += 1;
  if (sequence.generated == 0) {
    sequence.first_token = now;
  } else {
    replica_->stats->add_gap(now - sequence.last_token, 1);  // over a preemption
  }
  sequence.last_token = now;
  ++sequence.generated;
  sequence.decode_start = sequence.target;
  running_.prefilling.erase(
      std::find(running_.prefilling.begin(), running_.prefilling.end(), slot));
  prompt_tokens_ -= sequence.computed;
  if (sequence.generated == sequence.output) return finish(slot, now);

  sequence.decoding = true;
  sequence.context_base = sequence.target - running_.step;
  sequence.finish_step = running_.step + sequence.output - sequence.generated;
  ++running_.decoding;
  running_.finish_sum += sequence.finish_step;
  running_.base_sum += sequence.context_base;
  if (sequence.reserved == 0) {
    ++running_.growing;
    ++blocks_by_phase_[bucket(sequence.context_base)];
  }
  const std::int64_t attended = sequence.target + 1;
  contexts_ += double(attended);
  finishes_.insert(slot, sequence.finish_step, running_.step);
  if (replica_->uneven) longest_.insert(sequence.context_base, sequence.finish_step);
  if (replica_->window > 0) {
    windows_ += double(std::min(attended, replica_->window));
    if (attended < replica_->window) {
      ++inside_window_;
      if (crosses(sequence)) crossings_.insert(slot, crossing_of(sequence), running_.step);
    }
  }
  if (now > last_decode_) {
    if (newcomers_.empty() || newcomers_.back().time != now) newcomers_.push_back({now, 0});
    newcomers_.back().count += 1;
  }
  count_next_blocks();
}

// Takes a sequence out of every sum over the decodes.
void Lane::stop_decoding(std::int32_t slot) {
  Sequence& sequence = at(slot);
  const std::int64_t attended = context(sequence) + 1;
  contexts_ -= double(attended);
  if (replica_->window > 0) {
    windows_ -= double(std::min(attended, replica_->window));
    if (attended < replica_->window) {
      --inside_window_;
      if (crosses(sequence)) crossings_.remove(slot, crossing_of(sequence));
    }
  }
  finishes_.remove(slot, sequence.finish_step);
  if (sequence.finish_step > running_.step) longest_stale_ = true;
  if (sequence.reserved == 0) {
    --running_.growing;
    --blocks_by_phase_[bucket(sequence.context_base)];
  }
  --running_.decoding;
  running_.finish_sum -= sequence.finish_step;
  running_.base_sum -= sequence.context_base;
  count_waste(sequence);
  sequence.computed = attended - 1;
  sequence.generated = sequence.output - (sequence.finish_step - running_.step);
  sequence.decoding = false;
  count_next_blocks();
}

// Room held and not used while it decoded, step by step, as a sum over its contexts.
void Lane::count_waste(const Sequence& sequence) {
  const double size = double(replica_->pool.block_size());
  const double first = double(sequence.decode_start), last = double(context(sequence));
  const double used = (last - first) * (first + last + 1) / 2;
  if (sequence.reserved > 0) {
    const double held = (last - first) * double(sequence.reserved) * size;
    return replica_->stats->decoded_with(held - used, held);
  }
  // Sum over contexts 1..n of what is missing to a whole block.
  const auto missing = [size](double n) {
    const double blocks = double(std::int64_t(n / size));
    const double rest = n - blocks * size;
    return blocks * size * (size - 1) / 2 + rest * size - rest * (rest + 1) / 2;
  };
  const double waste = missing(last) - missing(first);
  replica_->stats->decoded_with(waste, waste + used);
}

void Lane::finish(std::int32_t slot, double now) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  if (sequence.decoding) stop_decoding(slot);
  const std::int64_t held = blocks_held(sequence);
  replica.pool.publish(sequence.prefix, sequence.computed, sequence.kv);
  replica.pool.release(sequence.kv, held);
  remove_running(slot);
  replica.stats->finished(sequence, now, replica.number);
  --replica.outstanding;
  replica.outstanding_tokens -= sequence.prompt + sequence.output;
  if (replica.settings->ordering == Ordering::fair_share) {
    replica.shares.answered(sequence.tenant, sequence.output);
  }
  if (sequence.client >= 0) replica.answered.push_back(sequence.client);
  replica.unused.push_back(slot);
}

void Lane::preempt(std::int32_t slot, bool to_the_end) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  const std::int64_t held = blocks_held(sequence);
  if (sequence.decoding) {
    if (sequence.last_token > last_decode_ && !uneven_) {
      for (Newcomers& group : newcomers_) group.count -= group.time == sequence.last_token;
    }
    sequence.last_token = std::max(sequence.last_token, last_decode_);
    stop_decoding(slot);
  } else {
    running_.prefilling.erase(
        std::find(running_.prefilling.begin(), running_.prefilling.end(), slot));
    prompt_tokens_ -= sequence.computed;
  }
  replica.stats->preempted(sequence.computed);
  replica.pool.release(sequence.kv, held);
  remove_running(slot);
  ++sequence.preemptions;
  sequence.computed = sequence.reserved = sequence.taken = 0;
  sequence.target = sequence.prompt + sequence.generated;
  if (to_the_end) {
    replica.waiting.push(slot, replica.sequences);
  } else {
    replica.waiting.push_front(slot, replica.sequences);
  }
}

// The newest `count` decodes stay where they are while the step number moves on by one.
void Lane::skip_decodes(std::int64_t count) {
  longest_stale_ = true;
  for (std::int32_t slot = running_.last; count > 0; slot = at(slot).before) {
    Sequence& sequence = at(slot);
    if (!sequence.decoding) continue;
    --count;
    const bool filling = replica_->window > 0 && context(sequence) + 1 < replica_->window;
    if (filling) windows_ -= 1;
    // Both steps move by one, so this stays as it is.
    const bool due = filling && crosses(sequence);
    if (due) crossings_.remove(slot, crossing_of(sequence));
    finishes_.remove(slot, sequence.finish_step);
    if (sequence.reserved == 0) {
      --blocks_by_phase_[bucket(sequence.context_base)];
      ++blocks_by_phase_[bucket(sequence.context_base - 1)];
    }
    --sequence.context_base;
    --running_.base_sum;
    ++sequence.finish_step;
    ++running_.finish_sum;
    finishes_.insert(slot, sequence.finish_step, running_.step);
    if (due) crossings_.insert(slot, crossing_of(sequence), running_.step);
  }
}

// Tokens the next decode of the longest sequence attends to.
double Lane::longest_context() {
  if (longest_stale_) {
    longest_stale_ = false;
    longest_.reset();
    for (std::int32_t slot = running_.first; slot >= 0; slot = at(slot).after) {
      const Sequence& sequence = at(slot);
      if (sequence.decoding) longest_.insert(sequence.context_base, sequence.finish_step);
    }
  }
  return double(longest_.at(running_.step) + running_.step + 1);
}

void Lane::cross_windows() {
  for (std::int32_t slot; (slot = crossings_.first_at(running_.step)) >= 0; --inside_window_) {
    crossings_.remove(slot, running_.step);
  }
}

// ---- blocks -------------------------------------------------------------------------------------

// Blocks the decodes take over the next `steps` steps: each takes one when its context is a whole
// number of blocks, so a full cycle of block-size steps takes one each.
std::int64_t Lane::blocks_needed(std::int64_t steps) const {
  const std::int64_t size = std::int64_t(blocks_by_phase_.size());
  std::int64_t blocks = steps / size * running_.growing;
  std::int64_t rest = steps % size;
  std::size_t phase = bucket(-running_.step);
  for (; rest > 0; --rest) {
    blocks += blocks_by_phase_[phase];
    phase = phase == 0 ? std::size_t(size - 1) : phase - 1;
  }
  return blocks;
}

// The most steps, up to `most`, whose blocks are free.
std::int64_t Lane::steps_that_fit(std::int64_t most) const {
  const std::int64_t size = std::int64_t(blocks_by_phase_.size());
  const std::int64_t free = replica_->pool.free();
  if ((most / size + 1) * running_.growing <= free) return most;
  if (running_.growing == 0) return most;
  std::int64_t steps = free / running_.growing * size;  // whole cycles
  if (steps >= most) return most;
  std::int64_t left = free % running_.growing;
  std::size_t phase = bucket(-running_.step);
  while (steps < most && blocks_by_phase_[phase] <= left) {
    left -= blocks_by_phase_[phase];
    phase = phase == 0 ? std::size_t(size - 1) : phase - 1;
    ++steps;
  }
  return std::max<std::int64_t>(1, steps);
}

// ---- the reference: everything counted again from the sequences themselves -----------------------

void Lane::recount() {
  double contexts = 0, windows = 0, longest = 0;
  std::int64_t decoding = 0, count = 0, held = 0, prompts = 0;
  std::vector<std::int64_t> phases(blocks_by_phase_.size(), 0);
  const ReplicaView& now = view();
  for (std::int32_t slot = running_.first; slot >= 0; slot = now.at(slot).after) {
    const Sequence& sequence = now.at(slot);
    ++count;
    held += now.blocks_held(sequence) - sequence.kv.shared;
    if (!sequence.decoding) {
      prompts += sequence.computed;
      continue;
    }
    ++decoding;
    const std::int64_t attended = context(sequence) + 1;
    contexts += double(attended);
    windows += double(std::min(attended, replica_->window));
    longest = std::max(longest, double(attended));
    if (sequence.reserved == 0) ++phases[bucket(sequence.context_base)];
    const std::int64_t made = attended - 1 - sequence.prompt + 1;
    check(made == sequence.output - (sequence.finish_step - running_.step),
          "a sequence has made one token for each step it decoded");
  }
  check(count == running_.count && decoding == running_.decoding, "counts match the list");
  check(contexts == contexts_, "the contexts add up");
  check(replica_->window == 0 || windows == windows_, "the windows add up");
  check(!replica_->uneven || decoding == 0 || longest == longest_context(), "the longest is known");
  check(prompts == prompt_tokens_, "the prompts add up");
  check(phases == blocks_by_phase_, "the block phases add up");
  if (replica_->lanes == 1) {
    check(held + replica_->pool.held_in_extents() == replica_->pool.used(), "the blocks add up");
  }
}

}  // namespace engine
