// The discrete-event simulation of a served load: requests arrive, a router spreads them over the replicas of a pool, replicas run
// steps, and KV is carried from one pool to the next. engine/serving/README.md follows one request through it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/serving/figures/referee.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/fleet/event_queue.h"
#include "engine/serving/fleet/failures.h"
#include "engine/serving/fleet/router.h"
#include "engine/serving/fleet/scaler.h"
#include "engine/serving/fleet/transfers.h"
#include "engine/serving/lane/lockstep_group.h"
#include "engine/serving/replica/adapter_cache.h"
#include "engine/serving/replica/answer_groups.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/replica/replica.h"
#include "engine/serving/serving_problem.h"
#include "engine/serving/timeline.h"
#include "engine/step/step_table.h"
#include "engine/workload/request_source.h"

namespace engine {

// Units of work (engine/base/work_meter.h). An arrival costs more, since it stays in memory until it is answered.
constexpr double kWorkOfAnEvent = 1, kWorkOfAnArrival = 32;
// With so many replicas, what their turns look at (some 4 KB each) does not stay in a core's own cache.
constexpr std::size_t kManyReplicas = 256;

// Kept from one run to the next, so that its memory is used again. Results do not depend on what ran before.
class ServingSim {
 public:
  void run(const ServingProblem& problem);

  ServingStats& stats() { return stats_; }
  const ServingStats& stats() const { return stats_; }
  StepTable& table(std::size_t pool = 0) { return pools_[pool].table; }
  RequestMemory& memory() { return memory_; }
  // Those of all pools, one pool after the other.
  const std::vector<Replica>& replicas() const { return replicas_; }
  const EventQueue& events() const { return events_; }
  const LeastOf<std::int64_t>& weights(std::size_t pool = 0) const { return pools_[pool].weights; }
  const Encoders& encoders() const { return encoders_; }
  double makespan() const { return makespan_; }
  // Requests that are still inside when nothing more happens. They wait for one another, which is a mistake of the simulation.
  double stuck() const { return stuck_; }
  double idle_seconds() const {
    double seconds = 0;
    for (std::size_t i = 0; i < pools_.size(); ++i) seconds += idle_seconds(i);
    return seconds;
  }
  double idle_seconds(std::size_t pool) const;
  const Scaler& scaler(std::size_t pool) const { return pools_[pool].scaler; }
  const Failures& failures(std::size_t pool) const { return pools_[pool].failures; }
  // Whether what failures do to figures is known: none are stated, or there were many of them.
  bool failures_are_known() const;
  const RunVerdict& verdict() const { return referee_.verdict(); }
  // Requests or sessions of the run length that was found long enough.
  std::int64_t units() const { return stats_.watch().units(); }

 private:
  // A pool: its replicas, which are `replicas_` from `first` on, and what its router knows of them.
  struct Pool {
    PoolConstants common;
    StepTable table;
    std::size_t first = 0, count = 0;
    std::size_t first_lane = 0, lanes = 1;  // of each replica
    Route* route = nullptr;
    std::uint64_t routing_seed = 0;  // where one pool sends a request says nothing of another's
    ReplicaWeight weight = ReplicaWeight::none;
    PrefixHolders holders;  // which replicas hold a prefix, for a router that looks at caches
    LeastOf<std::int64_t> weights;
    ClassWork class_work{};          // of the load, and
    ClassReplicas class_replicas{};  // which of those that take requests its classes have
    Scaler scaler;
    Failures failures;
    SharedStore store;                  // of KV, where the replicas share one
    std::vector<LockstepGroup> groups;  // replicas that step together; empty: each steps on its own
    std::int64_t routed = 0;            // requests sent to this pool so far,
    std::int64_t routed_at_look = 0;    // and when the scaler last looked at the load
  };

  void start(const ServingProblem& problem);
  // The constants of a pool whose step table and groups are ready.
  PoolConstants constants_of(std::size_t index);
  void start_pool(std::size_t index);
  void make_replicas(std::size_t replicas, std::size_t lanes);
  std::size_t stage_of(std::size_t replica) const { return stage_of_pool_[pool_of_[replica]]; }
  // The replica of a stage's pool that a request goes to.
  std::size_t route(std::size_t stage, const Request& request, double now) {
    Pool& pool = pools_[stages()[stage].pool];
    ++pool.routed;
    return pool.scaler.open() == 1 ? pool.first + std::size_t(pool.scaler.takers()[0])
                                   : route_among(pool, request, now);
  }
  std::size_t route_among(Pool& pool, const Request& request, double now);

