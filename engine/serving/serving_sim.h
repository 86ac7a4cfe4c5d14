// The discrete-event simulation of a served load: requests arrive, a router spreads them over the
// replicas of a pool, replicas run steps, KV is carried from one pool to the next. The way of one request
// through here is told in engine/serving/README.md.
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

// Kept from one run to the next, its memory is used again; results do not depend on what ran before.
// Units of work (engine/base/work_meter.h). An arrival stays in memory until it is answered.
constexpr double kWorkOfAnEvent = 1, kWorkOfAnArrival = 32;
// From here on what their turns look at, some 4 KB each, does not stay in a core's own cache.
constexpr std::size_t kManyReplicas = 256;

class ServingSim {
 public:
  void run(const ServingProblem& problem);

  ServingStats& stats() { return stats_; }
  const ServingStats& stats() const { return stats_; }
  StepTable& table(std::size_t pool = 0) { return pools_[pool].table; }
  RequestMemory& memory() { return memory_; }
  // Of all pools, one after the other.
  const std::vector<Replica>& replicas() const { return replicas_; }
  const EventQueue& events() const { return events_; }
  const LeastOf<std::int64_t>& weights(std::size_t pool = 0) const { return pools_[pool].weights; }
  const Encoders& encoders() const { return encoders_; }
  double makespan() const { return makespan_; }
  // Requests inside when nothing more happens: they wait for one another, which is a mistake of the simulation.
  double stuck() const { return stuck_; }
  double idle_seconds() const {
    double seconds = 0;
    for (std::size_t i = 0; i < pools_.size(); ++i) seconds += idle_seconds(i);
    return seconds;
  }
  double idle_seconds(std::size_t pool) const;
  const Scaler& scaler(std::size_t pool) const { return pools_[pool].scaler; }
  const Failures& failures(std::size_t pool) const { return pools_[pool].failures; }
  const RunVerdict& verdict() const { return referee_.verdict(); }
  // Units (requests or sessions) of the length at which the run was long enough.
  std::int64_t units() const { return stats_.watch().units(); }

 private:
  // The replicas of a pool, from `first` on, and what its router knows of them.
  struct Pool {
    PoolConstants common;
    StepTable table;
    std::size_t first = 0, count = 0;
    std::size_t first_lane = 0, lanes = 1;  // of each replica
    Route* route = nullptr;
    std::uint64_t routing_seed = 0;  // where one pool sends a request says nothing of another's
    ReplicaWeight weight = ReplicaWeight::none;
    PrefixHolders holders;  // among them, for a router that reads caches
    LeastOf<std::int64_t> weights;
    Scaler scaler;
    Failures failures;
    SharedStore store;                  // of KV caches, where the replicas share one
    std::vector<LockstepGroup> groups;  // of replicas that step together; none: each steps alone
    std::int64_t routed = 0;
    std::int64_t routed_at_look = 0;  // when the scaler last looked at the load
  };

