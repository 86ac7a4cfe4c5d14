// Single steps of a lane: with prompts in them, or with some decodes left out.
#include <algorithm>
#include <utility>

#include "engine/serving/lane/lane.h"
#include "engine/serving/lane/lockstep_group.h"

namespace engine {

void Lane::start_step(const StepPlan& plan, double now) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  work_ = Work::step;
  start_ = now;
  steady_ = Steady::no;
  left_ = more_alike_ = 0;
  const bool reads = !plan.chunks.empty() || !plan.admissions.empty();
  if (length_ >= 0 && plan.decodes > 0 && reads) {
    change_length(proposals_.pick_beside_prompts(length_));
  }
  const double drafting = plan.decodes > 0 ? draft_reading() : 0;
  step_decodes_ = plan.decodes;
  all_decode_ = plan.decodes == running().decoding;
  BatchShape batch;
  add_decodes(plan.decodes, batch);
  const double encoding = begin_prompts(plan, now);
  for (const Chunk& chunk : chunks_) {
    const Sequence& sequence = at(chunk.slot);
    if (common.first_token == ReadToken::is_remade && chunk.tokens == 1 && sequence.received >= 0) {
      // What is left of a prompt that was read elsewhere: to the kernels it is one more decode.
      add_decode(batch, 1, sequence.computed + 1, common.window);
    } else {
      add_prefill(batch, 1, chunk.tokens, sequence.computed, common.window);
    }
    if (sequence.computed + chunk.tokens == sequence.target) ++batch.sampled;
  }
  batch.adapters = sequences_.adapters_in_step(plan.decodes, chunks_);
  common.sums->peak(replica.pool.used());
  common.stats->step_began(now);
  const int length = step_decodes_ > 0 ? length_ : -1;
  if (replica.group != nullptr) {
    return replica.group->join(*this, member(),
                               {.batch = batch, .before = encoding + drafting, .length = length});
  }
  const double seconds = step_seconds(batch, length);
  if (common.lanes > 1) drafting_ = drafting + common.table->of_length(length).drafting();
  take_time(batch, seconds + encoding + drafting);
}

void Lane::run_step(const BatchShape& batch, double seconds) { take_time(batch, seconds); }

// It has its blocks and its sequences; now it is known how long it takes.
[[gnu::always_inline]] inline void Lane::take_time(const BatchShape& batch, double seconds) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  end_ = start_ + seconds;
  if (common.log != nullptr) log_step(batch);
  common.sums->ran(1, seconds, double(step_decodes_) + double(chunks_.size()));
  count_held_in_step(seconds, step_decodes_ * running().next_tokens - step_tokens_);
  common.sums->adapter_steps += double(batch.adapters);
  if (step_decodes_ > 0) add_gaps(seconds);
}

[[gnu::always_inline]] inline void Lane::add_decodes(std::int64_t decodes, BatchShape& batch) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  batch.decode_sequences = batch.sampled = decodes;
  batch.decode_kv_tokens = sequences_.set.contexts();
  batch.decode_window_kv_tokens = sequences_.set.windows();
  step_tokens_ = decodes * running().next_tokens;
  if (decodes == 0) return;
  if (common.uneven()) batch.decode_longest = sequences_.set.longest();
  std::int64_t blocks = running().next_blocks;
  if (!all_decode_) blocks -= leave_out(running().decoding - decodes, batch);
  if (common.own_paces != nullptr) {
    const DecodeSet::Fewer fewer = proposals_.draw(decodes);
    step_tokens_ -= fewer.tokens;
    blocks -= fewer.blocks;
  }
  replica.pool.take(blocks);
}

