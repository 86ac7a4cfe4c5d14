#include "engine/serving/lane.h"

#include <algorithm>
#include <cmath>

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
  running_.prefilling.clear();
  RunningSet fresh;
  fresh.prefilling.swap(running_.prefilling);
  running_ = std::move(fresh);
  view_.emplace(ReplicaView{.settings = *replica.settings,
                            .sequences = replica.sequences,
                            .waiting = replica.waiting,
                            .pool = replica.pool,
                            .running = running_,
                            .seats = replica.settings->max_num_seqs,
                            .longest = replica.longest,
                            .pipeline = replica.lanes > 1});
  const std::int64_t size = replica.settings->block_size;
  blocks_by_phase_.assign(std::size_t(size), 0);
  phase_mask_ = (size & (size - 1)) == 0 ? size - 1 : -1;
  contexts_ = windows_ = 0;
  inside_window_ = prompt_tokens_ = 0;
  finishes_.reset();
  crossings_.reset();
  longest_.reset();
  longest_stale_ = false;
  newcomers_.clear();
  last_decode_ = free_since_ = 0;
  uneven_ = false;
  work_ = Work::none;
  start_ = 0;
  end_ = kNever;
  steps_ = left_ = 0;
  steady_ = Steady::no;
  chunks_.clear();
}

const ReplicaView& Lane::view() {
  const ReplicaState& replica = *replica_;
  if (replica.lanes > 1) {
    // Batches in flight share the seats, and what is inside is spread over them.
    const std::int64_t inside = replica.running + replica.waiting.size();
    const std::int64_t seats = std::min(replica.settings->max_num_seqs, inside + replica.lanes - 1);
    view_->seats = std::max<std::int64_t>(seats / replica.lanes, 1);
    view_->others_running = replica.running > running_.count;
  }
  return *view_;
}

// Nothing to decide: everybody decoded and the queue is empty, so everybody who is left decodes on.
bool Lane::goes_on() const {
  return steady_ == Steady::until_arrival && replica_->waiting.empty() && running_.decoding > 0 &&
         running_.next_blocks <= replica_->pool.free();
}

