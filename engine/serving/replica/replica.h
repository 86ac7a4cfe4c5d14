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
#include "engine/serving/replica/prospects.h"

namespace engine {

// Makes `sequence` the state of a request that no lane has begun yet.
void begin(Sequence& sequence, const Request& request);

// A replica has room for so many sequences from the start, in large pages of memory. Further ones lie elsewhere, in small pages,
// which is slow with many replicas and should be rare: with a dozen sequences inside on average, nearly every replica has had
// more than 20 at some time.
constexpr std::size_t kUsualSequences = 40;

// With many replicas each cache line that an event touches has to be fetched from memory, so what is used together stands
// together.
class alignas(64) Replica {
 public:
  struct Setup {
    const PoolConstants* common = nullptr;
    std::int32_t number = 0;
    std::int32_t place = 0;          // in its pool
    std::span<Lane> lanes = {};      // one per pipeline stage, each with a batch in flight
    LockstepGroup* group = nullptr;  // whose members step together; null: it steps on its own
    std::int64_t kv_blocks = 1;
    PrefixHolders* holders = nullptr;  // where a router looks for prefixes
    TierSetups tiers = {};
    SharedStore* store = nullptr;  // of its pool; null: there is none
  };
  // Says where its first sequences are to lie. Called before `reset`.
  void use_room(std::span<Sequence> room) {
    state_.sequences.use(room);
    state_.slots = std::min(state_.slots, std::int32_t(state_.sequences.size()));
  }
  void reset(const Setup& setup);
  // Fetch what its turn looks at; the second also what it looks at where prefixes are cached.
  void fetch_own_lines() const { fetch_lines(this, state_.pool.behind_counts()); }
  void fetch_own_and_cache() const { fetch_lines(this, state_.pool.behind_cache()); }
  // Fetch the slot that the next request will get, and the first sequence of the queue.
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
  // Once these are there: fetch what the cache has of that sequence's prompt, and what it knows of a running sequence's prefix.
  void fetch_cache_for_queue() const {
    if (!state_.waiting.empty()) state_.pool.fetch(sequence(state_.waiting.at(0)).prefix);
  }
  void fetch_cache_of(std::int32_t slot) const {
    state_.pool.fetch_published(sequence(slot).prefix, sequence(slot).kv);
  }

  // When one of its lanes has something to do.
  double next_event() const { return next_event_; }
  // Whether work ends then. Otherwise it is only the time to plan.
  bool working() const { return next_lane_->ends_work(); }

  // ---- its turn, at `next_event()`, in this order -----------------------------------------------
  // Where other replicas see what this one gives up of its cache: true if all that happens is that a step inside its present
  // work takes blocks.
  bool only_takes_blocks() {
    if (!next_lane_->take_next_blocks()) return false;
    find_next();
    return true;
  }
  // Tells a store that other replicas see, too, of all uses of it until `now`. After `tell_no_more` it has been told of all;
  // after `tell_at_once` it is told of every further use when that happens.
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
  // Whether it plans in the same turn: only where nothing that happens elsewhere until `next_event` could bring something to
  // plan for.
  bool plans_now(double next_event) const {
    const bool work = turn_->end() < kNever && next_event > now_ + kSameMoment;
    return work && (lanes_.size() == 1 || others_wait_until_after(now_));
  }
  void plan() { turn_->plan(now_); }
  // In a lockstep group: begins a turn that the group gives it.
  void begin_turn(double now) {
    now_ = now;
    turn_ = lanes_.data();
  }
  // Whether its plan put all running sequences back into the queue, so that it has to plan once more.
  bool plans_again() const { return !lanes_[0].working() && lanes_[0].end() <= now_; }
  // Whether, after its present work, its sequences only decode on, and no KV from elsewhere waits for room.
  bool only_goes_on() const { return lanes_[0].has_next_part() && !expects(); }
  void go_on(double now) {
    begin_turn(now);
    lanes_[0].begin_next_part(now);
  }
  // Ends its work, of which the group knows that it lasts until `time`.
  void end_work_at(double time) {
    begin_turn(time);
    turn_->wait_until(time);
    turn_->end_work();
  }
  void end_turn(bool ran) {
    const bool others = ran && lanes_.size() > 1;
    if (others && (!state_.waiting.empty() || !state_.landed.empty())) wake_all();
    find_next();
  }

  // In a pipeline: whether its next turn is one in which a lane only decodes on, as far as its lanes and its queue tell.
  bool may_decode_on() const {
    if (lanes_.size() == 1 || !next_lane_->decodes_on()) return false;
    return state_.waiting.empty() || next_lane_->working();
  }
  // Takes such turns, as long as they come before `until`. Returns how many.
  std::int64_t decode_on(double until);
  double now() const { return now_; }
  // When clients will have all tokens that it has made until `now`.
  double told(double now) const { return state_.front_end.told(now); }