[[gnu::always_inline]] inline double Lane::begin_prompts(const StepPlan& plan, double now) {
  ReplicaState& replica = *replica_;
  chunks_.clear();
  std::int64_t blocks = 0;
  for (const Chunk& chunk : plan.chunks) {
    chunks_.push_back(chunk);
    blocks += sequences_.blocks().blocks_to_add(at(chunk.slot), chunk.tokens);
  }
  replica.pool.take(blocks);
  std::size_t with_images = 0;
  for (const Admission& admission : plan.admissions) {
    // Images are encoded once in a replica, when their prompt is first begun.
    const bool encodes = !replica.common->encode_seconds.empty();
    if (encodes && !std::exchange(at(admission.slot).encoded, true)) ++with_images;
    sequences_.admit(admission, now);
    if (admission.tokens > 0) chunks_.push_back({admission.slot, admission.tokens});
  }
  return with_images > 0 ? replica.encode(with_images) : 0;
}

[[gnu::always_inline]] inline void Lane::add_gaps(double seconds) {
  if (all_decode_) {
    sequences_.gaps.add_all(start_, seconds, double(step_decodes_), *replica_->common->stats,
                            [this](auto visit) { sequences_.each_decode(visit); });
    return;
  }
  std::int64_t decodes = step_decodes_;
  for (std::int32_t slot = running().first; decodes > 0; slot = at(slot).after) {
    if (!at(slot).decoding) continue;
    --decodes;
    sequences_.gaps.add_one(at(slot), end_, *replica_->common->stats);
  }
}

// The newest decodes sit this one out. Returns the blocks they do not take.
std::int64_t Lane::leave_out(std::int64_t count, BatchShape& batch) {
  std::int64_t blocks = 0, left = count;
  for (std::int32_t slot = running().last; left > 0; slot = at(slot).before) {
    const Sequence& sequence = at(slot);
    if (!sequence.decoding) continue;
    --left;
    const std::int64_t attended = sequences_.set.context(sequence) + 1;
    batch.decode_kv_tokens -= double(attended);
    batch.decode_window_kv_tokens -= double(std::min(attended, replica_->common->window));
    blocks += sequences_.blocks().blocks_to_decode(sequence);
  }
  sequences_.set.skip(count);
  return blocks;
}

[[gnu::always_inline]] inline double Lane::step_seconds(const BatchShape& batch, int length) {
  StepTable& table = *replica_->common->table;
  if (batch.prefill_tokens > 0) return table.run_mixed(batch, length);
  Decodes decodes = decodes_of(batch);
  decodes.length = length;
  DecodeLine line;
  table.decode_line(decodes, line);
  const double seconds = line.step(batch.decode_kv_tokens, batch.decode_window_kv_tokens);
  table.count_decode(line, 1, batch.decode_kv_tokens, batch.decode_window_kv_tokens, seconds);
  return seconds;
}

void Lane::end_step() {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  common.stats->step_began(start_);
  if (step_decodes_ > 0) {
    if (all_decode_) sequences_.gaps.all_decoded(end_);
    replica.tokens_made += double(step_tokens_);
    if (length_ >= 0 || common.own_paces != nullptr) {
      proposals_.count_verified(1, double(step_decodes_), double(step_tokens_));
    }
    sequences_.set.advance(1, double(step_decodes_));
  }
  if (common.streams()) stream_step();
  sequences_.tell_due(end_);
  const bool reads = !chunks_.empty();
  if (reads || step_decodes_ > 0) {
    replica.inbox.count(1, reads ? Inbox::Steps::prompts : Inbox::Steps::decodes);
  }
  for (const Chunk& chunk : chunks_) {
    Sequence& sequence = at(chunk.slot);
    sequence.computed += chunk.tokens;
    sequences_.set.read(chunk.tokens);
    replica.pool.publish(sequence.prefix, sequence.computed, sequence.kv, sequence.prompt);
    if (sequence.computed == sequence.target) sequences_.begin_decoding(chunk.slot, end_);
  }
  if (!chunks_.empty()) sequences_.set.drop_readers();
  chunks_.clear();
  if (step_decodes_ > 0) sequences_.finish_due();
}

}  // namespace engine