void Lane::plan(double now) {
  ReplicaState& replica = *replica_;
  work_ = Work::none;
  end_ = kNever;
  if (running_.count == 0 && replica.waiting.empty()) return;
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
      check(running_.count == 0 && replica.running > 0, "a policy never leaves everyone waiting");
      return;  // woken again when another lane is done
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
  if (replica.pool.caches_prefixes()) {
    // What the newly admitted found in the cache is held before anybody's new blocks push it out.
    for (const Admission& admission : plan.admissions) {
      Sequence& sequence = at(admission.slot);
      const KvPool::Match hit = replica.pool.match(sequence.prefix, sequence.target - 1);
      replica.pool.hold(sequence.prefix, hit, sequence.kv);
      sequence.computed = hit.tokens;
    }
  }
  const bool only_decodes = plan.chunks.empty() && plan.admissions.empty() && plan.decodes > 0;
  if (only_decodes && plan.decodes == running_.decoding) {
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

void Lane::finish_due(double time) {
  for (std::int32_t slot; (slot = finishes_.first_at(running_.step)) >= 0;) finish(slot, time);
}

// ---- steps with prompts in them, or with some decodes left out ----------------------------------

void Lane::start_step(const StepPlan& plan, double now) {
  ReplicaState& replica = *replica_;
  work_ = Work::step;
  start_ = now;
  steady_ = Steady::no;
  left_ = 0;
  step_decodes_ = plan.decodes;
  all_decode_ = plan.decodes == running_.decoding;
  std::int64_t blocks = plan.decodes > 0 ? running_.next_blocks : 0;
  BatchShape batch;
  batch.decode_sequences = batch.sampled = plan.decodes;
  batch.decode_kv_tokens = contexts_;
  batch.decode_window_kv_tokens = windows_;
  if (replica.uneven && plan.decodes > 0) batch.decode_longest = longest_context();
  if (!all_decode_ && plan.decodes > 0) {
    // The newest decodes sit this one out.
    std::int64_t left_out = running_.decoding - plan.decodes;
    for (std::int32_t slot = running_.last; left_out > 0; slot = at(slot).before) {
      const Sequence& sequence = at(slot);
      if (!sequence.decoding) continue;
      --left_out;
      const std::int64_t attended = context(sequence) + 1;
      batch.decode_kv_tokens -= double(attended);
      batch.decode_window_kv_tokens -= double(std::min(attended, replica.window));
      if (sequence.reserved == 0) blocks -= (attended - 1) % replica.pool.block_size() == 0;
    }
    skip_decodes(running_.decoding - plan.decodes);
  }
  chunks_.assign(plan.chunks.begin(), plan.chunks.end());
  for (const Chunk& chunk : chunks_) blocks += view_->blocks_to_add(at(chunk.slot), chunk.tokens);
  replica.pool.take(blocks);
  for (const Admission& admission : plan.admissions) {
    admit(admission, now);
    if (admission.tokens > 0) chunks_.push_back({admission.slot, admission.tokens});
  }
  for (const Chunk& chunk : chunks_) {
    Sequence& sequence = at(chunk.slot);
    add_prefill(batch, 1, chunk.tokens, sequence.computed, replica.model_window);
    if (sequence.computed + chunk.tokens == sequence.target) ++batch.sampled;
  }
  replica.stats->kv_peak(replica.pool.used());
  replica.stats->step_began(now);
  double seconds = 0;
  if (chunks_.empty()) {
    const DecodeLine line = replica.table->decode_line({.sequences = plan.decodes,
                                                        .context = batch.decode_kv_tokens,
                                                        .window = batch.decode_window_kv_tokens,
                                                        .longest = batch.decode_longest});
    seconds = line.step(batch.decode_kv_tokens, batch.decode_window_kv_tokens);
    replica.table->count_decode(line, 1, batch.decode_kv_tokens, batch.decode_window_kv_tokens,
                                seconds);
  } else {
    seconds = replica.table->run_mixed(batch);
  }
  end_ = now + seconds;
  const double held = contexts_ - double(running_.decoding) + double(prompt_tokens_);
  replica.stats->ran(1, seconds, double(plan.decodes) + double(chunks_.size()), held * seconds);
  if (all_decode_ && plan.decodes > 0) {
    add_decode_gaps(now, seconds);
  } else if (plan.decodes > 0) {
    // Who decodes and who does not differ from here on: note the times one by one.
    uneven_ = true;
    std::int64_t decodes = plan.decodes;
    for (std::int32_t slot = running_.first; decodes > 0; slot = at(slot).after) {
      Sequence& sequence = at(slot);
      if (!sequence.decoding) continue;
      --decodes;
      replica.stats->add_gap(end_ - std::max(sequence.last_token, last_decode_), 1);
      sequence.last_token = end_;
    }
  }
}

void Lane::end_step() {
  ReplicaState& replica = *replica_;
  replica.stats->step_began(start_);
  if (step_decodes_ > 0) {
    if (all_decode_) last_decode_ = end_;
    replica.tokens_made += double(step_decodes_);
    const double attended_more = double(step_decodes_);
    running_.step += 1;
    contexts_ += attended_more;
    if (replica.window > 0) {
      // Those that filled their window before do not grow; skipped ones were taken out already.
      windows_ += double(inside_window_);
      cross_windows();
    }
    count_next_blocks();
  }
  for (const Chunk& chunk : chunks_) {
    Sequence& sequence = at(chunk.slot);
    sequence.computed += chunk.tokens;
    prompt_tokens_ += chunk.tokens;
    replica.pool.publish(sequence.prefix, sequence.computed, sequence.kv);
    if (sequence.computed == sequence.target) begin_decoding(chunk.slot, end_);
  }
  chunks_.clear();
  if (step_decodes_ > 0) finish_due(end_);
}

bool Lane::advance(double next_event) {
  const double now = end_;
  const Work done = work_;
  if (done == Work::stretch) {
    end_stretch();
  } else if (done == Work::step) {
    end_step();
  }
  if (done != Work::none) {
    if (replica_->audit) recount();
    work_ = Work::none;
    free_since_ = now;
    end_ = running_.count > 0 || !replica_->waiting.empty() ? now : kNever;
    // Whoever is told of an answer at this moment may ask again at once: plan after that. In a
    // pipeline, whoever waits may be taken by a lane that sits idle.
    const bool wait = !replica_->answered.empty() || next_event <= now + kSameMoment ||
                      (replica_->lanes > 1 && !replica_->waiting.empty());
    if (wait || end_ == kNever) return true;
  }
  plan(now);
  return done != Work::none;
}

}  // namespace engine
