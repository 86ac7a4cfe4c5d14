// One engine instance: a queue, a KV pool, and the lanes that work on them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/fetch_lines.h"
#include "engine/serving/figures/serving_rows.h"
#include "engine/serving/lane/lane.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/replica/lower_tiers.h"

namespace engine {

// A request as a sequence that nobody has begun.
void begin(Sequence& sequence, const Request& request);

// There is room for so many in a replica from the start. Who needs more has it elsewhere, in small pages of memory: with many
// replicas that should be few, and with a dozen inside on average nearly all have at some time had more than 20.
constexpr std::size_t kUsualSequences = 40;

// With many replicas every line of memory has to be fetched anew: what is asked for together stands in few.
class alignas(64) Replica {
 public:
  struct Setup {
    const PoolConstants* common = nullptr;
    std::int32_t number = 0;
    std::int32_t place = 0;          // in its pool
    std::span<Lane> lanes = {};      // a pipeline stage each, with a batch in flight
    LockstepGroup* group = nullptr;  // it steps with; null: with nobody
    std::int64_t kv_blocks = 1;
    PrefixHolders* holders = nullptr;  // where a router looks for prefixes
    TierSetups tiers = {};
    SharedStore* store = nullptr;  // of its pool; null: there is none
  };
  // Before it is reset: its sequences stand here.
  void use_room(std::span<Sequence> room) {
    state_.sequences.use(room);
    state_.slots = std::min(state_.slots, std::int32_t(state_.sequences.size()));
  }
  void reset(const Setup& setup);
  // What its turn looks at; and that with what it looks at where prefixes are cached.
  void fetch_own_lines() const { fetch_lines(this, state_.pool.behind_counts()); }
  void fetch_own_and_cache() const { fetch_lines(this, state_.pool.behind_cache()); }
  // Where the next request will stand, and who is the first in the queue.
  void fetch_new_slot() const {
    if (state_.first_unused < 0) return;
    const Sequence* const there = state_.sequences.data() + state_.first_unused;
    fetch_lines(there, there + 1);
  }
  void fetch_first_in_queue() const {
    if (state_.waiting.empty()) return;
    const Sequence& first = sequence(state_.waiting.at(0));
    first.fetch_running();
    if (state_.pool.caches_prefixes()) first.fetch_prefix();
  }
  // Once those are there: what the cache has of its prompt, and where it keeps what somebody in it publishes or holds.
  void fetch_cache_for_queue() const {
    if (!state_.waiting.empty()) state_.pool.fetch(sequence(state_.waiting.at(0)).prefix);
  }
  void fetch_cache_of(std::int32_t slot) const {
    state_.pool.fetch_published(sequence(slot).prefix, sequence(slot).kv);
  }

  // When one of its lanes has something to do.
  double next_event() const { return next_event_; }
  // That is the end of work; otherwise only the time to plan.
  bool working() const { return next_lane_->ends_work(); }

  // ---- its turn, at `next_event()`, in this order -----------------------------------------------
  // Where others see what it gives up: a step inside its present work takes blocks, and that is all.
  bool only_takes_blocks() {
    if (!next_lane_->take_next_blocks()) return false;
    find_next();
    return true;
  }
  // A store that others see, too, hears of all uses of it until `now`, or has; and from then on it does so at once.
  void tell_uses(double now) {
    for (Lane& lane : lanes_) lane.settle(now);
    tell_no_more();
  }
  void tell_no_more() { state_.pool.expect_to_take_nothing(); }
  void tell_at_once(double now) {
    for (Lane& lane : lanes_) lane.tell_at_once(now);
    find_next();
  }
  // Ends what ran, if something did, and lists those that are done here.
  bool end_work();
  FewSlots& departed() { return state_.departed; }
  // Whether it plans in the same turn: only where nothing else, at or before `next_event`, could bring
  // something to plan for.
  bool plans_now(double next_event) const {
    const bool work = turn_->end() < kNever && next_event > now_ + kSameMoment;
    return work && (lanes_.size() == 1 || others_wait_until_after(now_));
  }
  void plan() { turn_->plan(now_); }
  // Where others step with it: a turn for which it is asked, in which it may join them, and the wait for one.
  void begin_turn(double now) {
    now_ = now;
    turn_ = lanes_.data();
  }
  // A plan put everybody back, and there is something to plan for still.
  bool plans_again() const { return !lanes_[0].working() && lanes_[0].end() <= now_; }
  // Where its present work is over: its sequences only decode on, and nobody waits to be let in from elsewhere.
  bool only_goes_on() const { return lanes_[0].has_next_part() && !expects(); }
  void go_on(double now) {
    begin_turn(now);
    lanes_[0].begin_next_part(now);
  }
  void wait_until(double time) {
    lanes_[0].wait_until(time);
    find_next();
  }
  void end_turn(bool ran) {
    if (ran && lanes_.size() > 1 && !state_.waiting.empty()) wake_all();
    find_next();
  }

