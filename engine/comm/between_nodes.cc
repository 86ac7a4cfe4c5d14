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

// Ways between nodes, one after the other: down a tree of nodes, and up as well where something is summed.
double hops_of(Pattern pattern, double nodes) {
  const bool direct = pattern == Pattern::send_recv || pattern == Pattern::all_to_all;
  return direct ? 1 : (pattern == Pattern::all_reduce ? 2 : 1) * std::log2(nodes);
}

// The fits between nodes are of few machines, whose networks reach half to two thirds of what their adapters could carry.
// Large messages of others may reach what headers of packets and waiting for credits leave of it.
constexpr double kMostOfAnAdapter = 0.925;

// A time beyond what the set was fitted to: it may be as short as adapters allow.
void widen(CollectiveTime& time, double moved_us) {
  const double least = time.latency.value + moved_us * 1e-6 / kMostOfAnAdapter;
  time.low = std::min(time.low, least / time.total().value);
}

// The three protocols of a fit; `start` says how long one takes to start, from its own start and what a doubling adds.
template <class Start>
Ways between_ways(const BetweenFit& fit, double sent, double rate, const Start& start) {
  const auto way = [&](double own, double doubling, double share) {
    return Way{start(own, doubling), sent / (rate * share), sent, Algorithm::hierarchical};
  };
  Ways ways;
  ways.add(way(fit.small_start, fit.small_doubling, fit.small_share));
  ways.add(way(fit.middle_start, fit.middle_doubling, fit.middle_share));
  ways.add(way(fit.large_start, fit.large_doubling, fit.large_share));
  return ways;
}

// A collective that was not measured between such nodes, put together from what was: the same collective inside one node, and sends
// between two. Up and down a tree of nodes a sum takes two sends per level, another pattern one; the kernel starts once. With few pieces
// one part comes after the other; with many pieces the slower of node and adapters is busy all the time but for the first piece.
CollectiveTime composed(const InsideNode& inside, double sent, double hops, const Path& path,
                        const FittedSet<BetweenFit>& sends) {
  const BetweenFit& fit = sends.fit;
  CollectiveTime time =
      between_ways(fit, sent, path.bandwidth / 1e6, [&](double own, double doubling) {
        const double send =
            start_over_link(own + doubling, 1, path.latency * 1e6, fit.link_latency);
        return hops * std::max(0.0, send - sends.launch);
      }).fastest(fit.softness);
  const Seconds outside = time.total();
  const Seconds within = std::max(inside.whole, Seconds{sends.launch * 1e-6});
  const Seconds total = std::min(within + outside, std::max(within, outside) + inside.piece);
  time.latency = std::min(total, time.latency + within);
  time.transfer = total - time.latency;
  return time;
}

}  // namespace

std::optional<CollectiveTime> fitted_between(Pattern pattern, double bytes, const Spread& spread,
                                             const InsideNode& inside, const LinkRates& link,
                                             const Device& device, const Calibration& calibration) {
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
  const auto* sends = set_of(CollectiveKind::send_recv);
  if (own == nullptr && pattern == Pattern::all_to_all) own = sends;
  const auto* set = own != nullptr ? own : set_of(CollectiveKind::all_reduce);
  if (set == nullptr) return std::nullopt;
  const double rate = path.bandwidth / 1e6;
  const AdapterLoad load = adapter_load(pattern, bytes, spread, path.in_network);
  const bool of_generation = own != nullptr && sets_of(kind_of(pattern)).find(chosen) == set;
  const bool others = set->tier != Tier::measured && !of_generation;
  const double hops = hops_of(pattern, spread.nodes);
  const bool of_sends = own != nullptr && own == sends;
  CollectiveTime time;
  // Sums were measured between two nodes of A100s, whose network nobody named: they speak for no others where sends are known.
  if (others && sends != nullptr && !of_sends) {
    time = composed(inside, load.ring, hops, path, *sends);
  } else {
    // One pass of the two that an all-reduce takes.
    const double passes = own != nullptr ? 1 : 0.5;
    // Two nodes were measured. A further level of nodes takes at least its ways over the link.
    const double doublings = std::log2(2 * spread.per_node);
    const double levels = std::log2(spread.nodes / 2);
    const double level = (hops_of(pattern, 4) - hops_of(pattern, 2)) * set->fit.link_latency;
    time = between_ways(set->fit, load.ring, rate, [&](double start, double doubling) {
             return start_over_link(passes * (start + doubling * doublings) +
                                        std::max(passes * doubling, level) * levels,
                                    hops, path.latency * 1e6, set->fit.link_latency);
           }).fastest(set->fit.softness);
  }
  time.extrapolated = measured == nullptr || (is_foreign(chosen) && set->tier != Tier::measured);
  label(time, load.least / rate, *set, coordinates(bytes, spread.nodes, spread.per_node));
  if (others || (time.extrapolated && set->tier != Tier::measured)) widen(time, load.ring / rate);
  return time;
}

}  // namespace engine
