#include "engine/tasks/serve/report_fleet.h"

#include <algorithm>

namespace engine {
namespace {

void report_failures(std::span<const PoolSetup> pools, const ServingSim& sim, Metrics& metrics) {
  double count = 0, down = 0, wanted = 0;  // the latter two in seconds of replicas
  bool any = false;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const Failures& failures = sim.failures(i);
    any = any || failures.any();
    count += failures.count();
    const double repaired = failures.down_seconds(sim.makespan()) * double(pools[i].unit);
    down += repaired;
    // A replica that is off because it is not needed is neither available nor missing.
    wanted += sim.scaler(i).follows_load() ? sim.scaler(i).on_seconds(sim.makespan()) + repaired
                                           : double(pools[i].replicas) * sim.makespan();
  }
  if (!any) return;
  const ServingStats::Summary summary = sim.stats().summary();
  metrics.requests_held = summary.held;
  metrics.failures = count;
  metrics.requests_retried = summary.retried;
  metrics.requests_failed = summary.failed;
  metrics.lost_tokens = summary.failure_lost_tokens;
  if (wanted > 0) metrics.availability = 1 - down / wanted;
}

void report_class(GroupSums::ClassSums& sums, double& attainment, Seconds& ttft, Seconds& tpot) {
  if (sums.requests <= 0) return;
  attainment = sums.good / sums.requests;
  ttft = Seconds{sums.ttft.percentile(0.95)};
  tpot = Seconds{sums.tpot.percentile(0.95)};
}

void report_classes(GroupSums& groups, Metrics& metrics) {
  report_class(groups.of(RequestClass::high), metrics.slo_attainment_high, metrics.ttft_p95_high,
               metrics.tpot_p95_high);
  report_class(groups.of(RequestClass::normal), metrics.slo_attainment_normal,
               metrics.ttft_p95_normal, metrics.tpot_p95_normal);
  report_class(groups.of(RequestClass::low), metrics.slo_attainment_low, metrics.ttft_p95_low,
               metrics.tpot_p95_low);
}

// Tokens that steps make of requests of each class, where classes have acceptances of their own.
void report_accepted(const PoolSums& sums, Metrics& metrics) {
  const auto report = [&sums](RequestClass which, double& accepted) {
    const PoolSums::Verified& verified = sums.by_class[std::size_t(which)];
    if (verified.steps > 0) accepted = verified.tokens / verified.steps;
  };
  report(RequestClass::high, metrics.accepted_high);
  report(RequestClass::normal, metrics.accepted_normal);
  report(RequestClass::low, metrics.accepted_low);
}

// Tenants without a measured request have had nothing to complain about.
void report_tenants(const GroupSums& groups, bool limits, Metrics& metrics) {
  double least = 1, longest = 0, sum = 0, squares = 0, count = 0;
  for (const GroupSums::TenantSums& tenant : groups.tenants()) {
    if (tenant.requests + tenant.tokens <= 0) continue;
    count += 1;
    if (tenant.requests > 0) least = std::min(least, tenant.good / tenant.requests);
    if (tenant.answered > 0) longest = std::max(longest, tenant.ttft_seconds / tenant.answered);
    sum += tenant.tokens;
    squares += tenant.tokens * tenant.tokens;
  }
  if (squares <= 0) return;
  if (limits) metrics.slo_attainment_worst_tenant = least;
  metrics.ttft_worst_tenant = Seconds{longest};
  metrics.tenant_fairness = sum * sum / (count * squares);
}

// Replicas that had nothing to do while others with whom they share experts did.
void report_lockstep(std::span<const PoolSetup> pools, ServingSim& sim, Metrics& metrics) {
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const PoolSums& sums = sim.stats().pool(i);
    if (!pools[i].context.shard.lockstep || sums.stepping() <= 0) continue;
    double& share = i == 0 ? metrics.idle_rank_share : metrics.prefill_idle_rank_share;
    share = sums.empty_seconds / sums.stepping();
  }
}

}  // namespace

void report_fleet(const Scenario& scenario, std::span<const PoolSetup> pools, ServingSim& sim,
                  Metrics& metrics) {
  report_failures(pools, sim, metrics);
  report_lockstep(pools, sim, metrics);
  GroupSums& groups = sim.stats().groups;
  const Load& load = scenario.load;
  const bool sheds = std::ranges::any_of(
      pools, [](const PoolSetup& pool) { return pool.settings.admission.any(); });
  if (sheds) metrics.requests_shed = sim.stats().summary().shed;
  if (load.classes.any()) report_classes(groups, metrics);
  const PoolSums& writers = sim.stats().pool(0);
  report_accepted(writers, metrics);
  if (writers.reservations > 0) {
    metrics.reserve_wait = Seconds{writers.reserve_wait / writers.reservations};
  }
  const bool limits = scenario.slo.any() || scenario.capacity.slo.any() || load.classes.any();
  if (groups.tenants().size() > 1) report_tenants(groups, limits, metrics);
  if (load.turns > 1 && sim.stats().measured().requests > 0) {
    const double later = double(groups.later_turns().count()) / sim.stats().measured().requests;
    metrics.later_turns_seen = later / (1 - 1 / double(load.calls_of_session()));
  }
  if (load.turns > 1 && groups.later_turns().count() > 0) {
    metrics.ttft_later_turns = Seconds{groups.later_turns().mean()};
    metrics.ttft_later_turns_p95 = Seconds{groups.later_turns().percentile(0.95)};
    if (scenario.serving.prefix_caching && groups.history() > 0) {
      metrics.history_hit_rate = groups.history_found() / groups.history();
    }
  }
}

}  // namespace engine
