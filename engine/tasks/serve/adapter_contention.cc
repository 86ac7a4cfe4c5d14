#include "engine/tasks/serve/adapter_contention.h"

#include <algorithm>
#include <vector>

#include "engine/tasks/serve/report_mechanisms.h"

namespace engine {
namespace {

// Devices that take part in a collective of this kind.
std::int64_t group_of(const KernelRow& row, const Parallelism& layout) {
  // Tokens on their way to experts go to all that hold some, by whichever kernels.
  if (row.op == OpName::expert_dispatch || row.op == OpName::expert_combine) {
    return std::max(layout.ep, layout.tp * layout.cp);
  }
  switch (row.family) {
    case Family::all_reduce:
    case Family::all_gather:
    case Family::reduce_scatter:
      return layout.tp * layout.cp;
    case Family::all_to_all:
      return std::max(layout.ep, layout.tp * layout.cp);
    case Family::send_recv:
      return layout.devices_of_replica();
    default:
      return 1;
  }
}

// Seconds of collectives that leave a node, over all steps of a pool.
double seconds_between_nodes(StepTable& table, const StepContext& context) {
  std::vector<KernelRow> rows;
  table.report(rows);
  double seconds = 0;
  for (const KernelRow& row : rows) {
    if (group_of(row, context.shard.parallel) > context.fabric.devices_per_node) {
      seconds += row.work.exposed().value;
    }
  }
  return seconds;
}

double slowed_by(double share) { return 1 / (1 - std::clamp(share, 0.0, 1.0) / 2); }

// After a run, in which things took as much longer as `before` says.
Contention contention_of(ServingSim& sim, std::span<const PoolSetup> pools, const Carry& carry,
                         const Contention& before) {
  const PoolSums& carried = sim.stats().pool(0);
  Contention found;
  std::array<double, 2> carrying{}, between{};
  for (std::size_t i = 0; i < 2; ++i) {
    const double on = replica_seconds(sim, pools[i], i);
    const double busy = sim.stats().pool(i).busy;
    if (!(on > 0) || !(busy > 0)) continue;
    const double collectives = seconds_between_nodes(sim.table(i), pools[i].context);
    const auto of = [i](const Carry::Load& load) { return i == 0 ? load.received : load.sent; };
    const double alone =
        carried.carried_tokens * of(carry.token) + carried.carried_states * of(carry.state);
    carrying[i] = alone * before.transfers / on;
    between[i] = collectives / (busy / pools[i].slower);
    found.transfers =
        std::max(found.transfers, slowed_by(collectives * before.collectives[i] / on));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (between[i] <= 0) continue;
    found.collectives[i] = slowed_by(carrying[i]);
    found.steps[i] = 1 + between[i] * (found.collectives[i] - 1);
  }
  return found;
}

}  // namespace

bool contends(const Scenario& scenario) {
  return scenario.prefill.present &&
         scenario.transfer.contention == TransferContention::collectives &&
         scenario.transfer.link.bandwidth.value <= 0;
}

Contention run_with_contention(std::span<const PoolSetup> given, const Journey& journey_alone,
                               ServingSim& sim, const RunPools& run) {
  constexpr int rounds = 2;  // after which nothing changes by more than some tenths of a percent
  std::vector<PoolSetup> pools(given.begin(), given.end());
  Journey journey = journey_alone;
  const Carry& alone = journey_alone.stages[1].carry;
  Carry& carry = journey.stages[1].carry;
  Contention found;
  for (int round = 0; round <= rounds; ++round) {
    for (auto load : {&Carry::token, &Carry::state}) {
      (carry.*load).sent = (alone.*load).sent * found.transfers;
      (carry.*load).received = (alone.*load).received * found.transfers;
    }
    for (std::size_t i = 0; i < pools.size(); ++i) {
      pools[i].slower = given[i].slower * found.steps[i];
    }
    run(pools, journey, round == rounds);
    if (round < rounds) found = contention_of(sim, pools, alone, found);
  }
  return found;
}

void report_contention(const Contention& contention, Metrics& metrics) {
  metrics.transfer_slowdown = contention.transfers;
  metrics.collective_slowdown = contention.collectives[0];
}

}  // namespace engine