  void start(const ServingProblem& problem);
  // Of a pool that has its step table and its groups.
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
  // One event; false when there is none.
  bool take_event(RequestSource& source);
  void interrupt(RequestSource& source);
  void find_interruptions();
  void arrive(RequestSource& source);
  // A replica's turn, and its next ones as long as nothing happens elsewhere before `next_event`.
  void advance(std::size_t replica, double next_event, RequestSource& source);
  // True where it has the next event again, and this turn changed nothing for anybody else but when the next request or KV comes,
  // which is then part of `next_event`.
  bool take_turn(std::size_t replica, double& next_event, RequestSource& source);
  // Its next event comes before anything that could happen elsewhere; and it is that event's turn.
  bool is_next(const Replica& replica, double next_event) const {
    const double event = replica.next_event();
    return event + kSameMoment < std::min(next_event, interruption_);
  }
  void begin_turn(std::size_t replica) {
    charge(kWorkOfAnEvent);
    now_ = replicas_[replica].next_event();
  }
  // Turns of a pipeline in which its lanes only decode on. True where another turn of its own comes next, and has begun.
  bool decode_on(std::size_t replica, double next_event);
  // Steps of a replica that take blocks in sight of others, and nothing else (`Lane::take_next_blocks`). False where another
  // turn of its own comes next, and has begun.
  bool only_takes_blocks(std::size_t replica, double next_event);
  // Parts of a stretch in which the same sequences decode on (`Lane::has_next_part`). Returns as the former.
  bool only_goes_on(std::size_t replica, double next_event);
  // What a replica does now its pool's store hears of as of this moment, and at one moment in the order of ranks.
  void act(std::size_t replica, std::int32_t rank);
  // The store asks all but who acts for what they have used, and for what they use from now on at once.
  void tell_uses(std::size_t pool);
  void rest(std::size_t replica, bool ran, RequestSource& source);
  // Replicas that share experts (serving_lockstep.cc): their groups, and that of a replica, or null.
  void start_groups(std::size_t pool);
  // Others find what a replica of the pool gives up in a store that they share.
  bool gives_up_in_sight(std::size_t pool) const;
  LockstepGroup* group_of(std::size_t replica);
  // A group takes its turn as one, at its first replica's place among the events.
  void advance_group(LockstepGroup& group, double next_event, RequestSource& source);
  bool end_together(LockstepGroup& group, RequestSource& source);
  bool end_member(LockstepGroup& group, std::size_t replica, RequestSource& source);
  void plan_together(LockstepGroup& group, RequestSource& source);
  // A member may have something to do at another time than before; and it may have more or less of it.
  void note_turn(LockstepGroup& group, std::size_t replica);
  void note_member(LockstepGroup& group, std::size_t replica) {
    note_turn(group, replica);
    if (compares_) weigh(replica);
  }
  void note_group(const LockstepGroup& group) {
    events_.set(group.first(), group.next_event(), group.steps());
  }
  void settle_groups();
  // Sees to those that are done in a replica, of which there are some; true where a client, or who goes on with a request, was told.
  bool depart(std::size_t replica, RequestSource& source);
  // The earliest event elsewhere after that: this moment where somebody may have a turn before the replica plans.
  double next_after_telling(std::size_t replica, double next_event, const RequestSource& source);
  void ask_for(const Sequence& sequence);
  void hand_over(std::size_t replica, std::int32_t slot, RequestSource& source);
  // Where blocks are set aside before a prompt is read: a replica that writes is asked for them, the request goes to one that
  // reads once it has them, and its KV goes where they are.
  void reserve(RequestSource& source);
  bool reserves(const Sequence& sequence) const {
    return problem_->journey.pushes &&
           (sequence.asked > sequence.generated + 1 || sequence.forks());
  }
  void dispatch(std::size_t replica, std::int32_t slot, RequestSource& source);
  void push(std::size_t replica, std::int32_t slot);
  void ship(std::size_t replica, std::int32_t slot);
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
  // A request comes to a replica from elsewhere, and waits there for what one that arrives waits for.
  std::int32_t take_in(std::size_t replica, const Sequence& sequence, std::int64_t output);
  // A sequence waits for its adapter, where that is not on the devices, or for its images.
  void await_adapter(std::size_t replica, std::int32_t slot, double now);
  void await_images(std::size_t replica, std::int32_t slot, double now);
  // It has all that it waited for.
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
  // False where it steps alone.
  bool note_in_group(std::size_t replica);
  void weigh(std::size_t replica);
  // Where replicas come and go: whether it takes requests, once it is off if nobody wants it and it has nothing to do.
  bool takes_requests(Pool& pool, std::size_t replica);
  // Many replicas: what an event looks at is asked for while the one before it is worked on, in two steps, since the first
  // brings the addresses of the second: the replica with its lists, and the sequences that these name.
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
  // What they lead to is asked for at the start of a turn: who runs beside the one that is done, and is told when it leaves,
  // its client, and what the cache has of it, of who reads and of who is the first in the queue.
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
  // Seconds for the prompt of `request_` where it would be read now, but for what is cached there: for who predicts first tokens.
  double reading();
  // Whether `request_` is turned away by who would read it (serving_admission.cc), who may be who writes its answer.
  bool sheds(std::size_t replica, bool writes_it);
  // The same where `writer` has set blocks aside for it.
  bool sheds_reading(std::size_t reader, std::size_t writer);
  // What it would wait for there, and on the way, with so many before it that are not read yet.
  Replica::Elsewhere at_writer(std::size_t writer, std::int64_t unread) const;
  void mark(double time);
  // When the number of replicas of a pool may change, and what that does.
  double next_scaling() const;
  void scale(double time, RequestSource& source);
  std::int64_t held_for(std::size_t pool) const;
  void wake(Pool& pool);
  void send_held(RequestSource& source);
  void takers_changed(Pool& pool);
  // A replica that is no longer wanted and has nothing to do goes off, with those of its unit.
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
  // Whose blocks were set aside by a replica that has failed: before its prompt was read, and after it.
  void move_reservation(std::size_t replica, const Replica::Stranded& stranded,
                        RequestSource& source);
  void read_in_vain(std::size_t replica, std::int32_t slot, RequestSource& source);
  // What was made of a sequence in a replica is lost.
  void try_again(std::size_t replica, Sequence& sequence, RequestSource& source);
  void take_back_first_token(Sequence& sequence) const;
  // Who has lost nothing to a failure is turned away where it would come too late.
  enum class Sent : std::uint8_t { after_failure, after_waiting };
  void send(const Sequence& sequence, Sent sent, RequestSource& source);
  bool readers_fit(const Sequence& sequence) const {
    return replicas_[pools_[stages()[0].pool].first].fits(sequence.to_read(), 1);
  }
  // Where a sequence that is sent goes first.
  std::size_t entry_stage(const Sequence& sequence) const {
    return !readers_fit(sequence) || reserves(sequence) ? stages().size() - 1 : 0;
  }
  // Nobody in the pool takes the request that arrives: it waits for somebody, unless that would be too long.
  void hold(Pool& pool, RequestSource& source);
  // The next moment at which something happens by the clock alone: of these moments `find_interruptions` keeps track.
  double next_mark() const { return std::min(stats_.watch().next_edge(), timeline_.next()); }

