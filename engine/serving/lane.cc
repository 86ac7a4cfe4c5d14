#include "engine/serving/lane.h"

#include <algorithm>

#include "engine/base/check.h"

namespace engine {
namespace {

// Puts those of the first in the queue forward whose prompts are cached furthest. Like the engine
// that does this, it looks at no more than 128: sorting a long queue would cost more than it wins.
void order_by_prefix(ReplicaState& replica) {
  constexpr std::int64_t looked_at = 128;
  const std::int64_t count = std::min(looked_at, replica.waiting.size());
  if (count < 2 || !replica.pool.caches_prefixes()) return;
  std::int32_t* slots = replica.waiting.begin();
  for (std::int64_t i = 0; i < count; ++i) {
    Sequence& sequence = replica.sequences[std::size_t(slots[i])];
    sequence.order = -double(replica.pool.match(sequence.prefix, sequence.target - 1).tokens);
  }
  std::stable_sort(slots, slots + count, [&replica](std::int32_t a, std::int32_t b) {
    const Sequence& one = replica.sequences[std::size_t(a)];
    const Sequence& other = replica.sequences[std::size_t(b)];
    return one.order != other.order ? one.order < other.order : one.arrival < other.arrival;
  });
}

}  // namespace

void Lane::reset(ReplicaState& replica) {
  replica_ = &replica;
  set_.reset({.sequences = &replica.sequences,
              .block_size = replica.settings->block_size,
              .window = replica.window,
              .uneven = replica.uneven,
              .pace = replica.pace});
  view_.emplace(ReplicaView{.settings = *replica.settings,
                            .sequences = replica.sequences,
                            .waiting = replica.waiting,
                            .pool = replica.pool,
                            .running = set_.running(),
                            .seats = replica.settings->max_num_seqs,
                            .longest = replica.longest,
                            .pipeline = replica.lanes > 1,
                            .pace = replica.pace});
  gaps_.reset();
  free_since_ = 0;
  work_ = Work::none;
  start_ = 0;
  end_ = kNever;
  left_ = 0;
  steady_ = Steady::no;
  chunks_.clear();
}

const ReplicaView& Lane::view() {
  const ReplicaState& replica = *replica_;
  view_->others_running = replica.parked > 0;
  if (replica.lanes > 1) {
    // Batches in flight share the seats, and what is inside is spread over them.
    const std::int64_t inside = replica.running + replica.waiting.size();
    const std::int64_t seats = std::min(replica.settings->max_num_seqs, inside + replica.lanes - 1);
    view_->seats = std::max<std::int64_t>(seats / replica.lanes, 1);
    view_->others_running = replica.running > running().count || replica.parked > 0;
  }
  return *view_;
}

// ---- what runs ------------------------------------------------------------------------------------

bool Lane::end_work() {
  if (work_ == Work::none) return false;
  const double now = end_;
  if (work_ == Work::stretch) {
    end_stretch();
  } else {
    end_step();
  }
  if (replica_->audit) recount();
  work_ = Work::none;
  free_since_ = now;
  const ReplicaState& replica = *replica_;
  const bool more = running().count > 0 || !replica.waiting.empty() || replica.more_to_come();
  end_ = more ? now : kNever;
  return true;
}

// Nothing to decide: everybody decoded and the queue is empty, so everybody who is left decodes on.
bool Lane::goes_on() const {
  return steady_ == Steady::until_arrival && replica_->waiting.empty() && running().decoding > 0 &&
         running().next_blocks <= replica_->pool.free();
}

void Lane::plan(double now) {
  ReplicaState& replica = *replica_;
  work_ = Work::none;
  end_ = kNever;
  if (!replica.landed.empty()) join_landed(now);
  if (running().count == 0 && replica.waiting.empty()) return;
  if (left_ > 0) return start_stretch(now);  // its next part
  if (replica.lanes > 1 && now + kSameMoment < replica.stage_free) {
    end_ = replica.stage_free;  // another batch is in the first stage
    return;
  }
  if (goes_on()) {
    begin_work(now);
    start_steady(now);
  } else {
    if (replica.settings->ordering == Ordering::longest_prefix) order_by_prefix(replica);
    StepPlan& plan = replica.scratch_plan;
    plan.clear();
    replica.plan(view(), plan);
    if (plan.empty()) {
      check(running().count == 0 && replica.running + replica.parked > 0,
            "a policy never leaves everyone waiting");
      return;  // woken again when another lane is done, or KV has been carried
    }
    begin_work(now);
    start(plan, now);
  }
  if (replica.lanes > 1) replica.stage_free = now + (end_ - now) / double(replica.lanes);
}

void Lane::begin_work(double now) {
  replica_->idle_seconds += now - free_since_;
  free_since_ = now;
}

void Lane::start(const StepPlan& plan, double now) {
  ReplicaState& replica = *replica_;
  for (const std::int32_t slot : plan.preempted) preempt(slot, plan.retracted_last);
  if (replica.pool.caches_prefixes()) hold_prefixes(plan);
  const bool only_decodes = plan.chunks.empty() && plan.admissions.empty() && plan.decodes > 0;
  if (only_decodes && plan.decodes == running().decoding) {
    steady_ = replica.settings->stepping ? Steady::no : plan.steady;
    start_steady(now);
  } else if (!plan.chunks.empty() || !plan.admissions.empty() || plan.decodes > 0) {
    start_step(plan, now);
  } else {
    // Everyone was preempted: plan again with the blocks that came free.
    check(!plan.preempted.empty(), "a plan does something");
    work_ = Work::none;
    end_ = now;
  }
}

// What the newly admitted found in the cache is held before anybody's new blocks push it out.
void Lane::hold_prefixes(const StepPlan& plan) {
  KvPool& pool = replica_->pool;
  for (const Admission& admission : plan.admissions) {
    Sequence& sequence = at(admission.slot);
    const KvPool::Match hit = pool.match(sequence.prefix, sequence.target - 1);
    pool.hold(sequence.prefix, hit, sequence.kv);
    sequence.computed = hit.tokens;
  }
}

// ---- stretches of decode steps: planned to the next thing that can happen, cut where something happens
// before, summed up at the end ----------------------------------------------------------------------

// Everybody decodes, for as long as the plan would be the same. Lanes of a pipeline share the blocks
// and take turns in the first stage: they take one step at a time.
void Lane::start_steady(double now) {
  left_ = 1;
  if (steady_ != Steady::no && replica_->lanes == 1) {
    left_ = set_.steps_that_fit(set_.steps_to_next_end(), replica_->pool.free());
  }
  start_stretch(now);
}

// A part of it on one straight line.
void Lane::start_stretch(double now) {
  work_ = Work::stretch;
  start_ = now;
  stretch_.context = set_.contexts();
  stretch_.window = set_.windows();
  stretch_.sequences = double(running().decoding);
  stretch_.growing = double(set_.filling());
  stretch_.pace = set_.pace();
  stretch_.from = running().step;
  stretch_.line = replica_->table->decode_line({.sequences = running().decoding,
                                                .context = stretch_.context,
                                                .window = stretch_.window,
                                                .longest = replica_->uneven ? set_.longest() : 0});
  const bool windows = left_ > 1 && set_.filling() > 0;
  stretch_.begin(now, left_, windows ? double(set_.tokens_to_full_window()) : kNever);
  left_ -= stretch_.steps;
  end_ = stretch_.end();
  // The first step's blocks are gone from the start on: other lanes plan meanwhile.
  taken_ = running().next_blocks;
  replica_->pool.take(taken_);
}

void Lane::cut(std::int64_t steps) {
  left_ += stretch_.steps - steps;
  stretch_.steps = steps;
  end_ = stretch_.end();
}

void Lane::split(double time) {
  if (work_ == Work::stretch && time < end_) cut(stretch_.steps_until(time));
}

void Lane::stop_at(double time) {
  split(time);
  left_ = 0;
}

void Lane::settle(double time) {
  if (work_ != Work::stretch || time >= end_) return;
  const std::int64_t blocks = set_.blocks_needed(stretch_.steps_until(time));
  replica_->pool.take(blocks - taken_);
  taken_ = blocks;
}

void Lane::end_stretch() {
  ReplicaState& replica = *replica_;
  const double n = double(stretch_.steps);
  const double seconds = stretch_.seconds(stretch_.steps);
  replica.stats->step_began(start_);
  replica.pool.take(set_.blocks_needed(stretch_.steps) - taken_);
  replica.sums->peak(replica.pool.used());
  replica.table->count_decode(stretch_.line, n, stretch_.context_sum(n), stretch_.window_sum(n),
                              seconds);
  replica.sums->ran(n, seconds, stretch_.sequences,
                    stretch_.held_seconds(double(set_.prompt_tokens())));
  gaps_.add_all(start_, stretch_.first_step, stretch_.sequences, *replica.stats,
                [this](auto visit) { each_decode(visit); });
  if (stretch_.steps > 1) {
    replica.stats->add_gaps(stretch_, 1, stretch_.steps, seconds - stretch_.first_step);
  }
  gaps_.all_decoded(end_);
  replica.tokens_made += stretch_.tokens(n) * stretch_.sequences;
  set_.advance(stretch_.steps, stretch_.sequences);
  finish_due();
}

// What the present stretch has added by `time`; a step adds all it adds at its end.
Lane::Moment Lane::at(double time) const {
  Moment moment;
  if (work_ == Work::step) moment.sequences = step_decodes_ + std::int64_t(chunks_.size());
  if (work_ == Work::stretch) moment.sequences = std::int64_t(stretch_.sequences);
  if (work_ != Work::stretch || time >= end_) return moment;
  std::int64_t done = stretch_.steps_until(time);
  if (start_ + stretch_.seconds(done) > time + kSameMoment) --done;
  if (done <= 0) return moment;
  moment.blocks = set_.blocks_needed(done + 1) - taken_;
  moment.tokens = stretch_.tokens(double(done)) * stretch_.sequences;
  return moment;
}

// ---- steps with prompts in them, or with some decodes left out ------------------------------------

template <class Visit>
void Lane::each_decode(Visit visit) {
  for (std::int32_t slot = running().first; slot >= 0; slot = at(slot).after) {
    if (at(slot).decoding) visit(at(slot));
  }
}

void Lane::start_step(const StepPlan& plan, double now) {
  ReplicaState& replica = *replica_;
  work_ = Work::step;
  start_ = now;
  steady_ = Steady::no;
  left_ = 0;
  step_decodes_ = plan.decodes;
  all_decode_ = plan.decodes == running().decoding;
  std::int64_t blocks = plan.decodes > 0 ? running().next_blocks : 0;
  BatchShape batch;
  batch.decode_sequences = batch.sampled = plan.decodes;
  batch.decode_kv_tokens = set_.contexts();
  batch.decode_window_kv_tokens = set_.windows();
  if (replica.uneven && plan.decodes > 0) batch.decode_longest = set_.longest();
  if (!all_decode_ && plan.decodes > 0) {
    blocks -= leave_out(running().decoding - plan.decodes, batch);
  }
  chunks_.assign(plan.chunks.begin(), plan.chunks.end());
  for (const Chunk& chunk : chunks_) blocks += view_->blocks_to_add(at(chunk.slot), chunk.tokens);
  replica.pool.take(blocks);
  for (const Admission& admission : plan.admissions) {
    admit(admission, now);
    if (admission.tokens > 0) chunks_.push_back({admission.slot, admission.tokens});
  }
  for (const Chunk& chunk : chunks_) {
    const Sequence& sequence = at(chunk.slot);
    add_prefill(batch, 1, chunk.tokens, sequence.computed, replica.window);
    if (sequence.computed + chunk.tokens == sequence.target) ++batch.sampled;
  }
  replica.sums->peak(replica.pool.used());
  replica.stats->step_began(now);
  const double seconds = step_seconds(batch);
  end_ = now + seconds;
  const double held = set_.contexts() - double(running().decoding) + double(set_.prompt_tokens());
  replica.sums->ran(1, seconds, double(plan.decodes) + double(chunks_.size()), held * seconds);
  if (plan.decodes == 0) return;
  if (all_decode_) {
    gaps_.add_all(now, seconds, double(plan.decodes), *replica.stats,
                  [this](auto visit) { each_decode(visit); });
    return;
  }
  std::int64_t decodes = plan.decodes;
  for (std::int32_t slot = running().first; decodes > 0; slot = at(slot).after) {
    if (!at(slot).decoding) continue;
    --decodes;
    gaps_.add_one(at(slot), end_, *replica.stats);
  }
}

// The newest decodes sit this one out. Returns the blocks they do not take.
std::int64_t Lane::leave_out(std::int64_t count, BatchShape& batch) {
  std::int64_t blocks = 0, left = count;
  for (std::int32_t slot = running().last; left > 0; slot = at(slot).before) {
    const Sequence& sequence = at(slot);
    if (!sequence.decoding) continue;
    --left;
    const std::int64_t attended = set_.context(sequence) + 1;
    batch.decode_kv_tokens -= double(attended);
    batch.decode_window_kv_tokens -= double(std::min(attended, replica_->window));
    blocks += view_->blocks_to_decode(sequence);
  }
  set_.skip(count);
  return blocks;
}

double Lane::step_seconds(const BatchShape& batch) {
  StepTable& table = *replica_->table;
  if (!chunks_.empty()) return table.run_mixed(batch);
  const DecodeLine line = table.decode_line({.sequences = batch.decode_sequences,
                                             .context = batch.decode_kv_tokens,
                                             .window = batch.decode_window_kv_tokens,
                                             .longest = batch.decode_longest});
  const double seconds = line.step(batch.decode_kv_tokens, batch.decode_window_kv_tokens);
  table.count_decode(line, 1, batch.decode_kv_tokens, batch.decode_window_kv_tokens, seconds);
  return seconds;
}

void Lane::end_step() {
  ReplicaState& replica = *replica_;
  replica.stats->step_began(start_);
  if (step_decodes_ > 0) {
    if (all_decode_) gaps_.all_decoded(end_);
    replica.tokens_made += double(step_decodes_ * running().next_tokens);
    set_.advance(1, double(step_decodes_));
  }
  for (const Chunk& chunk : chunks_) {
    Sequence& sequence = at(chunk.slot);
    sequence.computed += chunk.tokens;
    set_.read(chunk.tokens);
    replica.pool.publish(sequence.prefix, sequence.computed, sequence.kv);
    if (sequence.computed == sequence.target) begin_decoding(chunk.slot, end_);
  }
  chunks_.clear();
  if (step_decodes_ > 0) finish_due();
}

// ---- sequences come and go ------------------------------------------------------------------------

void Lane::admit(const Admission& admission, double now) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(admission.slot);
  replica.waiting.remove(admission.slot);
  if (replica.settings->ordering == Ordering::fair_share) replica.shares.serve(sequence.order);
  if (sequence.scheduled < 0) {
    sequence.scheduled = std::max(now, sequence.arrival);  // not before it by less than a moment
    sequence.cached = sequence.computed;
  }
  replica.sums->look_up(sequence.target, sequence.computed);
  std::int64_t blocks = view_->blocks_for(
      admission.whole_prompt ? sequence.target : sequence.computed + admission.tokens);
  if (admission.reserved_tokens > 0) {
    blocks = std::max(blocks, replica.pool.blocks_for(admission.reserved_tokens));
    blocks = sequence.reserved = std::min(blocks, replica.pool.total());
  } else if (admission.whole_prompt) {
    sequence.taken = blocks;
  }
  replica.pool.take(std::max(blocks, sequence.kv.shared) - sequence.kv.shared);
  set_.append(admission.slot);
  ++replica.running;
  set_.begin_reading(admission.slot);
}