  void charge(double units) {
    if (work_ != nullptr) work_->charge(units);
  }
  // Takes the next event; false where there is none.
  bool take_event(RequestSource& source);
  void interrupt(RequestSource& source);
  void find_interruptions();
  void arrive(RequestSource& source);
  // A replica's turn, and its next ones as long as nothing happens elsewhere before `next_event`.
  void advance(std::size_t replica, double next_event, RequestSource& source);
  // Takes one turn. True where the replica also has the next event, and the turn changed nothing for others but when the next
  // request or KV comes; `next_event` then says that.
  bool take_turn(std::size_t replica, double& next_event, RequestSource& source);
  // Whether the replica's next event comes before anything that could happen elsewhere.
  bool is_next(const Replica& replica, double next_event) const {
    const double event = replica.next_event();
    return event + kSameMoment < std::min(next_event, interruption_);
  }
  void begin_turn(std::size_t replica) {
    charge(kWorkOfAnEvent);
    now_ = replicas_[replica].next_event();
  }
  // Takes turns of a pipeline in which its lanes only decode on. True where another kind of turn of the same replica comes next;
  // that turn has then begun.
  bool decode_on(std::size_t replica, double next_event);
  // Takes turns in which a step only takes blocks while other replicas look on (`Lane::take_next_blocks`). False where another
  // kind of turn of the same replica comes next; that turn has then begun.
  bool only_takes_blocks(std::size_t replica, double next_event);
  // Takes turns that only begin the next part of a stretch (`Lane::has_next_part`). Returns as `only_takes_blocks` does.
  bool only_goes_on(std::size_t replica, double next_event);
  // Tells the pool's store that what it hears from now on is done by this replica at this moment. What several replicas do at one
  // moment counts in the order of their ranks.
  void act(std::size_t replica, std::int32_t rank);
  // The store asks all replicas but the acting one for the prefixes that they have used, and hears of further uses at once.
  void tell_uses(std::size_t pool);
  void rest(std::size_t replica, bool ran, RequestSource& source);
  // Replicas that share experts step together in groups (serving_lockstep.cc).
  void start_groups(std::size_t pool);
  // Whether replicas of the pool find what another one gives up of its cache, in a store that they share.
  bool gives_up_in_sight(std::size_t pool) const;
  LockstepGroup* group_of(std::size_t replica);  // null: it steps on its own
  // A group takes its turn as one, at its first replica's place among the events.
  void advance_group(LockstepGroup& group, double next_event, RequestSource& source);
  bool end_together(LockstepGroup& group, RequestSource& source);
  bool end_member(LockstepGroup& group, std::size_t replica, RequestSource& source);
  void plan_together(LockstepGroup& group, RequestSource& source);
  // After a member's next event may have changed.
  void note_turn(LockstepGroup& group, std::size_t replica);
  void note_group(const LockstepGroup& group) {
    events_.set(group.first(), group.next_event(), group.steps());
  }
  void settle_groups();
  // Sees to the sequences that departed from a replica. True where a client was told, or another replica that goes on with one.
  bool depart(std::size_t replica, RequestSource& source);
  // The earliest event elsewhere after that. It is `now_` where others may have a turn before the replica plans.
  double next_after_telling(std::size_t replica, double next_event, const RequestSource& source);
  void ask_for(const Sequence& sequence);
  void hand_over(std::size_t replica, std::int32_t slot, RequestSource& source);
  // Where blocks are set aside before a prompt is read (push): a replica of the last stage is asked for them; once they are set
  // aside the request is dispatched to a replica that reads it; then its KV is pushed to the blocks.
  void reserve(RequestSource& source);
  bool reserves(const Sequence& sequence) const {
    return problem_->journey.pushes &&
           (sequence.asked > sequence.generated + 1 || sequence.forks());
  }
  void dispatch(std::size_t replica, std::int32_t slot, RequestSource& source);
  void push(std::size_t replica, std::int32_t slot);
  void ship(std::size_t replica, std::int32_t slot);
  void restore(std::size_t replica, std::int32_t slot);
  void fetch(std::size_t replica, RequestSource& source);
  std::int32_t expect(std::size_t replica, const Sequence& sequence, std::int32_t from,
                      std::int32_t from_slot);
  void expect_no_more(std::size_t replica, std::int32_t slot);
  void take_delivery();
  void start_loads(std::size_t replica) {
    if (loads_) load_from_below(replica);
  }
  void load_from_below(std::size_t replica);
  void fork(std::size_t replica, const RequestSource& source);
  bool answer(Sequence& sequence, std::size_t replica, RequestSource& source);
  void start_adapters();
  // A replica takes a sequence from elsewhere, which waits there for its adapter and images like one that just arrived.
  std::int32_t take_in(std::size_t replica, const Sequence& sequence, std::int64_t output);
  // Makes a sequence wait for its adapter, where that is not on the devices, or for its images.
  void await_adapter(std::size_t replica, std::int32_t slot, double now);
  void await_images(std::size_t replica, std::int32_t slot, double now);
  // The sequence has all that it waited for.
  void go_on(std::size_t replica, std::int32_t slot, double now);
  void start_encoders();
  void find_room_for_adapters(std::size_t replica);
  void take_awaited(std::size_t replica, std::int32_t slot);
  void deliver(std::size_t replica, std::int32_t slot);
  // After anything that may have changed when a replica has something to do, or how much it has.
  [[gnu::always_inline]] void note(std::size_t replica) {
    if (steps_together_ && note_in_group(replica)) return;
    const Replica& here = replicas_[replica];
    events_.set(replica, here.next_event(), events_.alone() || here.working());
    if (compares_) weigh(replica);
  }
  // The same for a member of a lockstep group; false where the replica steps on its own.
  bool note_in_group(std::size_t replica);
  void weigh(std::size_t replica);
  // In a fleet that scales: whether the replica takes requests. First it is switched off if it is no longer wanted and is empty.
  bool takes_requests(Pool& pool, std::size_t replica);
  // With many replicas, what an event looks at is fetched while the event before it is worked on. There are two steps, since the
  // first brings the addresses for the second: first the replica with its lists, then the sequences that these name.
  void fetch_replica(std::size_t replica) const {
    caches_ ? replicas_[replica].fetch_own_and_cache() : replicas_[replica].fetch_own_lines();
  }
  void fetch_lines_of(std::size_t replica) const {
    fetch_replica(replica);
    lanes_[replica].fetch_own_lines();
  }
  void fetch_lines_for_arrival(std::size_t replica) const {
    fetch_replica(replica);
    lanes_[replica].fetch_work();
  }
  void fetch_sequences_of(std::size_t replica) const {
    replicas_[replica].fetch_first_in_queue();
    lanes_[replica].fetch_sequences();
  }
  // A third step at the start of a turn fetches what those sequences lead to: the neighbours in its list of the one that is done,
  // its client, and what the cache has of it, of the one that reads its prompt and of the first in the queue.
  void fetch_behind_sequences(std::size_t replica, const RequestSource& source) const;
  void look_ahead(const EventQueue::Turn& turn);
  void look_further_ahead();
  void expect_request(const Pool& pool);
  // Whether the last stage reads a short prompt itself, and the replica that does.
  bool stays_local(std::size_t& replica) {
    return problem_->journey.short_prompt > 0 && stages().size() > 1 && is_short(replica);
  }
  bool is_short(std::size_t& replica);
  bool ever_fits(bool local) const {
    return request_.prompt + request_.output <= fits_everywhere_ || fits_on_its_way(local);
  }
  bool fits_on_its_way(bool local) const;
  void turn_away(RequestEnd why, std::size_t replica, RequestSource& source);
  const std::vector<Stage>& stages() const { return problem_->journey.stages; }
  // Seconds to read what is not cached of the prompt of `request_` where it would be read now. Used to predict first tokens.
  double reading();
  // Whether the replica that would read `request_` turns it away (serving_admission.cc). It may also be the one that writes.
  bool sheds(std::size_t replica, bool writes_it);
  // The same where `writer` has set blocks aside for it.
  bool sheds_reading(std::size_t reader, std::size_t writer);
  // What `request_` would wait for at the replica that writes its answer, and on the way there, with `unread` before it.
  Replica::Elsewhere at_writer(std::size_t writer, std::int64_t unread) const;
  void mark(double time);
  FleetSeen fleet_seen(const MeasuredPart& part) const;
  // When the number of replicas of a pool may change, and what that does.
  double next_scaling() const;
  void scale(double time, RequestSource& source);
  std::int64_t held_for(std::size_t pool) const;
  void wake(Pool& pool);
  void send_held(RequestSource& source);
  void takers_changed(Pool& pool);
  // Switches off a replica, with the others of its unit, where it is no longer wanted and is empty.
  void switch_off_if_empty(Pool& pool, std::size_t replica);
  // When a replica fails or has been repaired, and what that does (serving_fleet.cc).
  double next_failure() const;
  void fail_or_repair(double time, RequestSource& source);
  void fail(Pool& pool, std::size_t unit, RequestSource& source);
  void repair(Pool& pool, std::size_t unit, RequestSource& source);
  void abandon(std::size_t replica, RequestSource& source);
  void move_on(std::size_t replica, const Replica::Stranded& stranded, RequestSource& source);
  void call_back(std::size_t replica, std::int32_t slot, Sequence& sequence);
  void hold_back_no_more(std::size_t replica, std::int32_t slot);
  // For a sequence whose blocks were set aside by a replica that then failed: before its prompt was read, and afterwards.
  void move_reservation(std::size_t replica, const Replica::Stranded& stranded,
                        RequestSource& source);
  void read_in_vain(std::size_t replica, std::int32_t slot, RequestSource& source);
  // Begins a sequence again whose KV in a replica is lost.
  void try_again(std::size_t replica, Sequence& sequence, RequestSource& source);
  void take_back_first_token(Sequence& sequence) const;
  // Why a sequence is sent anew. One that only waited for a replica is turned away where it would come too late.
  enum class Sent : std::uint8_t { after_failure, after_waiting };
  void send(const Sequence& sequence, Sent sent, RequestSource& source);
  bool readers_fit(const Sequence& sequence) const {
    return replicas_[pools_[stages()[0].pool].first].fits(sequence.to_read(), 1);
  }
  // Where a sequence that is sent goes first.
  std::size_t entry_stage(const Sequence& sequence) const {
    return !readers_fit(sequence) || reserves(sequence) ? stages().size() - 1 : 0;
  }
  // No replica of the pool takes requests now: the one that arrives is held, unless the wait would be too long.
  void hold(Pool& pool, RequestSource& source);
  // The next moment at which a measured part begins or ends, or the timeline is written.
  double next_mark() const { return std::min(stats_.watch().next_edge(), timeline_.next()); }

