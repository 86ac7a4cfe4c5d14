#include "engine/serving/mechanisms/shedding.h"

#include <algorithm>

#include "engine/serving/mechanisms/images.h"

namespace engine {

bool Shedding::start(Fleet& fleet) {
  fleet_ = &fleet;
  return std::ranges::any_of(fleet.problem->pools,
                             [](const PoolSetup& pool) { return pool.settings.admission.any(); });
}

double Shedding::reading() {
  Pool& readers = fleet_->readers();
  const double seconds_per_token = readers.common.seconds_per_prompt_token;
  const Request& request = fleet_->request;
  std::int64_t cached = 0;
  if (seconds_per_token > 0 && readers.scaler.open() > 0) {
    const std::size_t reader = fleet_->route(0, request, fleet_->now);
    cached = fleet_->replicas[reader].cached_tokens(request, fleet_->now);
    --readers.routed;  // to ask is not to send
  }
  return seconds_per_token * double(request.prompt - cached);
}

Prospects::Elsewhere Shedding::at_writer(std::size_t writer, std::int64_t unread) const {
  const Stage& last = fleet_->stages().back();
  Prospects::Elsewhere elsewhere{
      .sheds_late = fleet_->problem->pools[last.pool].settings.admission.shed_late};
  if (!last.carry.tells_first_token) return elsewhere;
  elsewhere.entry = fleet_->replicas[writer].prospects().entry_wait(unread);
  // Transfers that are under way share the adapters with it, so it takes as many times longer.
  const Transfers& transfers = fleet_->transfers;
  const Carry::Load load = last.carry.of(double(fleet_->request.prompt));
  const double sharing = double(1 + transfers.under_way(writer));
  elsewhere.carrying = std::max(sharing * std::max(load.sent, load.received),
                                double(1 + transfers.in_fabric()) * load.fabric) *
                           last.carry.last_share +
                       last.carry.latency;
  return elsewhere;
}

double Shedding::images(double time) const {
  return fleet_->with.images != nullptr ? fleet_->with.images->wait(time) : 0;
}

bool Shedding::sheds_it(std::size_t index, double time, const Prospects::Elsewhere& elsewhere) {
  Replica& replica = fleet_->replicas[index];
  const Request& request = fleet_->request;
  const bool looks = replica.prospects().follows_cache(elsewhere);
  const std::int64_t cached = looks ? replica.cached_tokens(request, time) : 0;
  return replica.prospects().sheds(request, cached, time, elsewhere);
}

bool Shedding::sheds_after(double wait, std::size_t replica) {
  return fleet_->replicas[replica].prospects().sheds_after(wait, fleet_->request, reading());
}

bool Shedding::sheds_before_room(std::size_t writer, double time) {
  return fleet_->replicas[writer].prospects().sheds_before_room(fleet_->request, time, reading(),
                                                                at_writer(writer, 0));
}

bool Shedding::sheds_reading(std::size_t reader, std::size_t writer) {
  // Its own blocks are among those under way.
  Prospects::Elsewhere elsewhere = at_writer(writer, -1);
  elsewhere.sheds_late = false;  // the replica that writes has already let it pass
  elsewhere.images = images(fleet_->now);
  return sheds_it(reader, fleet_->now, elsewhere);
}

bool Shedding::sheds(std::size_t replica, Served served) {
  const Request& request = fleet_->request;
  const double now = std::max(fleet_->now, request.arrival);
  Prospects::Elsewhere elsewhere;
  // An answer of one token is written by the replica that reads the prompt.
  if (fleet_->stages().size() > 1 && served == Served::by_all_pools &&
      request.output * request.samples > 1) {
    Pool& readers = fleet_->readers();
    Pool& writers = fleet_->writers();
    if (writers.scaler.open() > 0) {
      const std::size_t writer = fleet_->route(fleet_->stages().size() - 1, request, now);
      --writers.routed;  // to ask is not to send
      if (fleet_->replicas[writer].prospects().too_many_enter()) return true;
      // As many as are before it here, all readers may have, and all writers share them.
      const double unread = double(fleet_->replicas[replica].unread()) *
                            double(readers.scaler.open()) / double(writers.scaler.open());
      elsewhere = at_writer(writer, std::int64_t(unread));
    } else if (fleet_->stages().back().carry.tells_first_token && writers.scaler.opens() < kNever) {
      elsewhere.entry = std::max(0.0, writers.scaler.opens() - now);
    }
  }
  elsewhere.images = images(now);
  return sheds_it(replica, now, elsewhere);
}

}  // namespace engine