// Those whose prompts were read elsewhere take the seats that are free, in the order in which they came.
void Lane::join_landed(double now) {
  ReplicaState& replica = *replica_;
  const std::int64_t seats = view().seats - running().count;
  const std::size_t joining =
      std::min(replica.landed.size(), std::size_t(std::max<std::int64_t>(0, seats)));
  for (std::size_t i = 0; i < joining; ++i) {
    const std::int32_t slot = replica.landed[i];
    Sequence& sequence = at(slot);
    --replica.parked;
    replica.parked_blocks -= view_->blocks_held(sequence) - sequence.kv.shared;
    set_.append(slot);
    ++replica.running;
    gaps_.join(sequence, now);
    set_.begin(slot);
  }
  replica.landed.erase(replica.landed.begin(), replica.landed.begin() + std::ptrdiff_t(joining));
  if (joining == 0) return;
  steady_ = Steady::no;
  left_ = 0;
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
  set_.stop_reading(slot);
  if (sequence.generated == sequence.output) return finish(slot);
  gaps_.join(sequence, now);
  set_.begin(slot);
}

// Room held and not used while it decoded, step by step, as a sum over its contexts.
void Lane::count_waste(const Sequence& sequence) {
  const double size = double(replica_->pool.block_size());
  const double first = double(sequence.decode_start), last = double(set_.context(sequence));
  const double used = (last - first) * (first + last + 1) / 2;
  if (sequence.reserved > 0) {
    const double held = (last - first) * double(sequence.reserved) * size;
    return replica_->sums->decoded_with(held - used, held);
  }
  // Sum over contexts 1..n of what is missing to a whole block.
  const auto missing = [size](double n) {
    const double blocks = double(std::int64_t(n / size));
    const double rest = n - blocks * size;
    return blocks * size * (size - 1) / 2 + rest * size - rest * (rest + 1) / 2;
  };
  const double waste = missing(last) - missing(first);
  replica_->sums->decoded_with(waste, waste + used);
}