  const ServingProblem* problem_ = nullptr;  // while it runs
  WorkMeter* work_ = nullptr;  // counts what is done while it runs; null: nothing counts
  ServingStats stats_;
  std::vector<Pool> pools_;
  std::vector<Replica> replicas_;
  std::vector<Sequence> sequences_;          // those of many replicas, side by side
  std::vector<Lane> lanes_;                  // those of all replicas, in their order
  StepPlan scratch_plan_;                    // of the replica that plans
  std::vector<std::uint8_t> pool_of_;        // by replica
  std::vector<std::uint8_t> stage_of_pool_;  // the stage of the journey that a pool serves
  bool weighs_ = false;                      // some router compares how much replicas have to do
  bool compares_ = false;  // a router, a scaler or failures look at how much that is
  EventQueue events_;
  Transfers transfers_;
  std::vector<AdapterCache> adapters_;  // by replica; empty: no request waits for an adapter
  Encoders encoders_;
  AnswerGroups answers_;
  std::vector<std::int64_t> outputs_;  // of the answers that begin
  RequestMemory memory_;
  Request request_;
  std::int64_t fits_everywhere_ = 0;  // tokens of prompt and output that every stage can hold
  double now_ = 0;
  double makespan_ = 0;
  double stuck_ = 0;
  double marked_ = kNever;  // the next mark (`next_mark`)
  // The next moment at which anything happens by the clock alone, marks included.
  double interruption_ = kNever;
  bool scales_ = false;          // some pool follows the load
  bool fails_ = false;           // replicas of some pool fail
  bool sheds_ = false;           // some pool turns requests away
  bool steps_together_ = false;  // replicas of some pool share experts
  bool loads_ = false;           // replicas of some pool have tiers of KV below their caches
  bool in_sight_ = false;      // in some pool, replicas see what another one gives up of its cache
  std::size_t acting_ = 0;     // there: the replica whose turn it is
  bool others_moved_ = false;  // there: its turn has brought events of other replicas forward
  // A turn may follow another one of the same replica without a look elsewhere.
  bool keeps_turns_ = false;
  bool pipelines_ = false;  // the same, and some replicas are pipelines
  bool goes_on_ = false;    // the same, and nothing else happens where a part of a stretch ends
  bool leaves_quietly_ = false;  // a sequence that departs from a replica changes nothing elsewhere
  // So many replicas, with one lane each, that their memory is fetched at every turn.
  bool many_ = false;
  bool caches_ = false;  // some pool caches prefixes
  // With many replicas: whose turn is next, whose comes after it, and where the next request goes, as far as one can tell.
  std::size_t next_ = 0, after_next_ = 0, expected_ = 0;
  std::int64_t events_since_expected_ = 0;
  // In a lockstep group, at the present event: members that plan, and members whose sequences only decode on.
  std::vector<std::size_t> planned_, going_on_;
  // Requests, and sequences whose KV is to be carried, while no replica can take them because all have failed or are off.
  struct HeldBack {
    std::size_t replica = 0;
    std::int32_t slot = -1;
  };
  // The stage that it waits for: after reading the one that writes, after setting blocks aside the one that reads.
  std::size_t awaited_stage(const HeldBack& one) const {
    return (stage_of(one.replica) + 1) % stages().size();
  }
  std::vector<Sequence> held_;
  Sequence
      passed_on_;  // on its way to the replica that sets blocks aside, and from there to the one that reads
  std::vector<HeldBack> held_back_;
  Referee referee_;
  Timeline timeline_;
};

}  // namespace engine
