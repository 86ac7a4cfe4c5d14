// What a run serves with, and what its mechanisms may ask for: pools of replicas, what happens next, and the few things that become
// of a request on its way. A mechanism is a class of its own beside this file, which is there only where the point asks for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/fleet/event_queue.h"
#include "engine/serving/fleet/router.h"
#include "engine/serving/fleet/scaler.h"
#include "engine/serving/fleet/serving_problem.h"
#include "engine/serving/fleet/transfers.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/replica/replica.h"
#include "engine/step/step_table.h"
#include "engine/workload/request_source.h"

namespace engine {

class Adapters;
class HandOver;
class HeldRequests;
class Images;
class Lockstep;
class ManyReplicas;
class Outages;
class Pushes;
class Scaling;
class SeveralAnswers;
class Shedding;
class TiersBelow;
class Timeline;

// Units of work (engine/base/work_meter.h). An arrival costs more, since it stays in memory until it is answered.
constexpr double kWorkOfAnEvent = 1, kWorkOfAnArrival = 32;

// A pool: its replicas, which are `Fleet::replicas` from `first` on, and what its router knows of them.
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
  Scaler scaler;                   // which replicas take requests
  std::int64_t routed = 0;         // requests sent to this pool so far
};

// What this point has besides replicas that serve whoever comes. Null: nothing of the kind, which then costs nothing.
struct Mechanisms {
  Adapters* adapters = nullptr;       // requests wait for adapters of the model
  HandOver* hand_over = nullptr;      // KV is carried between pools, or back from the host
  HeldRequests* held = nullptr;       // replicas come and go, so that requests may find none
  Images* images = nullptr;           // encoders see to the images of requests first
  Lockstep* lockstep = nullptr;       // replicas of some pool share experts
  ManyReplicas* many = nullptr;       // so many that their memory is fetched at every turn
  Outages* outages = nullptr;         // replicas of some pool fail
  Pushes* pushes = nullptr;           // blocks are set aside before a prompt is read
  Scaling* scaling = nullptr;         // some pool follows the load
  SeveralAnswers* answers = nullptr;  // to one prompt
  Shedding* shedding = nullptr;       // some pool turns requests away
  TiersBelow* tiers = nullptr;        // replicas of some pool have tiers of KV below their caches
  Timeline* timeline = nullptr;       // rows at evenly spaced moments
};

// Which pools serve a request: each stage its own, or the last one all of it, since its prompt is short.
enum class Served : std::uint8_t { by_all_pools, locally };

struct Fleet {
  const ServingProblem* problem = nullptr;  // while it runs
  RequestSource* source = nullptr;          // while it runs: told when a request is answered
  WorkMeter* work = nullptr;  // counts what is done while it runs; null: nothing counts
  Mechanisms with;
  double now = 0;
  // The next moment at which a measured part begins or ends, or the timeline is written.
  double marked = kNever;
  // The next moment at which anything happens by the clock alone: a mark, a look at the load, a failure or a repair.
  double interruption = kNever;
  ServingStats stats;
  std::vector<Pool> pools;
  std::vector<Replica> replicas;            // of all pools, one pool after the other
  std::vector<Lane> lanes;                  // those of all replicas, in their order
  std::vector<std::uint8_t> pool_of;        // by replica
  std::vector<std::uint8_t> stage_of_pool;  // the stage of the journey that a pool serves
  bool compares = false;  // a router, a scaler or failures look at how much a replica has to do
  EventQueue events;
  Transfers transfers;
  Request request;  // the one that arrives, or that a sequence on its way is

  const std::vector<Stage>& stages() const { return problem->journey.stages; }
  std::size_t stage_of(std::size_t replica) const { return stage_of_pool[pool_of[replica]]; }
  bool is_last(std::size_t replica) const { return stage_of(replica) + 1 == stages().size(); }
  Pool& pool_at(std::size_t stage) { return pools[stages()[stage].pool]; }
  Pool& readers() { return pool_at(0); }
  Pool& writers() { return pools[stages().back().pool]; }
  Pool& home_of(std::size_t replica) { return pools[pool_of[replica]]; }
  PoolSums& sums_of(std::size_t replica) { return stats.pool(pool_of[replica]); }
  void charge(double units) {
    if (work != nullptr) work->charge(units);
  }

  // ---- requests on their way --------------------------------------------------------------------
  // The replica of a stage's pool that a request goes to.
  std::size_t route(std::size_t stage, const Request& asked, double time) {
    Pool& pool = pool_at(stage);
    ++pool.routed;
    return pool.scaler.open() == 1 ? pool.first + std::size_t(pool.scaler.takers()[0])
                                   : route_among(pool, asked, time);
  }
  std::size_t route_among(Pool& pool, const Request& asked, double time);
  // Makes `request` the one that a sequence on its way already is.
  void ask_for(const Sequence& sequence);
  void turn_away(RequestEnd why, std::size_t replica);
  // A replica takes a sequence from elsewhere, which waits there for its adapter and images like one that just arrived.
  std::int32_t take_in(std::size_t replica, const Sequence& sequence, std::int64_t output);
  // A replica expects a sequence whose prompt was read in slot `from_slot` of the replica `from` (-1: is still to be read).
  std::int32_t expect(std::size_t replica, const Sequence& sequence, std::int32_t from,
                      std::int32_t from_slot);
  void expect_no_more(std::size_t replica, std::int32_t slot);
  // The images or the adapter that a sequence waited for are there; and it has all that it waited for.
  void take_awaited(std::size_t replica, std::int32_t slot);
  void go_on(std::size_t replica, std::int32_t slot, double time);
  // Sees to the sequences that departed from a replica. True where a client was told, or another replica that goes on with one.
  bool see_off(std::size_t replica);
  // Whether one that departs may change something elsewhere.
  bool departures_are_heard() const {
    return problem->journey.stages.size() > 1 || with.adapters != nullptr || with.held != nullptr;
  }
  // Requests that are about to leave a replica's queue may have KV in tiers below the cache.
  void start_loads(std::size_t replica) {
    if (with.tiers != nullptr) load_from_below(replica);
  }
  void load_from_below(std::size_t replica);

  // ---- replicas ---------------------------------------------------------------------------------
  // After anything that may have changed when a replica has something to do, or how much it has.
  [[gnu::always_inline]] void note(std::size_t replica) {
    if (with.lockstep != nullptr && note_in_group(replica)) return;
    const Replica& here = replicas[replica];
    events.set(replica, here.next_event(), events.alone() || here.working());
    if (compares) weigh(replica);
  }
  // The same for a member of a lockstep group; false where the replica steps on its own.
  bool note_in_group(std::size_t replica);
  void weigh(std::size_t replica);
  // Other replicas of a pool take requests from now on: tells its router. Those that are no longer wanted go off when they are empty.
  void takers_changed(Pool& pool);
  // Where no replica of a pool takes requests and its size follows the load, a request that comes starts one.
  void wake(Pool& pool);
  // A replica has failed, or is off: no adapter is loaded on its devices any more.
  void lose_adapters(std::size_t replica);
  // Finds the next mark and the next interruption anew.
  void find_interruptions();

 private:
  bool answer(Sequence& sequence, std::size_t replica);
  bool takes_requests(Pool& pool, std::size_t replica);
  void switch_off_if_empty(Pool& pool, std::size_t replica);
};

}  // namespace engine