void Lane::finish_due() {
  for (std::int32_t slot; (slot = set_.first_done()) >= 0;) finish(slot);
}

void Lane::finish(std::int32_t slot) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  const std::int64_t held = view_->blocks_held(sequence);
  if (sequence.decoding) {
    count_waste(sequence);
    set_.stop(slot);
    // Tokens past its end are of no use to anybody.
    const std::int64_t wasted = sequence.generated - sequence.output;
    sequence.generated -= wasted;
    sequence.computed -= wasted;
    replica.tokens_made -= double(wasted);
    replica.sums->wasted_tokens += double(wasted);
  }
  replica.pool.publish(sequence.prefix, sequence.computed, sequence.kv);
  if (replica.hands_over) {
    sequence.taken = held;
    ++replica.parked;
    replica.parked_blocks += held - sequence.kv.shared;
  } else {
    replica.pool.release(sequence.kv, held);
  }
  set_.remove(slot);
  --replica.running;
  --replica.outstanding;
  replica.outstanding_tokens -= sequence.prompt + sequence.output;
  if (replica.settings->ordering == Ordering::fair_share) {
    replica.shares.answered(sequence.tenant, sequence.output);
  }
  replica.departed.push_back(slot);
}

void Lane::preempt(std::int32_t slot, bool to_the_end) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  const std::int64_t held = view_->blocks_held(sequence);
  if (sequence.decoding) {
    gaps_.leave(sequence);
    count_waste(sequence);
    set_.stop(slot);
  } else {
    set_.stop_reading(slot);
  }
  replica.sums->preempted(sequence.computed);
  replica.pool.release(sequence.kv, held);
  set_.remove(slot);
  --replica.running;
  ++sequence.preemptions;
  sequence.computed = sequence.reserved = sequence.taken = 0;
  sequence.target = sequence.prompt + sequence.generated;
  if (to_the_end) {
    replica.waiting.push(slot, replica.sequences);
  } else {
    replica.waiting.push_front(slot, replica.sequences);
  }
}

void Lane::recount() {
  const std::int64_t held = set_.recount(view());
  if (replica_->lanes > 1) return;
  check(held + replica_->parked_blocks + replica_->pool.held_in_extents() == replica_->pool.used(),
        "the blocks add up");
}

}  // namespace engine
