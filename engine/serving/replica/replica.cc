#include "engine/serving/replica/replica.h"

#include <algorithm>
#include <cmath>

#include "engine/base/random.h"
#include "engine/serving/sequences/whole_moments.h"

namespace engine {

void Replica::reset(const Setup& setup) {
  const ServingSettings& settings = *setup.common->settings;
  const std::int64_t state = setup.common->state;
  state_.common = setup.common;
  state_.number = setup.number;
  state_.group = setup.group;
  state_.halted = false;
  state_.front_end = setup.common->front_end;
  state_.admissions.reset();
  state_.rooms.reset();
  state_.entries.reset();
  if (!state_.sequences.has_room()) state_.sequences.take_room(kUsualSequences);
  // The sequences stay: what they hold in memory is used again. Not what they held of the KV pool, where a run was ended
  // before they were.
  for (std::int32_t slot = 0; slot < state_.slots; ++slot) {
    state_.sequences[std::size_t(slot)].kv.forget();
    state_.sequences[std::size_t(slot)].whereabouts = Whereabouts::nowhere;
  }
  state_.inbox.reset(settings, setup.lanes.size() == 1 && setup.group == nullptr);
  empty_queues();
  state_.shares.reset();
  state_.pool.reset(setup.kv_blocks, settings.block_size, settings.prefix_caching);
  if (state > 0) state_.pool.keep_states(state / settings.block_size);
  if (settings.retention.policy == Retention::ttl) {
    state_.pool.keep_for(settings.retention.ttl.value);
  }
  if (setup.holders != nullptr) state_.pool.report_to(*setup.holders, setup.place);
  state_.tokens_made = state_.idle_seconds = 0;
  lower_.reset(setup.tiers, settings.tiers.write, setup.store, state_.pool);
  lanes_ = setup.lanes;
  state_.first_lane = lanes_.data();
  for (Lane& lane : lanes_) lane.reset(state_);
  next_event_ = kNever;
  next_lane_ = turn_ = lanes_.data();
}

void Replica::empty_queues() {
  state_.forking.clear();
  state_.inbox.clear();
  const Ordering ordering = state_.common->settings->ordering;
  state_.waiting.reset(ordering != Ordering::fcfs && ordering != Ordering::longest_prefix);
  state_.arriving.reset(false);
  state_.kept.clear();
  state_.awaiting = 0;
  state_.landed.clear();
  state_.departed.clear();
  state_.slots = 0;
  state_.first_unused = -1;
  state_.running = state_.outstanding = state_.outstanding_tokens = 0;
  state_.parked = state_.parked_blocks = state_.holders = state_.loading = 0;
  state_.held_waiting = 0;
  state_.stage_free = 0;
}

bool Replica::end_work() {
  now_ = next_event_;
  turn_ = next_lane_;
  return turn_->end_work();
}

bool Replica::others_wait_until_after(double now) const {
  for (const Lane& lane : lanes_) {
    if (&lane != turn_ && lane.end() <= now + kSameMoment) return false;
  }
  return state_.waiting.empty();
}

double Replica::place_by_order(const Sequence& sequence, std::int64_t tokens, double now) {
  const Ordering ordering = state_.common->settings->ordering;
  // Only these orders ask for it, and a look into the cache takes time.
  const std::int64_t cached =
      ordering == Ordering::slo ? cached_tokens(sequence.prefix, sequence.prompt, now) : 0;
  const bool fair = ordering == Ordering::fair_share;
  return prospects().order_of(sequence, cached,
                              fair ? state_.shares.place(sequence.tenant, tokens) : 0);
}

std::int64_t Replica::predicted_output(std::int64_t number, std::int64_t output) const {
  const double error = state_.common->settings->prediction_error;
  if (error <= 0 || !router_of(state_.common->settings->router).predicts) return output;
  // Lognormal about the real one.
  const double z = normal(state_.common->seed, Stream::predictions, std::uint64_t(number));
  return std::max<std::int64_t>(
      1, std::int64_t(double(output) * std::exp(error * z - error * error / 2)));
}

void Replica::add_slot() {
  const std::int32_t slot = state_.slots++;
  if (state_.sequences.size() < std::size_t(state_.slots)) state_.sequences.add();
  put_back(slot);
}

namespace {

// Nothing has happened to it yet.
void begin_anew(Sequence& sequence) {
  sequence.scheduled = sequence.first_token = -1;
  sequence.last_token = 0;
  sequence.generated = sequence.computed = sequence.cached = 0;
  sequence.reserved = sequence.taken = 0;
  sequence.preemptions = 0;
  sequence.attempts = 1;
  sequence.from_replica = sequence.from_slot = -1;
  sequence.to_replica = sequence.to_slot = -1;
  sequence.received = sequence.read = -1;
  sequence.carried = 0;
  sequence.had = sequence.found_again = 0;
  sequence.decoding = sequence.goes_on = false;
}

}  // namespace

void begin(Sequence& sequence, const Request& request) {
  sequence.number = request.number;
  sequence.session = request.session;
  sequence.client = request.client;
  sequence.prompt = sequence.target = request.prompt;
  sequence.asked = request.output;
  sequence.priority = request.priority;
  sequence.tenant = request.tenant;
  sequence.service_class = request.service_class;
  sequence.history = request.history;
  sequence.adapter = request.adapter;
  sequence.branches = std::int32_t(request.samples);
  sequence.answers = -1;
  sequence.others_made = 0;
  sequence.arrival = request.arrival;
  begin_anew(sequence);
  sequence.closes = request.closes;
  if (!(sequence.prefix.empty() && request.prefix.empty())) sequence.prefix.assign(request.prefix);
}

std::int32_t Replica::enqueue(const Request& request, std::int64_t output, Awaited awaits) {
  const std::int32_t slot = new_slot();
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  begin(sequence, request);
  count_in(sequence, output);
  sequence.order = enter_queue(sequence, sequence.target, request.arrival);
  queue_up(slot, awaits, request.arrival);
  return slot;
}

void Replica::count_in(Sequence& sequence, std::int64_t output) {
  sequence.output = output;
  sequence.predicted = predicted_output(sequence.number, output);
  sequence.loaded = -1;
  sequence.loads_with_room = false;
  sequence.brought = {};
  ++state_.outstanding;
  state_.outstanding_tokens += sequence.prompt + sequence.predicted;
}

void Replica::fork(std::int32_t slot, std::span<const std::int64_t> outputs, std::int32_t answers,
                   double now) {
  const bool come_later = state_.common->policy->answers_come_later;
  for (const std::int64_t output : outputs) {
    const std::int32_t other = new_slot();
    Sequence& sequence = state_.sequences[std::size_t(other)];
    sequence = state_.sequences[std::size_t(slot)];
    sequence.kv.forget();
    sequence.asked = output;
    sequence.target = sequence.prompt;
    sequence.branches = 1;
    sequence.answers = answers;
    begin_anew(sequence);
    count_in(sequence, output);
    if (come_later) {
      join_queue(other, now);
    } else {
      put_first(other);
    }
  }
  if (!come_later) stop_lanes(now);
}

void Replica::hold_back(std::int32_t slot, double now) {
  Lane& lane = lanes_[0];
  state_.inbox.add(slot, sequence(slot).target, lane.steps_to_boundary(now),
                   lane.running().decoding);
  lane.wake(now);
  lane.end_where_taken_in();
  find_next();
}

void Replica::stop_lanes(double now) {
  for (Lane& lane : lanes_) {
    lane.wake(now);
    lane.stop_at(now);
  }
  find_next();
}

void Replica::split(double time) {
  for (Lane& lane : lanes_) lane.split(time);
  find_next();
}

std::int64_t Replica::cached_tokens(std::span<const PrefixExtent> prefix, std::int64_t prompt,
                                    double time) {
  if (!state_.pool.caches_prefixes()) return 0;
  settle(time);
  return state_.pool.match(prefix, prompt - 1).tokens;
}

double Replica::idle_seconds(double until) const {
  double sum = state_.idle_seconds;
  if (state_.halted && at_rest()) return sum;
  for (const Lane& lane : lanes_) {
    if (!lane.working()) sum += until - lane.free_since();
  }
  return sum;
}

TimelineRow Replica::row_at(double time, double& tokens_before) const {
  TimelineRow row;
  row.time = Seconds{time};
  row.replica = state_.number;
  row.role = state_.common->role;
  row.waiting = waiting();
  row.running = state_.running;
  std::int64_t blocks = state_.pool.used();
  double tokens = state_.tokens_made;
  for (const Lane& lane : lanes_) {
    row.decoding += lane.running().decoding;
    const Lane::Moment moment = lane.at(time);
    blocks += moment.blocks;
    tokens += moment.tokens;
    row.batch += moment.sequences;
  }
  row.kv_blocks = blocks;
  row.kv_use = double(blocks) / double(state_.pool.total());
  row.output = TokensPerSecond{tokens - tokens_before};  // the caller knows how long it was
  tokens_before = tokens;
  return row;
}

}  // namespace engine
