#include "engine/serving/replica.h"

#include <algorithm>

namespace engine {

void Replica::reset(const Setup& setup) {
  state_.settings = setup.settings;
  state_.plan = policy_of(setup.settings->policy).plan;
  state_.table = setup.table;
  state_.stats = setup.stats;
  state_.number = setup.number;
  state_.lanes = setup.lanes;
  state_.longest = setup.longest;
  state_.model_window = state_.window = setup.window;
  state_.uneven = setup.table->uneven();
  state_.audit = setup.audit;
  // The sequences stay: what they hold in memory is used again.
  state_.unused.clear();
  state_.slots = 0;
  const Ordering ordering = setup.settings->ordering;
  state_.waiting.reset(ordering != Ordering::fcfs && ordering != Ordering::longest_prefix);
  state_.shares.reset();
  state_.pool.reset(setup.kv_blocks, setup.settings->block_size, setup.settings->prefix_caching);
  state_.running = state_.outstanding = state_.outstanding_tokens = 0;
  state_.tokens_made = state_.idle_seconds = state_.stage_free = 0;
  state_.answered.clear();
  lanes_.resize(std::size_t(setup.lanes));
  for (Lane& lane : lanes_) lane.reset(state_);
  next_event_ = kNever;
  next_lane_ = 0;
  ttft_limit_ = setup.ttft_limit;
  seconds_per_prompt_token_ = setup.seconds_per_prompt_token;
}

void Replica::find_next() {
  next_lane_ = 0;
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    if (lanes_[i].end() < lanes_[next_lane_].end()) next_lane_ = i;
  }
  next_event_ = lanes_[next_lane_].end();
}

void Replica::advance(double next_event) {
  const double now = next_event_;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (i != next_lane_) next_event = std::min(next_event, lanes_[i].end());
  }
  const bool ran = lanes_[next_lane_].advance(next_event);
  if (ran && lanes_.size() > 1 && !state_.waiting.empty()) {
    // Blocks or seats may have come free: whoever sits idle looks again.
    for (Lane& lane : lanes_) lane.wake(now);
  }
  find_next();
}

double Replica::order_of(const Request& request) {
  switch (state_.settings->ordering) {
    case Ordering::priority:
      // Levels lie further apart than any simulation is long.
      return double(request.priority) * 1e9 + request.arrival;
    case Ordering::slo:
      // The slack that is left when it is looked at falls alike for all: only the start differs.
      return request.arrival + ttft_limit_ * double(1 + request.priority) -
             seconds_per_prompt_token_ * double(request.prompt);
    case Ordering::fair_share:
      return state_.shares.place(request.tenant, request.prompt);
    case Ordering::fcfs:
    case Ordering::longest_prefix:
      break;
  }
  return request.arrival;
}

bool Replica::enqueue(const Request& request) {
  const std::int64_t largest = request.prompt + request.output - 1;
  if (state_.pool.blocks_for(largest) > state_.pool.total() ||
      request.prompt + request.output > state_.longest) {
    return false;
  }
  if (state_.unused.empty()) {
    state_.unused.push_back(state_.slots++);
    if (state_.sequences.size() < std::size_t(state_.slots)) state_.sequences.emplace_back();
  }
  const std::int32_t slot = state_.unused.back();
  state_.unused.pop_back();
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  sequence.number = request.number;
  sequence.session = request.session;
  sequence.client = request.client;
  sequence.prompt = sequence.target = request.prompt;
  sequence.output = request.output;
  sequence.priority = request.priority;
  sequence.tenant = request.tenant;
  sequence.arrival = request.arrival;
  sequence.order = order_of(request);
  sequence.scheduled = sequence.first_token = -1;
  sequence.last_token = 0;
  sequence.generated = sequence.computed = sequence.cached = 0;
  sequence.reserved = sequence.taken = 0;
  sequence.preemptions = 0;
  sequence.decoding = false;
  sequence.closes = request.closes;
  if (state_.pool.caches_prefixes()) sequence.prefix = request.prefix;
  state_.waiting.push(slot, state_.sequences);
  ++state_.outstanding;
  state_.outstanding_tokens += request.prompt + request.output;
  for (Lane& lane : lanes_) {
    lane.wake(request.arrival);
    lane.interrupt(request.arrival);
  }
  find_next();
  return true;
}

void Replica::split(double time) {
  for (Lane& lane : lanes_) lane.split(time);
  find_next();
}

void Replica::settle(double time) {
  for (Lane& lane : lanes_) lane.settle(time);
}

double Replica::idle_seconds(double until) const {
  double sum = state_.idle_seconds;
  for (const Lane& lane : lanes_) {
    if (!lane.working()) sum += until - lane.free_since();
  }
  return sum;
}

TimelineRow Replica::row_at(double time, double& tokens_before) const {
  TimelineRow row;
  row.time = Seconds{time};
  row.replica = state_.number;
  row.waiting = state_.waiting.size();
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
