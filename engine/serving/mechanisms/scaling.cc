#include "engine/serving/mechanisms/scaling.h"

#include <algorithm>

#include "engine/serving/mechanisms/held_requests.h"

namespace engine {

bool Scaling::start(Fleet& fleet) {
  fleet_ = &fleet;
  routed_at_look_.assign(fleet.pools.size(), 0);
  return std::ranges::any_of(fleet.pools,
                             [](const Pool& pool) { return pool.scaler.follows_load(); });
}

double Scaling::next() const {
  double next = kNever;
  for (const Pool& pool : fleet_->pools) next = std::min(next, pool.scaler.next());
  return next;
}

void Scaling::act(double time) {
  Fleet& fleet = *fleet_;
  fleet.now = std::max(fleet.now, time);
  bool awake = false;
  for (std::size_t p = 0; p < fleet.pools.size(); ++p) {
    Pool& pool = fleet.pools[p];
    if (pool.scaler.next() > time) continue;
    const bool nobody = pool.scaler.open() == 0;
    std::int64_t inside = fleet.with.held->of_pool(p);
    for (std::size_t i = 0; i < pool.count; ++i) {
      inside += fleet.replicas[pool.first + i].outstanding();
    }
    const bool looks = pool.scaler.looks();
    pool.scaler.act(double(inside), pool.routed > routed_at_look_[p]);
    if (looks) routed_at_look_[p] = pool.routed;
    fleet.takers_changed(pool);
    awake = awake || (nobody && pool.scaler.open() > 0);
  }
  if (awake) fleet.with.held->send_all();
}

bool Scaling::size_is_known(const MeasuredPart& part) const {
  const double settling = fleet_->stats.watch().plan().fleet;
  if (settling <= 0 || part.empty()) return true;
  const double rounds = part.span() / settling;
  const std::size_t batches = batches_of_rounds(rounds);
  std::vector<double> sizes(batches);
  bool known = true;
  for (const Pool& pool : fleet_->pools) {
    if (!pool.scaler.follows_load()) continue;
    for (std::size_t i = 0; i < batches; ++i) {
      const double from = part.from + part.span() * double(i) / double(batches);
      const double until = part.from + part.span() * double(i + 1) / double(batches);
      sizes[i] = pool.scaler.on_seconds(from, until) / (until - from);
    }
    known = known && engine::size_is_known(sizes, rounds);
  }
  return known;
}

}  // namespace engine