  const ServingProblem* problem_ = nullptr;  // while it runs
  WorkMeter* work_ = nullptr;                // likewise, counts what is done; null: nobody does
  ServingStats stats_;
  std::vector<Pool> pools_;
  std::vector<Replica> replicas_;
  std::vector<Sequence> sequences_;          // of many replicas, side by side
  std::vector<Lane> lanes_;                  // of all replicas, in their order
  StepPlan scratch_plan_;                    // of the replica that plans
  std::vector<std::uint8_t> pool_of_;        // by replica
  std::vector<std::uint8_t> stage_of_pool_;  // the stage of the journey that a pool serves
  bool weighs_ = false;                      // some router compares how much replicas have to do
  bool compares_ = false;                    // it, or who scales the fleet or sees to its failures
  EventQueue events_;
  Transfers transfers_;
  std::vector<AdapterCache> adapters_;  // by replica; empty: nobody waits for an adapter
  Encoders encoders_;
  AnswerGroups answers_;
  std::vector<std::int64_t> outputs_;  // of the answers that begin
  RequestMemory memory_;
  Request request_;
  std::int64_t fits_everywhere_ = 0;  // tokens of a prompt and its output
  double now_ = 0;
  double makespan_ = 0;
  double stuck_ = 0;
  double marked_ = kNever;        // the next mark,
  double interruption_ = kNever;  // or anything else that happens by the clock alone
  bool scales_ = false;           // some pool follows the load
  bool fails_ = false;            // replicas of some pool fail
  bool sheds_ = false;            // some pool turns requests away
  bool steps_together_ = false;   // replicas of some pool share experts
  bool loads_ = false;            // replicas of some pool have KV below their caches
  bool in_sight_ = false;         // others see what replicas of some pool give up:
  std::size_t acting_ = 0;        // of these, who does something,
  bool others_moved_ = false;     // and whether its turn has brought events of others forward
  bool keeps_turns_ = false;      // a turn may be followed by the next without a look elsewhere
  bool pipelines_ = false;        // likewise, and some replicas are pipelines
  bool goes_on_ = false;  // likewise, and nothing else happens where a part of a stretch ends
  bool leaves_quietly_ = false;  // who departs from a replica changes nothing elsewhere
  bool many_ = false;    // replicas, of a lane each: their memory is fetched anew at every turn
  bool caches_ = false;  // some pool keeps prefixes
  // Where that is so: whose turn is next, whose comes after it, and where the next request goes, as far as one can tell.
  std::size_t next_ = 0, after_next_ = 0, expected_ = 0;
  std::int64_t events_since_expected_ = 0;
  // Replicas that step together, with the present event: who plans, and whose sequences only decode on.
  std::vector<std::size_t> planned_, going_on_;
  // While no replica could take them, since all have failed or are off: requests, and sequences whose KV is to be carried.
  struct HeldBack {
    std::size_t replica = 0;
    std::int32_t slot = -1;
  };
  // Who has read waits for who writes; who has set blocks aside, for who reads.
  std::size_t awaited_stage(const HeldBack& one) const {
    return (stage_of(one.replica) + 1) % stages().size();
  }
  std::vector<Sequence> held_;
  Sequence passed_on_;  // to who sets blocks aside, and from there to who reads
  std::vector<HeldBack> held_back_;
  Referee referee_;
  Timeline timeline_;
};

}  // namespace engine
