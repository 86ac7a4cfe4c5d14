// Tokens to the devices of their experts and back, as DeepEP-like kernels move them. Both kinds of link
// work at the same time, so the slower one decides.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/comm/collective_form.h"
#include "engine/comm/collective_time.h"
#include "engine/comm/pods.h"
#include "engine/comm/ways.h"
#include "engine/model/expert_places.h"

namespace engine {
namespace {

constexpr std::int64_t kTableRanks = 8;  // of the fitted tables, on one node

// A device that is alone on its node has no other to send to there.
constexpr double kNothingTravels = std::numeric_limits<double>::infinity();

double overlapped(double a, double b, double p) {
  const double longer = std::max(a, b);
  return longer <= 0 ? 0 : longer * std::pow(1 + std::pow(std::min(a, b) / longer, p), 1 / p);
}

// Eight-bit values travel with their scales.
double travelling_bytes(const ExpertExchange& op) {
  return op.value_bytes < 2 ? 1.03 * op.value_bytes : op.value_bytes;
}

// How the group lies on the nodes.
Spread spread_of(const ExpertExchange& op, const Fabric& fabric) {
  const double per_node = double(std::min(op.ranks, fabric.devices_per_node));
  return {.nodes = std::ceil(double(op.ranks) / per_node), .per_node = per_node};
}

// Bytes that one device sends on each kind of link. What stays on the device itself is counted inside,
// because kernels copy it like the rest.
struct Traffic {
  double inside = 0;
  double between = 0;
};

// What the device and the node that are sent most are sent, over the mean of all. Others wait for them, there and back.
struct Fullest {
  double device = 1;
  double node = 1;
};

Fullest fullest(const ExpertExchange& op, const Spread& spread) {
  return {.device = fullest_of(op, op.ranks), .node = fullest_of(op, std::int64_t(spread.nodes))};
}

// Over what is in the fits: tokens of the tables chose at random among experts on eight devices.
Fullest beyond_tables(const ExpertExchange& op, Fullest fullest) {
  ExpertExchange table = op;
  table.ranks = kTableRanks;
  table.redundant = 0;
  table.skew = 0;
  fullest.device = std::max(1.0, fullest.device / fullest_of(table, kTableRanks));
  return fullest;
}

// Every copy of a token goes straight to its expert.
Traffic single_copies(const ExpertExchange& op, const Spread& spread, const Fullest& fullest) {
  const double bytes =
      op.tokens * double(op.top_k * op.hidden) * travelling_bytes(op) * fullest.device;
  return {.inside = bytes / spread.nodes, .between = bytes * (1 - 1 / spread.nodes)};
}

// A token goes once to each node that holds one of its experts, and from there once to each device
// that does.
Traffic copies_per_node(const ExpertExchange& op, const Spread& spread, const Fullest& fullest) {
  const double bytes = op.tokens * double(op.hidden) * travelling_bytes(op);
  const double choices = double(op.top_k);
  const double nodes = nodes_within_limit(spread.nodes, {double(op.groups), double(op.top_groups)});
  const FullestPlace device{.places = spread.nodes * spread.per_node,
                            .open = nodes * spread.per_node,
                            .fuller = fullest.device};
  const FullestPlace node{.places = spread.nodes, .open = nodes, .fuller = fullest.node};
  return {.inside = bytes * tokens_on_the_fullest(device, choices),
          .between = bytes * tokens_on_the_fullest(node, choices) * (1 - 1 / spread.nodes)};
}

// What a device reaches of its links, in bytes a microsecond, and their latencies in microseconds.
struct Rates {
  double inside;
  double between;
  double hop;           // between nodes
  double near = 1;      // inside a node
  double near_fit = 1;  // of the links inside the nodes that were measured
};

// A start that was measured inside a node, where a message crosses its links so often.
double near_start(double fitted, double crossings, const Rates& rates) {
  return start_over_link(fitted, crossings, rates.near, rates.near_fit);
}

// The longer of the two ways; a link that nothing takes may be missing.
double moving_time(const Traffic& traffic, const Rates& rates, double inside_share) {
  const double inside = traffic.inside > 0 ? traffic.inside / (rates.inside * inside_share) : 0;
  const double between = traffic.between > 0 ? traffic.between / rates.between : 0;
  return std::max(inside, between);
}

// `sent`: by a device on average.
CollectiveTime timed(double start, double moving, const Traffic& sent, Algorithm algorithm) {
  return {.latency = Seconds{start * 1e-6},
          .transfer = Seconds{moving * 1e-6},
          .bytes = Bytes{sent.inside + sent.between},
          .algorithm = algorithm};
}

CollectiveTime low_latency(const ExpertExchange& op, const Spread& spread, const Fullest& fullest,
                           const Rates& rates, const ExchangeFit& fit) {
  const Traffic traffic = single_copies(op, spread, fullest);
  // Tokens and the flags behind them are written straight to where they are read.
  const double fitted = fit.start + fit.expert_start * double(op.experts) / 100;
  const double start = near_start(fitted, 1, rates) + rates.hop;
  const double moving = moving_time(traffic, rates, fit.link_share);
  return timed(start, overlapped(start, moving, fit.overlap_power) - start,
               single_copies(op, spread, {}), Algorithm::low_latency);
}

Algorithm forwarding(const Spread& spread) {
  return spread.nodes > 1 ? Algorithm::hierarchical : Algorithm::direct;
}

// Ways between nodes, one after the other, of kernels for many tokens. Before tokens leave, nodes meet, tell one another how many come and
// hear that this has arrived, and meet twice more (notify_dispatch of DeepEP's internode.cu); before sums come back they meet twice
// (cached_notify). Then a token is received, and forwarded.
double hops_between_nodes(ExpertExchange::Way way) {
  const double told = way == ExpertExchange::Way::dispatch ? 5 : 2;
  return told + 2;
}

// The same inside a node (notify_dispatch and cached_notify_combine of its intranode.cu): devices meet three times, and twice; then a
// token is received.
double crossings_inside(ExpertExchange::Way way) {
  return (way == ExpertExchange::Way::dispatch ? 3 : 2) + 1;
}

// What the same kernels take more, each way, as soon as tokens are forwarded between nodes, however few they are. The tables have one
// node. Read off one served run whose decodes use them (tools/calibrate/ACCURACY.md, kernels for many tokens between nodes).
constexpr double kForwarding = 121;  // us

CollectiveTime normal(const ExpertExchange& op, const Spread& spread, const Fullest& fullest,
                      const Rates& rates, const ExchangeFit& fit) {
  const Traffic traffic = copies_per_node(op, spread, fullest);
  const double senders = double(op.multiprocessors);
  const double start = near_start(fit.start, crossings_inside(op.way), rates) +
                       fit.token_time * op.tokens / senders / 100 +
                       hops_between_nodes(op.way) * rates.hop +
                       (spread.nodes > 1 ? kForwarding : 0);
  const double sending = (traffic.inside + traffic.between) / (senders * fit.sender_rate * 1e3);
  const double moving =
      overlapped(sending, moving_time(traffic, rates, fit.link_share), fit.overlap_power);
  return timed(start, moving, copies_per_node(op, spread, {}), forwarding(spread));
}

CollectiveTime faster(const CollectiveTime& a, const CollectiveTime& b) {
  return b.total() < a.total() ? b : a;
}

// By the links' datasheets; what a device keeps does not travel.
CollectiveTime datasheet_time(const ExpertExchange& op, const Spread& spread,
                              const Fullest& fullest, const Rates& rates, const Path& inside,
                              Seconds launch) {
  const double near = spread.per_node > 1 ? inside.latency * 1e6 : 0;
  const auto way = [&](auto traffic_of, double hops, Algorithm algorithm) {
    const auto travelling = [&](const Fullest& load) {
      Traffic traffic = traffic_of(op, spread, load);
      traffic.inside *= 1 - 1 / spread.per_node;
      return traffic;
    };
    const double start = launch.value * 1e6 + std::max(near, hops * rates.hop);
    return timed(start, moving_time(travelling(fullest), rates, 1), travelling({}), algorithm);
  };
  const CollectiveTime straight = way(single_copies, 1, Algorithm::low_latency);
  const CollectiveTime forwarded = way(copies_per_node, 2, forwarding(spread));
  switch (op.kernels) {
    case ExpertExchange::Kernels::low_latency:
      return straight;
    case ExpertExchange::Kernels::normal:
      return forwarded;
    case ExpertExchange::Kernels::fastest:
    case ExpertExchange::Kernels::gathered:
      break;
  }
  return faster(straight, forwarded);
}

// Share of its adapter that a device reaches between nodes: that of large sends, since the tables of
// exchanges have one node only.
double adapter_share(const Device& device, const Calibration& calibration) {
  constexpr auto sends = static_cast<std::size_t>(CollectiveKind::send_recv);
  const auto* set = find_set(calibration.between[sends], choose_set(device));
  return set == nullptr
             ? 1
             : std::max({set->fit.small_share, set->fit.middle_share, set->fit.large_share});
}

std::optional<CollectiveTime> fitted_time(const ExpertExchange& op, const Spread& spread,
                                          const Fullest& fullest, Rates rates, const Path& inside,
                                          const Device& device, const Calibration& calibration) {
  const ParameterSet chosen = link_set(device, inside);
  rates.between *= adapter_share(device, calibration);
  constexpr auto exchanges = static_cast<std::size_t>(CollectiveKind::all_to_all);
  const auto* near = find_set(calibration.collective[exchanges], chosen);
  if (spread.per_node > 1 && near != nullptr) {
    rates.near = inside.latency * 1e6;
    rates.near_fit = near->fit.link_latency;
  }
  const bool combine = op.way == ExpertExchange::Way::combine;
  const Coordinates shape = coordinates(op.tokens, op.hidden, op.top_k, op.experts);
  std::optional<CollectiveTime> best;
  const auto consider = [&](ExchangeKind kind, auto form) {
    const auto* set = find_set(calibration.exchange[static_cast<std::size_t>(kind)], chosen);
    if (set == nullptr) return;
    CollectiveTime time = form(op, spread, fullest, rates, set->fit);
    time.extrapolated = op.ranks != kTableRanks || spread.nodes > 1;
    label(time, 0, *set, shape);
    best = best ? faster(*best, time) : time;
  };
  if (op.kernels != ExpertExchange::Kernels::normal) {
    consider(combine ? ExchangeKind::low_latency_combine : ExchangeKind::low_latency_dispatch,
             low_latency);
  }
  if (op.kernels != ExpertExchange::Kernels::low_latency) {
    consider(combine ? ExchangeKind::normal_combine : ExchangeKind::normal_dispatch, normal);
  }
  return best;
}

// With so much for the fullest of them.
CollectiveTime loaded_time(const ExpertExchange& op, const Spread& spread, const Fullest& fullest,
                           const Fabric& fabric, const Device& device,
                           const Calibration* calibration) {
  const Path inside = path_inside(fabric, spread.per_node);
  const Path between = path_of(between_pods(Pattern::all_to_all, spread, fabric), spread.nodes);
  const bool direct =
      (spread.per_node == 1 || inside.any_to_any) && (spread.nodes == 1 || between.any_to_any);
  if (direct) {
    const Rates rates{.inside = spread.per_node > 1 ? inside.bandwidth / 1e6 : kNothingTravels,
                      .between = between.bandwidth / 1e6,
                      .hop = spread.nodes > 1 ? between.latency * 1e6 : 0};
    if (calibration != nullptr) {
      const Fullest beyond = beyond_tables(op, fullest);
      if (const auto fitted =
              fitted_time(op, spread, beyond, rates, inside, device, *calibration)) {
        return *fitted;
      }
    }
    return datasheet_time(op, spread, fullest, rates, inside, device.launch_latency);
  }
  // Where devices reach one another only through neighbours, copies pass from one to the next.
  const double bytes = op.tokens * double(op.top_k * op.hidden) * travelling_bytes(op);
  return collective_time({.pattern = Pattern::all_to_all,
                          .bytes = bytes,
                          .ranks = op.ranks,
                          .fullest = fullest.device},
                         fabric, device, calibration);
}

}  // namespace

CollectiveTime exchange_time(const ExpertExchange& op, const Fabric& fabric, const Device& device,
                             const Calibration* calibration) {
  if (op.ranks <= 1) return {};
  if (op.kernels == ExpertExchange::Kernels::gathered) {
    // Every device gets the same, whichever experts are popular.
    if (op.receiver == ExpertExchange::Receiver::excess) return {};
    return collective_time(gathered_call(op), fabric, device, calibration);
  }
  const Spread spread = spread_of(op, fabric);
  const auto with = [&](const Fullest& load) {
    return loaded_time(op, spread, load, fabric, device, calibration);
  };
  if (op.receiver == ExpertExchange::Receiver::mean) return with({});
  CollectiveTime time = with(fullest(op, spread));
  if (op.receiver == ExpertExchange::Receiver::excess) {
    time.transfer = std::max(Seconds{0}, time.total() - with({}).total());
    time.latency = Seconds{0};
    time.bytes = Bytes{0};
  }
  return time;
}

}  // namespace engine