  // Turns of a pipeline whose lanes only decode on, as long as nothing else happens: before `until`. Returns how many.
  std::int64_t decode_on(double until);
  double now() const { return now_; }
  // When clients have the tokens that it has made until `now`.
  double told(double now) const { return state_.front_end.told(now); }

  // ---- requests ---------------------------------------------------------------------------------
  // False where a request could never be served: prompt and output are longer than the model or the KV pool allows.
  bool fits(std::int64_t prompt, std::int64_t output) const {
    return prompt + output <= most_tokens();
  }
  std::int64_t most_tokens() const { return state_.common->most_tokens; }
  // Takes a request that fits, of which `output` tokens are made here. It is not served before what it waits for is there
  // (`join_queue`). Returns its slot.
  std::int32_t enqueue(const Request& request, std::int64_t output, Awaited awaits);
  [[gnu::always_inline]] void join_queue(std::int32_t slot, double now) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    if (sequence.awaits != Awaited::nothing) --state_.awaiting;
    sequence.awaits = Awaited::nothing;
    sequence.whereabouts = Whereabouts::waiting;
    state_.waiting.push(slot, state_.sequences);
    for (Lane& lane : lanes_) {
      lane.wake(now);
      lane.interrupt(now);
    }
    find_next();
  }
  // What a request waits for outside the queue of who reads it, in seconds from now.
  struct Elsewhere {
    double images = 0;        // until they are there
    double entry = 0;         // until who writes, and tells the first token, has room and a seat
    double carrying = 0;      // of its KV to there
    bool sheds_late = false;  // who writes turns late requests away
  };
  // Whether a request is to be turned away: there is too much before it, in the queue or among those that wait for blocks.
  bool sheds(const Request& request, double now, const Elsewhere& elsewhere);
  // The latter, whose prompts others read in so many seconds.
  bool sheds_before_room(const Request& request, double now, double reading,
                         const Elsewhere& elsewhere) const;
  // Nobody is before it, but it has to wait until replicas like this one take requests.
  bool sheds_after(double wait, const Request& request, double reading) const {
    return sheds_behind({.wait = wait, .reading = reading}, {}, request, request.arrival);
  }
  // Of what others read: how long one more would wait for room and a seat here, with so many before it that are not read yet.
  double entry_wait(std::int64_t unread) const;
  // Whether as many wait for that as may.
  bool too_many_enter() const;
  // Those that wait to be read here, or are being read.
  std::int64_t unread() const { return waiting() + state_.running; }
  // Prompts that were read with the last event, of which several answers are to be generated.
  FewSlots& forking() { return state_.forking; }
  // The other answers to the request in `slot`, of so many tokens: they share the prompt's KV.
  void fork(std::int32_t slot, std::span<const std::int64_t> outputs, std::int32_t answers,
            double now);
  bool has_tiers() const { return lower_.any(); }
  // A request that is about to be let in, and of whose prompt a tier below has more than the cache, sooner than it could be
  // read, waits for room and then steps aside until that is there (`Sequence::loaded`). Returns those that just did. The queue
  // is closed behind whom this was asked for.
  std::span<const std::int32_t> start_loads(double now) {
    loading_.clear();
    state_.waiting.close_after(kLookedAt);
    if (!state_.waiting.empty()) look_for_loads(now);
    return loading_;
  }
  // What it waits for is there: it is the first in the queue again.
  void finish_load(std::int32_t slot, double now);
  const Sequence& sequence(std::int32_t slot) const { return state_.sequences[std::size_t(slot)]; }
  Sequence& sequence(std::int32_t slot) { return state_.sequences[std::size_t(slot)]; }
  // Nobody asks for it any more.
  void forget(std::int32_t slot) {
    state_.sequences[std::size_t(slot)].whereabouts = Whereabouts::nowhere;
    put_back(slot);
  }

