// Collectives between nodes. Libraries thread rings and trees through all devices so that every adapter
// carries its share at once; links inside the nodes are fast enough to keep up, or bound the whole
// (collective_time.cc).
#include <algorithm>
#include <cmath>

#include "engine/comm/collective_form.h"
#include "engine/comm/ways.h"

namespace engine {
namespace {

// What one adapter must send at least, and what a ring through all devices makes it send.
struct AdapterLoad {
  double least;
  double ring;
};

AdapterLoad adapter_load(Pattern pattern, double bytes, const Spread& spread, bool in_network) {
  const double ranks = spread.nodes * spread.per_node;
  const double outside = (spread.nodes - 1) / spread.nodes;
  switch (pattern) {
    case Pattern::send_recv:
      return {bytes, bytes};
    case Pattern::all_to_all:
      return {outside * bytes, outside * bytes};
    case Pattern::all_gather:
    case Pattern::reduce_scatter:
      return {outside * bytes / spread.per_node, (ranks - 1) / ranks * bytes / spread.per_node};
    case Pattern::all_reduce:
      break;
  }
  const double share = bytes / spread.per_node;
  // Switches that sum take each input once.
  const double ring = 2 * (ranks - 1) / ranks * share;
  return {std::min(2 * outside, in_network ? 1.0 : 2.0) * share,
          in_network ? std::min(ring, share) : ring};
}

// The fits between nodes are of few machines, whose networks reach half to two thirds of what their adapters could carry.
// Large messages of others may reach what headers of packets and waiting for credits leave of it.
constexpr double kMostOfAnAdapter = 0.925;

// A time beyond what the set was fitted to: it may be as short as adapters allow.
void widen(CollectiveTime& time, double moved_us) {
  const double least = time.latency.value + moved_us * 1e-6 / kMostOfAnAdapter;
  time.low = std::min(time.low, least / time.total().value);
}

Ways between_ways(const AdapterLoad& load, double doublings, double rate, double scale,
                  const BetweenFit& fit) {
  const double moved = load.ring / rate;
  const auto way = [&](double start, double each, double share) {
    return Way{scale * (start + each * doublings), moved / share, load.ring,
               Algorithm::hierarchical};
  };
  Ways ways;
  ways.add(way(fit.small_start, fit.small_doubling, fit.small_share));
  ways.add(way(fit.middle_start, fit.middle_doubling, fit.middle_share));
  ways.add(way(fit.large_start, fit.large_doubling, fit.large_share));
  return ways;
}

}  // namespace

std::optional<CollectiveTime> fitted_between(Pattern pattern, double bytes, const Spread& spread,
                                             const LinkRates& link, const Device& device,
                                             const Calibration& calibration) {
  const Path path = path_of(link, spread.nodes);
  if (!path.any_to_any || path.bandwidth <= 0 || bytes <= 0) return std::nullopt;
  const ParameterSet chosen = choose_set(device);
  const auto sets_of = [&](CollectiveKind kind) -> const auto& {
    return calibration.between[static_cast<std::size_t>(kind)];
  };
  const auto set_of = [&](CollectiveKind kind) { return find_set(sets_of(kind), chosen); };
  const auto* measured = set_of(kind_of(pattern));
  const auto* own = measured;
  // Libraries make an all-to-all of sends, and other collectives of rings, as they do sums.
  if (own == nullptr && pattern == Pattern::all_to_all) own = set_of(CollectiveKind::send_recv);
  const auto* set = own != nullptr ? own : set_of(CollectiveKind::all_reduce);
  if (set == nullptr) return std::nullopt;
  const double rate = path.bandwidth / 1e6;
  const AdapterLoad load = adapter_load(pattern, bytes, spread, path.in_network);
  // One pass of the two that an all-reduce takes.
  const double passes = own != nullptr ? 1 : 0.5;
  const double scale = passes * path.latency * 1e6 / set->fit.link_latency;
  const double doublings = std::log2(spread.nodes * spread.per_node);
  const bool of_generation = own != nullptr && sets_of(kind_of(pattern)).find(chosen) == set;
  const bool others = set->tier != Tier::measured && !of_generation;
  BetweenFit fit = set->fit;
  // Sums were measured between two nodes of A100s, whose network nobody named. A ring's neighbours send to one another: elsewhere
  // large messages reach what sends do.
  const auto* sends = others ? set_of(CollectiveKind::send_recv) : nullptr;
  if (sends != nullptr) fit.large_share = std::max(fit.large_share, sends->fit.large_share);
  CollectiveTime time = between_ways(load, doublings, rate, scale, fit).fastest(fit.softness);
  time.extrapolated = measured == nullptr || (is_foreign(chosen) && set->tier != Tier::measured);
  label(time, load.least / rate, *set, coordinates(bytes, spread.nodes, spread.per_node));
  if (others || (time.extrapolated && set->tier != Tier::measured)) widen(time, load.ring / rate);
  return time;
}

}  // namespace engine
