// Turns of a replica in which no sequence comes or goes, which are taken in loops of their own; and when the next one may follow.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

// A replica that goes on with a request, or a client that was told, may act at this very moment. Where no request comes at once the turn
// goes on, and counts as two events.
[[gnu::noinline]] double ServingSim::next_after_telling(std::size_t index, double next_event,
                                                        const RequestSource& source) {
  const bool clients = fleet_.is_last(index);
  const bool quiet = in_a_row_ != InARow::no && !others_moved() && fleet_.stats.nothing_to_decide();
  if (!clients || !quiet) return fleet_.now;
  const double next = std::min(next_event, source.next_arrival());
  if (fleet_.replicas[index].plans_now(next)) fleet_.charge(kWorkOfAnEvent);
  return next;
}

bool ServingSim::only_takes_blocks(std::size_t index, double next_event) {
  Replica& replica = fleet_.replicas[index];
  for (;;) {
    fleet_.with.tiers->begin_turn(index);
    if (!replica.only_takes_blocks()) return false;
    if (in_a_row_ == InARow::no || others_moved() || !is_next(replica, next_event)) return true;
    begin_turn(index);
  }
}

bool ServingSim::only_goes_on(std::size_t index, double next_event) {
  Replica& replica = fleet_.replicas[index];
  while (replica.only_goes_on() && fleet_.now + kSameMoment < next_event) {
    replica.go_on(fleet_.now);
    replica.end_turn(true);
    if (!is_next(replica, next_event)) return true;
    begin_turn(index);
  }
  return false;
}

bool ServingSim::decode_on(std::size_t index, double next_event) {
  Replica& replica = fleet_.replicas[index];
  if (!replica.may_decode_on()) return true;
  const std::int64_t turns = replica.decode_on(std::min(next_event, fleet_.interruption));
  if (turns == 0) return true;
  fleet_.charge(kWorkOfAnEvent * double(turns - 1));
  fleet_.now = replica.now();
  if (!is_next(replica, next_event)) return false;
  begin_turn(index);
  return true;
}

}  // namespace engine
