// Families of communication, as in product_families.h; their forms are in engine/comm.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/fitted_set.h"
#include "engine/calibration/parameter.h"

namespace engine {

// A collective inside one node has three protocols (those for small messages start fast, those for large ones reach
// the link's rate) and reduction in the switch (engine/comm/collective_form.cc).
struct CollectiveFit {
  double small_start = 0, small_peer = 0, small_share = 1;
  double middle_start = 0, middle_peer = 0, middle_share = 1;
  double large_start = 0, large_peer = 0, large_share = 1;
  double extra_message = 0, switch_share = 1, switch_start = 0, softness = 8, link_latency = 1;

  static constexpr std::array<Coordinate, 2> kCoordinates{{{"bytes"}, {"ranks"}}};
  static constexpr Features kFeatures = Features::none;

  static constexpr auto parameters() {
    using F = CollectiveFit;
    return std::to_array<Parameter<F>>({
        {"small_start",
         &F::small_start,
         "us",
         "start of the protocol for small messages",
         {5, 1, 20},
         "a1"},
        {"small_peer",
         &F::small_peer,
         "us",
         "what each peer adds to that start",
         {1.5, 0.05, 6},
         "b1"},
        {"small_share",
         &F::small_share,
         "",
         "share of the link that the protocol for small messages reaches",
         {0.1, 0.01, 1},
         "e1"},
        {"middle_start",
         &F::middle_start,
         "us",
         "start of the protocol for middling messages",
         {8, 1, 40},
         "a2"},
        {"middle_peer",
         &F::middle_peer,
         "us",
         "what each peer adds to that start",
         {1.5, 0.05, 6},
         "b2"},
        {"middle_share",
         &F::middle_share,
         "",
         "share of the link that the protocol for middling messages reaches",
         {0.4, 0.05, 1},
         "e2"},
        {"large_start",
         &F::large_start,
         "us",
         "start of the protocol for large messages",
         {20, 1, 100},
         "a3"},
        {"large_peer",
         &F::large_peer,
         "us",
         "what each peer adds to that start",
         {2, 0.05, 10},
         "b3"},
        {"large_share",
         &F::large_share,
         "",
         "share of the link that the protocol for large messages reaches",
         {0.78, 0.4, 1},
         "e3"},
        {"extra_message",
         &F::extra_message,
         "",
         "what is sent beyond the least, in shares of one device",
         {0.3, 0.01, 1},
         "dl"},
        {"switch_share",
         &F::switch_share,
         "",
         "share of the link reached when the switch reduces",
         {0.55, 0.2, 1},
         "env"},
        {"switch_start",
         &F::switch_start,
         "us",
         "start when the switch reduces",
         {20, 2, 100},
         "anv"},
        {"softness",
         &F::softness,
         "",
         "how softly the fastest protocol is taken: a large one is the least of all",
         {8, 2, 30},
         "q"},
        {"link_latency",
         &F::link_latency,
         "us",
         "latency of the link that was measured: a slower one starts slower in proportion",
         {},
         "latency"},
    });
  }
};

// A collective between nodes: the same three protocols over the devices' adapters (engine/comm/between_nodes.cc).
struct BetweenFit {
  double small_start = 0, small_doubling = 0, small_share = 1;
  double middle_start = 0, middle_doubling = 0, middle_share = 1;
  double large_start = 0, large_doubling = 0, large_share = 1;
  double softness = 8, link_latency = 1;

  static constexpr std::array<Coordinate, 3> kCoordinates{{{"bytes"}, {"nodes"}, {"per_node"}}};
  static constexpr Features kFeatures = Features::none;

