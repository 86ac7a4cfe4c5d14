// The discrete-event simulation of a served load: requests arrive, a router spreads them over the replicas of a pool, and replicas run
// steps. What else a point asks for is a class of its own in mechanisms/. engine/serving/README.md follows one request through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/figures/referee.h"
#include "engine/serving/mechanisms/mechanism_states.h"

namespace engine {

// Kept from one run to the next, so that its memory is used again. Results do not depend on what ran before.
class ServingSim {
 public:
  void run(const ServingProblem& problem);

  ServingStats& stats() { return fleet_.stats; }
  const ServingStats& stats() const { return fleet_.stats; }
  StepTable& table(std::size_t pool = 0) { return fleet_.pools[pool].table; }
  RequestMemory& memory() { return memory_; }
  // Those of all pools, one pool after the other.
  const std::vector<Replica>& replicas() const { return fleet_.replicas; }
  const EventQueue& events() const { return fleet_.events; }
  const LeastOf<std::int64_t>& weights(std::size_t pool = 0) const {
    return fleet_.pools[pool].weights;
  }
  const Encoders& encoders() const { return states_.images.encoders(); }
  double makespan() const { return makespan_; }
  // Requests that are still inside when nothing more happens. They wait for one another, which is a mistake of the simulation.
  double stuck() const { return stuck_; }
  double idle_seconds() const {
    double seconds = 0;
    for (std::size_t i = 0; i < fleet_.pools.size(); ++i) seconds += idle_seconds(i);
    return seconds;
  }
  double idle_seconds(std::size_t pool) const;
  const Scaler& scaler(std::size_t pool) const { return fleet_.pools[pool].scaler; }
  const Failures& failures(std::size_t pool) const { return states_.outages.of(pool); }
  // Whether what failures do to figures is known: none are stated, or there were many of them.
  bool failures_are_known() const { return states_.outages.known(); }
  const RunVerdict& verdict() const { return referee_.verdict(); }
  // Requests or sessions of the run length that was found long enough.
  std::int64_t units() const { return stats().watch().units(); }

 private:
  // May a replica take its next turn without a look at what happens elsewhere? Found once, when a run starts.
  enum class InARow : std::uint8_t {
    no,         // somebody looks at every event
    turns,      // where its next event comes before all others
    parts,      // and turns that only begin the next part of a stretch concern nobody else
    pipelines,  // and some replicas are pipelines, whose lanes mostly decode on
  };
  InARow in_a_row() const;

  void start(const ServingProblem& problem);
  // Takes the next event; false where there is none.
  bool take_event(RequestSource& source);
  void interrupt();
  void mark(double time);
  void pass_edge(double time);
  FleetSeen fleet_seen(const MeasuredPart& part) const;
  void arrive(RequestSource& source);
  // Whether the pools on its way could serve the request that arrives if they had nothing else to do.
  bool ever_fits(Served served) const {
    const Request& request = fleet_.request;
    return request.prompt + request.output <= fits_everywhere_ || fits_on_its_way(served);
  }
  bool fits_on_its_way(Served served) const;
  void take_delivery();

  // ---- turns ------------------------------------------------------------------------------------
  // A replica's turn, and its next ones as long as nothing happens elsewhere before `next_event`.
  void advance(std::size_t replica, double next_event, RequestSource& source);
  // Takes one turn. True where the replica also has the next event, and the turn changed nothing for others but when the next
  // request or KV comes; `next_event` then says that.
  bool take_turn(std::size_t replica, double& next_event, RequestSource& source);
  // Whether the replica's next event comes before anything that could happen elsewhere.
  bool is_next(const Replica& replica, double next_event) const {
    const double event = replica.next_event();
    return event + kSameMoment < std::min(next_event, fleet_.interruption);
  }
  void begin_turn(std::size_t replica) {
    fleet_.charge(kWorkOfAnEvent);
    fleet_.now = fleet_.replicas[replica].next_event();
  }
  // Takes turns of a pipeline in which its lanes only decode on. True where another kind of turn of the same replica comes next;
  // that turn has then begun.
  bool decode_on(std::size_t replica, double next_event);
  // Takes turns in which a step only takes blocks while other replicas look on (`Stretches::take_next_blocks`). False where another
  // kind of turn of the same replica comes next; that turn has then begun.
  bool only_takes_blocks(std::size_t replica, double next_event);
  // Takes turns that only begin the next part of a stretch (`Stretches::has_next_part`). Returns as `only_takes_blocks` does.
  bool only_goes_on(std::size_t replica, double next_event);
  // The earliest event elsewhere after clients or other replicas were told of what departed. It is the present moment where others
  // may have a turn before the replica plans.
  double next_after_telling(std::size_t replica, double next_event, const RequestSource& source);
  // Whether the present turn has brought events of other replicas forward.
  bool others_moved() const {
    return fleet_.with.tiers != nullptr && fleet_.with.tiers->others_moved();
  }

  Fleet fleet_;
  MechanismStates states_;
  InARow in_a_row_ = InARow::no;
  std::int64_t fits_everywhere_ = 0;  // tokens of prompt and output that every stage can hold
  RequestMemory memory_;
  StepPlan scratch_plan_;  // of the replica that plans
  Referee referee_;
  double makespan_ = 0;
  double stuck_ = 0;
};

}  // namespace engine
