#include "engine/comm/collective_form.h"

#include <algorithm>
#include <cmath>

#include "engine/comm/ways.h"

namespace engine {

CollectiveKind kind_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::all_reduce:
      return CollectiveKind::all_reduce;
    case Pattern::all_gather:
      return CollectiveKind::all_gather;
    case Pattern::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case Pattern::all_to_all:
      return CollectiveKind::all_to_all;
    case Pattern::send_recv:
      break;
  }
  return CollectiveKind::send_recv;
}

namespace {

// What one device must send at least.
double least_bytes(Pattern pattern, double bytes, double ranks, bool in_network) {
  if (pattern == Pattern::send_recv) return bytes;
  const double share = (ranks - 1) / ranks * bytes;
  if (pattern != Pattern::all_reduce) return share;
  return in_network ? std::min(bytes, 2 * share) : 2 * share;
}

// Links that a message crosses one after the other where devices read and write one another's memory: a flag, then a read, which is
// there and back.
constexpr double kOneShotCrossings = 3;
constexpr double kTwoShotCrossings = 2 * kOneShotCrossings;
constexpr double kSwitchCrossings = 2;  // to the switch and back

double start_of(double fitted, double crossings, const Path& path, const CollectiveFit& fit) {
  return start_over_link(fitted, crossings, path.latency * 1e6, fit.link_latency);
}

Way through_switch(double bytes, const Path& path, const CollectiveFit& fit) {
  return {start_of(fit.switch_start, kSwitchCrossings, path, fit),
          bytes / (path.bandwidth / 1e6 * fit.switch_share), bytes, Algorithm::in_network};
}

// General collectives run one of three protocols, from low latency to full rate, each a start, a start
// per peer and a share of the link.
Ways general_ways(CollectiveKind kind, double bytes, double ranks, const Path& path,
                  const CollectiveFit& fit) {
  const double rate = path.bandwidth / 1e6;
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double sent = passes * (ranks - 1) / ranks * bytes;
  const double moved = kind == CollectiveKind::send_recv
                           ? bytes / rate
                           : passes * (ranks - 1 + fit.extra_message) / ranks * bytes / rate;
  const Algorithm algorithm =
      kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv ? Algorithm::direct
                                                                              : Algorithm::ring;
  const double crossings = algorithm == Algorithm::ring ? passes * (ranks - 1) : 1;
  const auto start = [&](double own, double peer) {
    return start_of(own + peer * (ranks - 1), crossings, path, fit);
  };
  Ways ways;
  ways.add({start(fit.small_start, fit.small_peer), moved / fit.small_share, sent, algorithm});
  ways.add({start(fit.middle_start, fit.middle_peer), moved / fit.middle_share, sent, algorithm});
  ways.add({start(fit.large_start, fit.large_peer), moved / fit.large_share, sent, algorithm});
  if (path.in_network && kind == CollectiveKind::all_reduce && ranks > 4) {
    ways.add(through_switch(bytes, path, fit));
  }
  return ways;
}

// Engines' own kernels.
Ways custom_ways(double bytes, double ranks, const Path& path, const CollectiveFit& fit,
                 bool only_one_shot) {
  const double rate = path.bandwidth / 1e6;
  const double peers = ranks - 1;
  const double share = peers / ranks * bytes;
  Ways ways;
  const auto start = [&](double own, double peer, double crossings) {
    return start_of(own + peer * peers, crossings, path, fit);
  };
  ways.add({start(fit.small_start, fit.small_peer, kOneShotCrossings),
            peers * bytes / (rate * fit.small_share), peers * bytes, Algorithm::one_shot});
  if (only_one_shot) return ways;
  ways.add({start(fit.middle_start, fit.middle_peer, kTwoShotCrossings),
            2 * share / (rate * fit.middle_share), 2 * share, Algorithm::two_shot});
  ways.add({start(fit.large_start, fit.large_peer, 2 * peers),
            2 * (peers + fit.extra_message) / ranks * bytes / (rate * fit.large_share), 2 * share,
            Algorithm::ring});
  if (path.in_network && ranks > 4) ways.add(through_switch(bytes, path, fit));
  return ways;
}

}  // namespace

ParameterSet link_set(const Device& device, const Path& path) {
  const ParameterSet chosen = choose_set(device);
  if (chosen == ParameterSet::none) return chosen;
  return path.bus ? ParameterSet::pooled : chosen;
}

void label(CollectiveTime& time, double least_us, const SetFacts& set, const Coordinates& shape) {
  double factor = 1;
  if (!set.points.empty()) factor = std::exp(set.points.residual_at(shape));
  factor = std::max(factor, least_us * 1e-6 / time.total().value);
  time.latency *= factor;
  time.transfer *= factor;
  time.tier = set.tier;
  time.extrapolated = time.extrapolated || !set.envelope.contains(shape);
  time.low = set.low;
  time.high = set.high;
}

std::optional<CollectiveTime> fitted_collective(Pattern pattern, double bytes, double ranks,
                                                const Path& path, Library library,
                                                const Device& device,
                                                const Calibration& calibration) {
  const ParameterSet chosen = link_set(device, path);
  if (!path.any_to_any || path.bandwidth <= 0 || bytes <= 0) return std::nullopt;
  const double rate = path.bandwidth / 1e6;
  const double least = least_bytes(pattern, bytes, ranks, path.in_network) / rate;
  const Coordinates shape = coordinates(bytes, ranks);
  std::optional<CollectiveTime> best;
  const auto consider = [&](CollectiveKind kind) {
    const auto* set = find_set(calibration.collective[static_cast<std::size_t>(kind)], chosen);
    if (set == nullptr) return;
    const Ways ways = kind == CollectiveKind::custom_all_reduce
                          ? custom_ways(bytes, ranks, path, set->fit, library == Library::one_shot)
                          : general_ways(kind, bytes, ranks, path, set->fit);
    CollectiveTime time = ways.fastest(set->fit.softness);
    time.extrapolated = is_foreign(chosen) && set->tier != Tier::measured;
    label(time, least, *set, shape);
    if (!best || time.total() < best->total()) best = time;
  };
  if (library != Library::custom) consider(kind_of(pattern));
  if (pattern == Pattern::all_reduce && library != Library::general) {
    consider(CollectiveKind::custom_all_reduce);
  }
  return best;
}

}  // namespace engine