  // ---- requests ---------------------------------------------------------------------------------
  // False where a request could never be served, because prompt and output are longer than the model or the KV pool allows.
  bool fits(std::int64_t prompt, std::int64_t output) const {
    return prompt + output <= most_tokens();
  }
  std::int64_t most_tokens() const { return state_.common->most_tokens; }
  // Takes a request that fits, of which `output` tokens are made here. Where it waits for something, it joins the queue only
  // when that is there (`join_queue`). Returns its slot.
  std::int32_t enqueue(const Request& request, std::int64_t output, Awaited awaits);
  [[gnu::always_inline]] void join_queue(std::int32_t slot, double now) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    if (sequence.awaits != Awaited::nothing) --state_.awaiting;
    sequence.awaits = Awaited::nothing;
    sequence.whereabouts = Whereabouts::waiting;
    if (state_.inbox.holds()) return hold_back(slot, now);
    state_.waiting.push(slot, state_.sequences);
    for (Lane& lane : lanes_) {
      lane.wake(now);
      lane.interrupt(now);
    }
    find_next();
  }
  // What one more request may expect here.
  Prospects prospects() const { return Prospects(state_); }
  // Requests that wait to be read here, or are being read.
  std::int64_t unread() const { return waiting() + state_.running; }
  // Slots of prompts that were read with the last event and get several answers.
  FewSlots& forking() { return state_.forking; }
  // Begins the other answers to the request in `slot`, with so many tokens each. They share the prompt's KV.
  void fork(std::int32_t slot, std::span<const std::int64_t> outputs, std::int32_t answers,
            double now);
  bool has_tiers() const { return lower_.any(); }
  // Looks at the requests that the next step may admit. Where a tier below the cache has more of a prompt than the cache has,
  // and loading that is sooner done than reading it, the request waits for room and then leaves the queue until it is loaded
  // (`Sequence::loaded`). Returns those that just left. The next step admits nobody behind those that were looked at.
  std::span<const std::int32_t> start_loads(double now) {
    loading_.clear();
    lanes_[0].take_in();
    state_.waiting.close_after(kLookedAt);
    if (!state_.waiting.empty()) look_for_loads(now);
    return loading_;
  }
  // What a request loaded is there: it is the first of the queue again.
  void finish_load(std::int32_t slot, double now);
  const Sequence& sequence(std::int32_t slot) const { return state_.sequences[std::size_t(slot)]; }
  Sequence& sequence(std::int32_t slot) { return state_.sequences[std::size_t(slot)]; }
  // Frees a slot: nothing will refer to it any more.
  void forget(std::int32_t slot) {
    state_.sequences[std::size_t(slot)].whereabouts = Whereabouts::nowhere;
    put_back(slot);
  }

