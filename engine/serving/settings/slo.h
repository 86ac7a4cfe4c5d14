// Limits an operator promises: a percentile of a latency must not exceed a time.
#pragma once

#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

// Zero: no such limit.
struct LatencyLimits {
  Seconds mean, p50, p90, p95, p99;

  // Calls `look(share, limit)` for each limit that is stated; kMeanShare stands for the mean.
  template <class Look>
  void each(Look&& look) const;
};
constexpr double kMeanShare = -1;

template <class Look>
void LatencyLimits::each(Look&& look) const {
  const auto one = [&look](double share, Seconds limit) {
    if (limit.value > 0) look(share, limit.value);
  };
  one(kMeanShare, mean);
  one(0.50, p50);
  one(0.90, p90);
  one(0.95, p95);
  one(0.99, p99);
}

struct Slo {
  LatencyLimits ttft, tpot, itl, e2e;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ttft_mean", self.ttft.mean, "limit on mean time to first token",
          non_negative_or("none"));
    visit("ttft_p50", self.ttft.p50, "limit on median time to first token",
          non_negative_or("none"));
    visit("ttft_p90", self.ttft.p90, "limit on p90 time to first token", non_negative_or("none"));
    visit("ttft_p95", self.ttft.p95, "limit on p95 time to first token", non_negative_or("none"));
    visit("ttft_p99", self.ttft.p99, "limit on p99 time to first token", non_negative_or("none"));
    visit("tpot_mean", self.tpot.mean, "limit on mean time per token", non_negative_or("none"));
    visit("tpot_p50", self.tpot.p50, "limit on median time per token", non_negative_or("none"));
    visit("tpot_p90", self.tpot.p90, "limit on p90 time per token", non_negative_or("none"));
    visit("tpot_p95", self.tpot.p95, "limit on p95 time per token", non_negative_or("none"));
    visit("tpot_p99", self.tpot.p99, "limit on p99 time per token", non_negative_or("none"));
    visit("itl_mean", self.itl.mean, "limit on mean time between tokens", non_negative_or("none"));
    visit("itl_p50", self.itl.p50, "limit on median time between tokens", non_negative_or("none"));
    visit("itl_p90", self.itl.p90, "limit on p90 time between tokens", non_negative_or("none"));
    visit("itl_p95", self.itl.p95, "limit on p95 time between tokens", non_negative_or("none"));
    visit("itl_p99", self.itl.p99, "limit on p99 time between tokens", non_negative_or("none"));
    visit("e2e_mean", self.e2e.mean, "limit on mean end-to-end time", non_negative_or("none"));
    visit("e2e_p50", self.e2e.p50, "limit on median end-to-end time", non_negative_or("none"));
    visit("e2e_p90", self.e2e.p90, "limit on p90 end-to-end time", non_negative_or("none"));
    visit("e2e_p95", self.e2e.p95, "limit on p95 end-to-end time", non_negative_or("none"));
    visit("e2e_p99", self.e2e.p99, "limit on p99 end-to-end time", non_negative_or("none"));
  }

  bool any() const;
};

// The tighter of each limit that one of them states.
Slo tighter_of(const Slo& one, const Slo& other);

// What one request is held to: the limit of the highest percentile stated, infinite without one.
Seconds request_limit(const LatencyLimits& limits);

// A capacity search runs where any limit of `slo` is set: the highest rate that meets them all, and those of the scenario's own.
struct CapacitySearch {
  Slo slo;
  double tolerance = 0.01;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("slo", self.slo,
          "limits the highest rate must meet, besides those of the point's own slo", any_value);
    visit("tolerance", self.tolerance,
          "how closely the capacity is searched: relative distance of the last rate that meets the "
          "SLO and the last that does not",
          between(1e-4, 0.5).where(
              said<"a limit of capacity.slo asks for a search", is_set<"capacity.slo">>));
  }
};

}  // namespace engine