  static constexpr auto parameters() {
    using F = BetweenFit;
    return std::to_array<Parameter<F>>({
        {"small_start",
         &F::small_start,
         "us",
         "start of the protocol for small messages",
         {15, 1, 100},
         "a1"},
        {"small_doubling",
         &F::small_doubling,
         "us",
         "what each doubling of the ranks adds to that start",
         {5, 0.05, 50},
         "b1"},
        {"small_share",
         &F::small_share,
         "",
         "share of the adapter that the protocol for small messages reaches",
         {0.1, 0.01, 1},
         "e1"},
        {"middle_start",
         &F::middle_start,
         "us",
         "start of the protocol for middling messages",
         {25, 1, 200},
         "a2"},
        {"middle_doubling",
         &F::middle_doubling,
         "us",
         "what each doubling of the ranks adds to that start",
         {5, 0.05, 50},
         "b2"},
        {"middle_share",
         &F::middle_share,
         "",
         "share of the adapter that the protocol for middling messages reaches",
         {0.4, 0.03, 1},
         "e2"},
        {"large_start",
         &F::large_start,
         "us",
         "start of the protocol for large messages",
         {50, 1, 500},
         "a3"},
        {"large_doubling",
         &F::large_doubling,
         "us",
         "what each doubling of the ranks adds to that start",
         {10, 0.05, 200},
         "b3"},
        {"large_share",
         &F::large_share,
         "",
         "share of the adapter that the protocol for large messages reaches",
         {0.7, 0.2, 1},
         "e3"},
        {"softness",
         &F::softness,
         "",
         "how softly the fastest protocol is taken: a large one is the least of all",
         {8, 2, 30},
         "q"},
        {"link_latency",
         &F::link_latency,
         "us",
         "latency of the link that was measured: a slower one starts slower in proportion",
         {},
         "latency"},
    });
  }
};

// Tokens sent to their experts and back (engine/comm/expert_exchange.cc). The low-latency kernels use start,
// expert_start, link_share and overlap_power; the high-throughput ones all but expert_start.
struct ExchangeFit {
  double start = 0, expert_start = 0, link_share = 1, sender_rate = 0, token_time = 0;
  double overlap_power = 1;

  static constexpr std::array<Coordinate, 4> kCoordinates{
      {{"tokens"}, {"hidden"}, {"topk"}, {"experts"}}};
  static constexpr Features kFeatures = Features::none;

  static constexpr auto parameters() {
    using F = ExchangeFit;
    return std::to_array<Parameter<F>>({
        {"start", &F::start, "us", "start of an exchange", {20, 1, 100}, "a"},
        {"expert_start",
         &F::expert_start,
         "us",
         "what each hundred experts add to the start",
         {0.5, 1e-3, 10},
         "ae"},
        {"link_share", &F::link_share, "", "share of the link reached", {0.6, 0.1, 1}, "e"},
        {"sender_rate",
         &F::sender_rate,
         "GB/s",
         "rate at which one multiprocessor sends",
         {18, 2, 60},
         "cs"},
        {"token_time",
         &F::token_time,
         "10 ns",
         "time of a token, over the multiprocessors in use",
         {0.5, 1e-4, 100},
         "ct"},
        {"overlap_power",
         &F::overlap_power,
         "",
         "how sending and moving combine: 1 their sum, a large one their maximum",
         {2, 1, 8},
         "pn"},
    });
  }
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  custom_all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_recv,
};
constexpr std::array<std::string_view, 6> enum_names(CollectiveKind) {
  return {"all_reduce",     "custom_all_reduce", "all_gather",
          "reduce_scatter", "all_to_all",        "send_recv"};
}

enum class ExchangeKind : std::uint8_t {
  low_latency_dispatch,
  low_latency_combine,
  normal_dispatch,
  normal_combine,
};
constexpr std::array<std::string_view, 4> enum_names(ExchangeKind) {
  return {"low_latency_dispatch", "low_latency_combine", "normal_dispatch", "normal_combine"};
}

struct NetworkFamilies {
  FittedTable<CollectiveFit, CollectiveKind> collective;
  FittedTable<BetweenFit, CollectiveKind> between;  // nodes
  FittedTable<ExchangeFit, ExchangeKind> exchange;

  template <class Self, class Visit>
  static void sections(Self& self, Visit&& visit) {
    each_kind<CollectiveKind>("collective", self.collective, visit);
    each_kind<CollectiveKind>("between", self.between, visit);
    each_kind<ExchangeKind>("exchange", self.exchange, visit);
  }
};

}  // namespace engine
