#include "engine/serving/replica.h"

#include <algorithm>

namespace engine {

void Replica::reset(const Setup& setup) {
  state_.settings = setup.settings;
  state_.plan = policy_of(setup.settings->policy).plan;
  state_.table = setup.table;
  state_.stats = setup.stats;
  state_.sums = setup.sums;
  state_.number = setup.number;
  state_.lanes = setup.lanes;
  state_.longest = setup.longest;
  state_.window = setup.window;
  state_.pace = setup.pace;
  state_.hands_over = setup.hands_over;
  state_.tells_first_token = setup.tells_first_token;
  state_.role = setup.role;
  state_.uneven = setup.table->uneven();
  state_.audit = setup.audit;
  // The sequences stay: what they hold in memory is used again. Not what they held of the KV pool, where a run was ended
  // before they were.
  for (std::int32_t slot = 0; slot < state_.slots; ++slot) {
    state_.sequences[std::size_t(slot)].kv.forget();
  }
  state_.unused.clear();
  state_.slots = 0;
  const Ordering ordering = setup.settings->ordering;
  state_.waiting.reset(ordering != Ordering::fcfs && ordering != Ordering::longest_prefix);
  state_.shares.reset();
  state_.pool.reset(setup.kv_blocks, setup.settings->block_size, setup.settings->prefix_caching);
  if (setup.holders != nullptr) state_.pool.report_to(*setup.holders, setup.place);
  state_.running = state_.outstanding = state_.outstanding_tokens = 0;
  state_.tokens_made = state_.idle_seconds = state_.stage_free = 0;
  state_.parked = state_.parked_blocks = 0;
  state_.arriving.reset(false);
  state_.landed.clear();
  state_.departed.clear();
  state_.forking.clear();
  host_.reset(setup.settings->prefix_caching ? setup.host.blocks : 0);
  disk_.reset(setup.settings->prefix_caching ? setup.disk.blocks : 0);
  host_way_ = setup.host;
  disk_way_ = setup.disk;
  host_free_ = disk_free_ = 0;
  seconds_to_read_a_token_ = setup.seconds_to_read_a_token;
  const bool at_once = setup.settings->tiers.write == TierWrite::through;
  if (host_.exists()) {
    state_.pool.copy_down_to(host_, at_once);
    host_.spill_to(disk_.exists() ? &disk_ : nullptr);
  } else if (disk_.exists()) {
    state_.pool.copy_down_to(disk_, at_once);
  }
  lanes_.resize(std::size_t(setup.lanes));
  for (Lane& lane : lanes_) lane.reset(state_);
  next_event_ = kNever;
  next_lane_ = 0;
  ttft_limit_ = setup.ttft_limit;
  seconds_per_prompt_token_ = setup.seconds_per_prompt_token;
}

void Replica::find_next() {
  next_lane_ = 0;
  for (std::size_t i = 1; i < std::size_t(state_.lanes); ++i) {
    if (lanes_[i].end() < lanes_[next_lane_].end()) next_lane_ = i;
  }
  next_event_ = lanes_[next_lane_].end();
}

bool Replica::end_work() {
  now_ = next_event_;
  turn_ = next_lane_;
  return lanes_[turn_].end_work();
}

bool Replica::others_wait_until_after(double now) const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (i != turn_ && lanes_[i].end() <= now + kSameMoment) return false;
  }
  return state_.waiting.empty();
}

void Replica::end_turn(bool ran) {
  if (ran && state_.lanes > 1 && !state_.waiting.empty()) {
    // Blocks or seats may have come free: whoever sits idle looks again.
    for (Lane& lane : lanes_) lane.wake(now_);
  }
  find_next();
}

double Replica::order_of(const Sequence& request, std::int64_t tokens) {
  switch (state_.settings->ordering) {
    case Ordering::priority:
      // Levels lie further apart than any simulation is long.
      return double(request.priority) * 1e9 + request.arrival;
    case Ordering::slo:
      // The slack that is left when it is looked at falls alike for all: only the start differs.
      return request.arrival + ttft_limit_ * double(1 + request.priority) -
             seconds_per_prompt_token_ * double(request.prompt);
    case Ordering::fair_share:
      return state_.shares.place(request.tenant, tokens);
    case Ordering::fcfs:
    case Ordering::longest_prefix:
      break;
  }
  return request.arrival;
}

