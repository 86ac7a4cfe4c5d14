#include "engine/sharing/shared_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/step/together.h"

namespace engine {
namespace {

// The share of the memory's peak bandwidth that kernels get at best.
constexpr double kBandwidthToHave = 0.9;

// In streams kernels of the two take turns: one waits for most of the other's present kernel, but for no more than some
// waves of thread blocks of a long one.
constexpr double kWaitedFor = 0.7;
constexpr Seconds kLongKernel{300e-6};

bool divides_multiprocessors(SharingMode mode) {
  return mode == SharingMode::spatial || mode == SharingMode::mig;
}

// One resource, of which either gets its share, and what the other leaves. `need`: for full speed.
Speeds shared_out(double main_need, double neighbour_need, double main_share) {
  const auto speed = [](double got, double need) { return need > got ? got / need : 1.0; };
  const double main_least = std::min(main_need, main_share);
  const double neighbour_least = std::min(neighbour_need, 1 - main_share);
  return {.main = speed(std::max(main_share, 1 - neighbour_least), main_need),
          .neighbour = speed(std::max(1 - main_share, 1 - main_least), neighbour_need)};
}

Speeds in_turns(const Demand& main, const Demand& neighbour, const SharingSettings& sharing,
                Seconds change) {
  // Turns change while the devices have work, whoever's it is: one whose kernels leave some of its turn to the other takes it back with
  // its next kernel. So what is lost does not follow from how the time is shared, and more of it never makes a model slower.
  const double worked = std::min(1.0, main.busy + neighbour.busy);
  const double kept = 1 - worked * (change / (2 * sharing.slice + change));
  return shared_out(main.busy / kept, neighbour.busy / kept, sharing.share);
}

// Speeds that kernels of `one` have when each waits for a kernel of `other`, as often as that has one to run.
double speed_between(const Demand& one, const Demand& other) {
  if (one.kernel.value <= 0 || other.kernel.value <= 0) return 1;
  const Seconds wait = other.kernel * (kWaitedFor / (1 + other.kernel / kLongKernel));
  return 1 / (1 + other.busy * one.busy * (wait / one.kernel));
}

// No resource does more than it can: both slow down alike.
Speeds within_limits(const Demand& main, const Demand& neighbour, Speeds speeds) {
  const auto asked = [&](double Demand::*what) {
    return speeds.main * main.*what + speeds.neighbour * neighbour.*what;
  };
  const double over = std::max({1.0, asked(&Demand::arithmetic), asked(&Demand::traffic),
                                asked(&Demand::busy) / kMostTogether});
  return {speeds.main / over, speeds.neighbour / over};
}

}  // namespace

Demand demand_of(std::span<const KernelRow> rows, const Device& device, FlopsPerSecond peak) {
  const BytesPerSecond bandwidth = device.memory_bandwidth * kBandwidthToHave;
  Seconds all, arithmetic, traffic, idle;
  double kernels = 0;
  for (const KernelRow& row : rows) {
    const Seconds time = row.work.exposed();
    if (row.op == OpName::neighbour) continue;  // how long its work would take alone
    all += time;
    if (row.family == Family::host || row.family == Family::gap) {
      idle += time;
      continue;
    }
    kernels += row.work.calls;
    if (row.bound == Bound::network) continue;
    arithmetic += row.bound == Bound::compute ? time : std::min(time, row.work.flops / peak);
    traffic += std::min(time, row.work.bytes / bandwidth);
  }
  if (!(all.value > 0)) return {};
  return {.arithmetic = arithmetic / all,
          .traffic = traffic / all,
          .busy = 1 - idle / all,
          .kernel = kernels > 0 ? (all - idle) / kernels : Seconds{0}};
}

std::optional<Refusal> parts_problem(const Device& device, SharingMode mode) {
  if (!divides_multiprocessors(mode) || device.multiprocessors > 1) return std::nullopt;
  return Refusal{
      ReasonClass::divisibility,
      fmt::format("sharing.mode {} gives each model multiprocessors of its own, and the device {} "
                  "(device.multiprocessors); time_slices and streams need none",
                  name_of(mode),
                  device.multiprocessors == 1 ? "has only one" : "does not say how many it has")};
}

std::int64_t multiprocessors_in(const Device& device, double share) {
  const auto wanted = std::int64_t(std::round(share * double(device.multiprocessors)));
  return std::max<std::int64_t>(1, std::min(wanted, device.multiprocessors - 1));
}

Device part_of(const Device& device, double share, std::int64_t multiprocessors, SharingMode mode) {
  Device part = device;
  if (!divides_multiprocessors(mode)) return part;
  part.multiprocessors = multiprocessors;
  if (mode == SharingMode::spatial) return part;
  part.memory_bandwidth = device.memory_bandwidth * share;
  part.memory_capacity = device.memory_capacity * share;
  part.l2_capacity = device.l2_capacity * share;
  part.l2_bandwidth = device.l2_bandwidth * share;
  return part;
}

Speeds speeds_together(const Tenant& main, const Tenant& neighbour, const SharingSettings& sharing,
                       Seconds change) {
  switch (sharing.mode) {
    case SharingMode::time_slices:
      return in_turns(main.demand, neighbour.demand, sharing, change);
    case SharingMode::streams:
      return within_limits(main.demand, neighbour.demand,
                           {speed_between(main.demand, neighbour.demand),
                            speed_between(neighbour.demand, main.demand)});
    case SharingMode::spatial:
      return within_limits(main.demand, neighbour.demand, {main.on_part, neighbour.on_part});
    case SharingMode::mig:
      break;
  }
  return {main.on_part, neighbour.on_part};
}

}  // namespace engine