  // ---- KV that is carried from one replica to another -------------------------------------------
  // A sequence is to go on here. Its prompt was read in `slot` of `replica`, or is still to be read somewhere (-1). It takes no
  // blocks before what it waits for is there (`ask_for_room`). Returns its slot here.
  std::int32_t expect(const Sequence& sequence, std::int32_t replica, std::int32_t slot, double now,
                      Awaited awaits);
  void ask_for_room(std::int32_t slot, double now);
  // Notes which replica expects the KV of the sequence in `slot`, which departed here, and in which slot.
  void leads_to(std::int32_t slot, std::int32_t replica, std::int32_t there) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    sequence.to_replica = replica;
    sequence.to_slot = there;
  }
  bool expects() const { return state_.wants_room(); }
  // Takes blocks for the first sequence that is expected, and returns its slot. -1: blocks are too few, or requests of its own
  // queue come first.
  std::int32_t make_room();
  // The KV of a preempted sequence is back from the host's memory.
  void restore(std::int32_t slot, double now);
  // The prompt of a sequence for which blocks were set aside here has now been read, in `slot` of `replica`.
  void was_read(std::int32_t slot_here, const Sequence& read, std::int32_t replica,
                std::int32_t slot);
  // The KV of that sequence has arrived.
  void receive(std::int32_t slot, double now);
  // The KV of a sequence that departed has been carried away, and its blocks come free.
  void release(std::int32_t slot, double now);

  // ---- failures ---------------------------------------------------------------------------------
  // The replica fails: its lanes come to rest at their next step boundaries.
  void halt(double now);
  bool halted() const { return state_.halted; }
  bool at_rest() const;
  // Once it is at rest: its memory is emptied, and all its sequences are handed out with their slots, in the order of their
  // arrival.
  struct Stranded {
    Sequence sequence;
    std::int32_t slot = -1;
  };
  void strand(double now, std::vector<Stranded>& out);
  // It came to rest before others that fail with it, which had a step to end. Until then it counts as idle, not as down.
  void waited_at_rest(double until);
  // The replica is repaired and takes requests again.
  void restart(double now);
  // Whether no request is inside, and no KV is on its way from it.
  bool empty() const { return state_.outstanding == 0 && state_.parked == 0; }
  // The replica is scaled away, empty. When it is switched on again, nothing is in its cache.
  void go_off(double now);
  // A sequence that lost its replica begins again here, to make tokens up to its `output`-th.
  std::int32_t take_over(const Sequence& sequence, std::int64_t output, double now, Awaited awaits);
  // A sequence that is expected here, or whose KV is under way, will not come; or it has come, and has nothing left to write.
  void expect_no_more(std::int32_t slot, double now);

  // Cuts long stretches at the first step boundary from `time` on.
  void split(double time);

  std::int64_t outstanding() const { return state_.outstanding; }
  std::int64_t outstanding_tokens() const { return state_.outstanding_tokens; }
  // Prompt tokens of a request that its cache holds at `time`, which may be inside a stretch.
  std::int64_t cached_tokens(const Request& request, double time) {
    return cached_tokens(request.prefix, request.prompt, time);
  }
  std::int64_t cached_tokens(std::span<const PrefixExtent> prefix, std::int64_t prompt,
                             double time);
  std::int64_t waiting() const {
    return state_.waiting.size() + state_.inbox.size() + state_.arriving.size() + state_.awaiting +
           state_.loading + std::int64_t(state_.kept.size());
  }
  const KvPool& pool() const { return state_.pool; }
  // Summed over all lanes. Work that is not done by `until` counts neither as idle nor as busy.
  double idle_seconds(double until) const;
  TimelineRow row_at(double time, double& tokens_before) const;

 private:
  void drop_first_token(Sequence& sequence) const;
  // Blocks that are free for KV from elsewhere, beside what running sequences and prompts that are read again need.
  std::int64_t free_for_others(const ReplicaView& view) const;
  std::int32_t make_room_to_restore();
  // Finds the lane that has something to do next, and returns when the first of the others has. Of lanes that wait for the first
  // stage, the one that has waited longest takes it. Otherwise, where proposals occupy the last stage, so that fewer lanes than
  // there are fill the pipeline, some lanes would never have a turn.
  double find_next() {
    Lane* next = lanes_.data();
    double soonest = next->end(), others = kNever;
    for (Lane& lane : lanes_.subspan(1)) {
      const double end = lane.end();
      if (end > soonest || (end == soonest && lane.free_since() >= next->free_since())) {
        others = std::min(others, end);
      } else {
        others = soonest;
        soonest = end;
        next = &lane;
      }
    }
    next_lane_ = next;
    next_event_ = soonest;
    return others;
  }
  // Whether nothing happens at this moment in the other lanes of a pipeline, nor could they admit a waiting request.
  bool others_wait_until_after(double now) const;
  // Its place in the queue, where the queue has an order. On arrival it is charged `tokens` (fair share).
  double enter_queue(const Sequence& sequence, std::int64_t tokens, double now) {
    return state_.waiting.ordered() ? place_by_order(sequence, tokens, now) : sequence.arrival;
  }
  double place_by_order(const Sequence& sequence, std::int64_t tokens, double now);
  // Puts a sequence into the queue, or outside it where it waits for something.
  [[gnu::always_inline]] void queue_up(std::int32_t slot, Awaited awaits, double now) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    sequence.encoded = false;
    sequence.awaits = Awaited::nothing;
    if (awaits == Awaited::nothing) return join_queue(slot, now);
    sequence.awaits = awaits;
    sequence.whereabouts = Whereabouts::awaiting;
    ++state_.awaiting;
  }
  // Counts a sequence as inside, with `output` tokens to be made here.
  void count_in(Sequence& sequence, std::int64_t output);
  // Puts a sequence first in the queue, or first of those that are as urgent. The caller stops the lanes, since it may be
  // admitted where the former first could not.
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
  // Puts a request where the engine's loop will find it (Inbox).
  void hold_back(std::int32_t slot, double now);
  // Blocks or seats may have come free: idle lanes look again.
  void wake_all() {
    for (Lane& lane : lanes_) lane.wake(now_);
  }
  // Ends any stretch, because something changed that its plan rests on.
  void stop_lanes(double now);
  // Brings the cache up to `now` before it changes inside a stretch: what the steps so far push out goes first, in the same order
  // as with single steps.
  void settle(double now) {
    if (!state_.pool.caches_prefixes()) return;
    for (Lane& lane : lanes_) lane.settle(now);
    state_.pool.pass(now);
  }

  // A step looks at, and admits, at most so many of the queue, which may be very long.
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
  double now_ = 0;        // time of its present turn
  Lane* turn_ = nullptr;  // the lane whose turn it is
  ReplicaState state_;
  std::vector<std::int32_t> loading_;
  LowerTiers lower_;
};

}  // namespace engine