bool Replica::fits(std::int64_t prompt, std::int64_t output) const {
  const std::int64_t largest = prompt + output - 1 + state_.pace.past_end();
  return state_.pool.blocks_for(largest) <= state_.pool.total() &&
         prompt + output <= state_.longest;
}

std::int32_t Replica::new_slot() {
  if (state_.unused.empty()) {
    state_.unused.push_back(state_.slots++);
    if (state_.sequences.size() < std::size_t(state_.slots)) state_.sequences.emplace_back();
  }
  const std::int32_t slot = state_.unused.back();
  state_.unused.pop_back();
  return slot;
}

std::int32_t Replica::enqueue(const Request& request, std::int64_t output, Adapter adapter) {
  const std::int32_t slot = new_slot();
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  sequence.number = request.number;
  sequence.session = request.session;
  sequence.client = request.client;
  sequence.prompt = sequence.target = request.prompt;
  sequence.output = output;
  sequence.asked = request.output;
  sequence.priority = request.priority;
  sequence.tenant = request.tenant;
  sequence.adapter = request.adapter;
  sequence.branches = std::int32_t(request.samples);
  sequence.answers = -1;
  sequence.others_made = 0;
  sequence.arrival = request.arrival;
  sequence.order = order_of(sequence, request.prompt);
  begin_anew(sequence);
  sequence.closes = request.closes;
  if (sequence.prefix.size() + request.prefix.size() > 0) sequence.prefix = request.prefix;
  ++state_.outstanding;
  state_.outstanding_tokens += request.prompt + output;
  sequence.awaits_adapter = adapter == Adapter::awaited;
  if (!sequence.awaits_adapter) join_queue(slot, request.arrival);
  return slot;
}

void Replica::begin_anew(Sequence& sequence) {
  sequence.scheduled = sequence.first_token = -1;
  sequence.last_token = 0;
  sequence.generated = sequence.computed = sequence.cached = 0;
  sequence.reserved = sequence.taken = 0;
  sequence.preemptions = 0;
  sequence.from_replica = sequence.from_slot = -1;
  sequence.received = sequence.read = -1;
  sequence.carried = 0;
  sequence.decoding = false;
  sequence.loaded = -1;
}

void Replica::join_queue(std::int32_t slot, double now) {
  state_.sequences[std::size_t(slot)].awaits_adapter = false;
  state_.waiting.push(slot, state_.sequences);
  for (Lane& lane : lanes_) {
    lane.wake(now);
    lane.interrupt(now);
  }
  find_next();
}

void Replica::fork(std::int32_t slot, std::int64_t output, std::int32_t answers, double now) {
  const std::int32_t other = new_slot();
  Sequence& sequence = state_.sequences[std::size_t(other)];
  const Sequence& first = state_.sequences[std::size_t(slot)];
  sequence = first;
  sequence.kv = {};
  sequence.output = sequence.asked = output;
  sequence.target = sequence.prompt;
  sequence.branches = 1;
  sequence.answers = answers;
  begin_anew(sequence);
  ++state_.outstanding;
  state_.outstanding_tokens += sequence.prompt + output;
  join_queue(other, now);
}

// ---- tiers below the cache --------------------------------------------------------------------------

// No more than these at once: what is loaded long before it is read may be given up again.
constexpr std::size_t kMostLoads = 2;

std::span<const std::int32_t> Replica::start_loads(double now) {
  loading_.clear();
  while (!state_.waiting.empty() && loading_.size() < kMostLoads) {
    const std::int32_t slot = state_.waiting.at(0);
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    // Looked at once, when it is the first; whoever was preempted reads again.
    if (sequence.loaded >= 0 || sequence.scheduled >= 0) break;
    sequence.loaded = 0;
    if (!start_load(sequence, now)) break;
    state_.waiting.remove(slot);
    loading_.push_back(slot);
  }
  return loading_;
}

bool Replica::start_load(Sequence& sequence, double now) {
  for (Lane& lane : lanes_) lane.settle(now);
  state_.pool.look_below(sequence.prefix, sequence.prompt - 1, host_, disk_, below_);
  const double size = double(state_.pool.block_size());
  const double from_host = double(below_.upper) * size, from_disk = double(below_.lower) * size;
  if (from_host + from_disk <= 0) return false;
  // One load after the other; the two ways at the same time.
  double host_end = now, disk_end = now;
  if (from_host > 0) {
    host_end =
        std::max(now, host_free_) + host_way_.latency + from_host * host_way_.seconds_per_token;
  }
  if (from_disk > 0) {
    disk_end =
        std::max(now, disk_free_) + disk_way_.latency + from_disk * disk_way_.seconds_per_token;
  }
  const double end = std::max(host_end, disk_end);
  if (end - now >= (from_host + from_disk) * seconds_to_read_a_token_) return false;
  if (from_host > 0) host_free_ = host_end;
  if (from_disk > 0) disk_free_ = disk_end;
  sequence.loaded = end;
  state_.sums->loaded(from_host, from_disk, end - now);
  return true;
}