  // ---- KV that is carried from one replica to another -------------------------------------------
  // A sequence whose prompt was read in `slot` of `replica`, or will be somewhere (-1), is to go on here, in the slot that is
  // returned. It takes no blocks before what it waits for is there (`ask_for_room`).
  std::int32_t expect(const Sequence& sequence, std::int32_t replica, std::int32_t slot, double now,
                      Awaited awaits);
  void ask_for_room(std::int32_t slot, double now);
  // The replica that expects the KV of a sequence that departed, and the slot there.
  void leads_to(std::int32_t slot, std::int32_t replica, std::int32_t there) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    sequence.to_replica = replica;
    sequence.to_slot = there;
  }
  bool expects() const { return !state_.arriving.empty(); }
  // Takes blocks for the first of those expected; -1: there are too few, or somebody comes before it.
  std::int32_t make_room();
  // Blocks were set aside for it before its prompt was read, which now has been in `slot` of `replica`.
  void was_read(std::int32_t slot_here, const Sequence& read, std::int32_t replica,
                std::int32_t slot);
  // The KV of that sequence is there.
  void receive(std::int32_t slot, double now);
  // The KV of a sequence that departed is not needed here any more.
  void release(std::int32_t slot, double now);

  // ---- failures ---------------------------------------------------------------------------------
  // It fails: its lanes come to rest at their next step boundaries.
  void halt(double now);
  bool halted() const { return state_.halted; }
  bool at_rest() const;
  // At rest, everybody in it loses what they had: they are handed out in the order of their arrival, with their slots, and
  // its memory is empty.
  struct Stranded {
    Sequence sequence;
    std::int32_t slot = -1;
  };
  void strand(double now, std::vector<Stranded>& out);
  // It has nothing left, and was idle, not down: others that fail with it had a step to end.
  void waited_at_rest(double until);
  // It takes requests again.
  void restart(double now);
  // Nobody is inside, and no KV is on its way from it.
  bool empty() const { return state_.outstanding == 0 && state_.parked == 0; }
  // It is given back, empty: what takes its place begins with nothing in its cache.
  void go_off(double now);
  // One that was stranded elsewhere begins again here, to make tokens up to its `output`-th.
  std::int32_t take_over(const Sequence& sequence, std::int64_t output, double now, Awaited awaits);
  // One that is expected here, or whose KV is under way, will not come; or it has come, and there is nothing to write.
  void expect_no_more(std::int32_t slot, double now);

  // Long stretches are cut at the first step boundary from `time` on.
  void split(double time);

  std::int64_t outstanding() const { return state_.outstanding; }
  std::int64_t outstanding_tokens() const { return state_.outstanding_tokens; }
  // Prompt tokens of a request that its cache holds at `time`, inside stretches, too.
  std::int64_t cached_tokens(const Request& request, double time) {
    return cached_tokens(request.prefix, request.prompt, time);
  }
  std::int64_t cached_tokens(std::span<const PrefixExtent> prefix, std::int64_t prompt,
                             double time);
  std::int64_t waiting() const {
    return state_.waiting.size() + state_.arriving.size() + state_.awaiting + state_.loading;
  }
  const KvPool& pool() const { return state_.pool; }
  // Of all lanes; work that is not done yet counts neither as idle nor as busy.
  double idle_seconds(double until) const;
  TimelineRow row_at(double time, double& tokens_before) const;

 private:
  // Which of its lanes has something to do next. Returns when the first of the others has. Of those that wait for the first
  // stage, the one that has waited longest takes it: where proposals keep the last stage, fewer lanes than there are fill the
  // pipeline, and the others would never have a turn.
  double find_next() {
    Lane* next = lanes_.data();
    double soonest = next->end(), others = kNever;
    for (Lane& lane : lanes_.subspan(1)) {
      const double end = lane.end();
      others = std::min(others, std::max(soonest, end));
      const bool before =
          end < soonest || (end == soonest && lane.free_since() < next->free_since());
      if (before) soonest = end, next = &lane;
    }
    next_lane_ = next;
    next_event_ = soonest;
    return others;
  }
  // Nothing happens at this moment in the other lanes of a pipeline, nor could they take anybody who waits.
  bool others_wait_until_after(double now) const;
  // What a place in the queue follows from.
  struct Claim {
    std::int64_t priority = 0;
    RequestClass service_class = RequestClass::normal;
    double arrival = 0;
    std::int64_t to_read = 0;  // tokens of its prompt that are not cached
  };
  template <class Any>
  static Claim claim_of(const Any& one, std::int64_t cached) {
    return {one.priority, one.service_class, one.arrival, one.prompt - cached};
  }
  double order_of(const Claim& claim, double fair_place) const;
  double ttft_limit_of(const Claim& claim) const;
  // What is before a request: so many others, the wait for them, and the reading of what of its prompt is not cached.
  struct Before {
    std::int64_t others = 0;
    double wait = 0;
    double reading = 0;
  };
  bool sheds_behind(const Before& before, const Elsewhere& elsewhere, const Request& request,
                    double now) const;
  // Its place in the queue, where that has an order; it is charged `tokens` on arrival.
  double enter_queue(const Sequence& sequence, std::int64_t tokens, double now) {
    return state_.waiting.ordered() ? place_by_order(sequence, tokens, now) : sequence.arrival;
  }
  double place_by_order(const Sequence& sequence, std::int64_t tokens, double now);
  // It goes to the queue, or waits outside it.
  [[gnu::always_inline]] void queue_up(std::int32_t slot, Awaited awaits, double now) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    sequence.encoded = false;
    sequence.awaits = Awaited::nothing;
    if (awaits == Awaited::nothing) return join_queue(slot, now);
    sequence.awaits = awaits;
    sequence.whereabouts = Whereabouts::awaiting;
    ++state_.awaiting;
  }
  // It is one of those inside, of which `output` tokens are made here.
  void count_in(Sequence& sequence, std::int64_t output);
  // It is the first in the queue, or of those as urgent. Lanes are to be stopped: it may be let in where who was the first
  // before could not.
  void put_first(std::int32_t slot) {
    state_.sequences[std::size_t(slot)].whereabouts = Whereabouts::waiting;
    state_.waiting.push_front(slot, state_.sequences);
  }
  void empty_queues();
  // Blocks that stay free for what those inside, and the next one, will write (serving.reserved_decode_tokens).
  std::int64_t reserved_for_decodes() const;
  std::int64_t predicted_output(std::int64_t number, std::int64_t output) const;
  std::int32_t new_slot() {
    if (state_.first_unused < 0) add_slot();
    const std::int32_t slot = state_.first_unused;
    state_.first_unused = state_.sequences[std::size_t(slot)].after;
    return slot;
  }
  void put_back(std::int32_t slot) {
    state_.sequences[std::size_t(slot)].after = state_.first_unused;
    state_.first_unused = slot;
  }
  void add_slot();
  // Blocks or seats may have come free: whoever sits idle looks again.
  void wake_all() {
    for (Lane& lane : lanes_) lane.wake(now_);
  }
  // Something changed that ends any stretch.
  void stop_lanes(double now);
  // Before what is cached changes inside a stretch: what is given up for its steps so far is given up first, as step by step.
  void settle(double now) {
    if (!state_.pool.caches_prefixes()) return;
    for (Lane& lane : lanes_) lane.settle(now);
    state_.pool.pass(now);
  }

  // Those that a step may let in. A queue is long where nobody is let in for long.
  static constexpr std::int64_t kLookedAt = 64;
  void look_for_loads(double now);
  // Starts what a request loads from the tiers below, where that is worth it and there is room.
  enum class Load : std::uint8_t { nothing, waits_for_room, begun };
  Load start_load(std::int32_t slot, double now);
  // Sequences that wait hold more or less of the cache than `before`, when so much was saved by sharing.
  void count_sharing(double before, double now);
  std::span<Lane> lanes_;
  double next_event_ = kNever;
  Lane* next_lane_ = nullptr;
  double now_ = 0;        // when its present turn is,
  Lane* turn_ = nullptr;  // and whose of its lanes
  ReplicaState state_;
  std::vector<std::int32_t> loading_;
  LowerTiers lower_;
};

}  // namespace engine
