// Parts of the simulation that tell, when a request arrives, how late its first token would be: by what is known then.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

double ServingSim::reading() {
  Pool& readers = pools_[stages()[0].pool];
  const double seconds_per_token = readers.common.seconds_per_prompt_token;
  std::int64_t cached = 0;
  if (seconds_per_token > 0 && readers.scaler.open() > 0) {
    cached = replicas_[route(0, request_, now_)].cached_tokens(request_, now_);
    --readers.routed;  // to ask is not to send
  }
  return seconds_per_token * double(request_.prompt - cached);
}

Replica::Elsewhere ServingSim::at_writer(std::size_t writer, std::int64_t unread) const {
  const Stage& last = stages().back();
  Replica::Elsewhere elsewhere{.sheds_late =
                                   problem_->pools[last.pool].settings.admission.shed_late};
  if (!last.carry.tells_first_token) return elsewhere;
  elsewhere.entry = replicas_[writer].entry_wait(unread);
  // Transfers that are under way share the adapters with it, so it takes as many times longer.
  const Carry::Load load = last.carry.of(double(request_.prompt));
  const double sharing = double(1 + transfers_.under_way(writer));
  elsewhere.carrying = std::max(sharing * std::max(load.sent, load.received),
                                double(1 + transfers_.in_fabric()) * load.fabric) *
                           last.carry.last_share +
                       last.carry.latency;
  return elsewhere;
}

bool ServingSim::sheds_reading(std::size_t reader, std::size_t writer) {
  // Its own blocks are among those under way.
  Replica::Elsewhere elsewhere = at_writer(writer, -1);
  elsewhere.sheds_late = false;  // the replica that writes has already let it pass
  if (encoders_.any()) elsewhere.images = encoders_.would_be_there(now_) - now_;
  return replicas_[reader].sheds(request_, now_, elsewhere);
}

bool ServingSim::sheds(std::size_t replica, bool writes_it) {
  const double now = std::max(now_, request_.arrival);
  Replica::Elsewhere elsewhere;
  // An answer of one token is written by the replica that reads the prompt.
  if (stages().size() > 1 && !writes_it && request_.output * request_.samples > 1) {
    Pool& readers = pools_[stages()[0].pool];
    Pool& writers = pools_[stages().back().pool];
    if (writers.scaler.open() > 0) {
      const std::size_t writer = route(stages().size() - 1, request_, now);
      --writers.routed;  // to ask is not to send
      if (replicas_[writer].too_many_enter()) return true;
      // As many as are before it here, all readers may have, and all writers share them.
      const double unread = double(replicas_[replica].unread()) * double(readers.scaler.open()) /
                            double(writers.scaler.open());
      elsewhere = at_writer(writer, std::int64_t(unread));
    } else if (stages().back().carry.tells_first_token && writers.scaler.opens() < kNever) {
      elsewhere.entry = std::max(0.0, writers.scaler.opens() - now);
    }
  }
  if (encoders_.any()) elsewhere.images = encoders_.would_be_there(now) - now;
  return replicas_[replica].sheds(request_, now, elsewhere);
}

}  // namespace engine