void Replica::finish_load(std::int32_t slot, double now) {
  const Sequence& sequence = state_.sequences[std::size_t(slot)];
  for (Lane& lane : lanes_) lane.settle(now);
  // What was given up below meanwhile is read again.
  state_.pool.look_below(sequence.prefix, sequence.prompt - 1, host_, disk_, below_);
  state_.pool.restore(sequence.prefix, below_.blocks);
  for (const PrefixExtent& part : sequence.prefix) {
    host_.touch(part.key);
    disk_.touch(part.key);
  }
  state_.waiting.push_front(slot, state_.sequences);
  for (Lane& lane : lanes_) {
    lane.wake(now);
    lane.interrupt(now);
  }
  find_next();
}

void Replica::expect(const Sequence& read, std::int32_t replica, std::int32_t slot, double now) {
  const std::int32_t here = new_slot();
  Sequence& sequence = state_.sequences[std::size_t(here)];
  sequence = read;
  sequence.kv = {};
  sequence.output = read.asked;
  sequence.target = read.prompt;
  sequence.computed = sequence.reserved = sequence.taken = sequence.carried = 0;
  sequence.order = order_of(sequence, 0);
  sequence.read = read.first_token;
  sequence.waited_for_room = false;
  sequence.from_replica = replica;
  sequence.from_slot = slot;
  state_.arriving.push(here, state_.sequences);
  ++state_.outstanding;
  state_.outstanding_tokens += sequence.prompt + sequence.output;
  stop_lanes(now);
}

std::int32_t Replica::make_room() {
  // Those that were preempted here come first.
  if (state_.arriving.empty() || !state_.waiting.empty()) return -1;
  const std::int32_t slot = state_.arriving.at(0);
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  KvPool& pool = state_.pool;
  // A block each is left to those that decode: otherwise whoever lands would push one of them out. This
  // does not change before one of them is done, so a stretch need not be cut to ask again.
  std::int64_t left_free = 0;
  for (const Lane& lane : lanes_) left_free += lane.running().growing;
  const ReplicaView& view = lanes_[turn_].view();
  const KvPool::Match hit = pool.match(sequence.prefix, sequence.prompt);
  const std::int64_t free = pool.free() - view.margin() - left_free;
  const bool reserves = policy_of(state_.settings->policy).reserves;
  const std::int64_t room = sequence.prompt + sequence.output - 1 + state_.pace.most() - 1;
  if (view.blocks_to_admit(hit, reserves ? room : sequence.prompt) > free) {
    sequence.waited_for_room = true;
    return -1;
  }
  if (reserves) sequence.reserved = view.blocks_for(room);
  state_.arriving.remove(slot);
  pool.hold(sequence.prefix, hit, sequence.kv);
  sequence.computed = sequence.prompt;
  sequence.carried = sequence.prompt - hit.tokens;
  const std::int64_t blocks = view.blocks_held(sequence) - sequence.kv.shared;
  pool.take(blocks);
  ++state_.parked;
  state_.parked_blocks += blocks;
  state_.sums->peak(pool.used());
  return slot;
}

void Replica::receive(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  sequence.received = now;
  if (state_.tells_first_token) sequence.first_token = sequence.last_token = now;
  const std::int64_t shared = sequence.kv.shared;
  state_.pool.publish(sequence.prefix, sequence.computed, sequence.kv);
  state_.parked_blocks -= sequence.kv.shared - shared;
  state_.landed.push_back(slot);
  stop_lanes(now);
}

void Replica::release(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  --state_.parked;
  state_.parked_blocks -= sequence.taken - sequence.kv.shared;
  state_.pool.release(sequence.kv, sequence.taken);
  forget(slot);
  stop_lanes(now);
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

std::int64_t Replica::cached_tokens(const Request& request, double time) {
  if (!state_.pool.caches_prefixes()) return 0;
  for (Lane& lane : lanes_) lane.settle(time);
  return state_.pool.match(request.prefix, request.prompt - 1).tokens;
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
  row.role = state_.role;
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
