// What two models on the same devices leave one another: how fast each goes beside the other. The figures are of an H200,
// on which pairs of model steps were measured (specs/calibration/h200-sxm/colocation.csv, tools/gpu/colocation_sweep.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/refusal.h"
#include "engine/base/units.h"
#include "engine/hardware/device.h"
#include "engine/sharing/sharing_settings.h"
#include "engine/step/kernel_row.h"

namespace engine {

// What a model's steps ask of a whole device that they have to themselves.
struct Demand {
  double arithmetic = 0;  // share of the time in which arithmetic is what limits a kernel
  double traffic = 0;     // share of the memory's bandwidth, as far as that can be had
  double busy = 1;        // share of the time in which kernels run: the host has the rest
  Seconds kernel;         // mean time of a kernel
};

// Of steps that consist of these rows.
Demand demand_of(std::span<const KernelRow> rows, const Device& device, FlopsPerSecond peak);

// Why two models cannot share the device like this, or nothing: where each has multiprocessors of its own, there must be two.
std::optional<Refusal> parts_problem(const Device& device, SharingMode mode);

// The multiprocessors that a model with that share of them has; the other one has the rest.
std::int64_t multiprocessors_in(const Device& device, double share);

// The part of a device that one of two models has: `multiprocessors` of them, under `mig` also `share` of everything else.
Device part_of(const Device& device, double share, std::int64_t multiprocessors, SharingMode mode);

// One of the two: what it asks of the whole device, and how fast it is, compared with that, alone on its part.
struct Tenant {
  Demand demand;
  double on_part = 1;
};

// Shares of the speed that each has alone on the whole device.
struct Speeds {
  double main = 1;
  double neighbour = 1;
};

// While both have steps to run. `change`: what a turn of each costs together, where they take turns.
Speeds speeds_together(const Tenant& main, const Tenant& neighbour, const SharingSettings& sharing,
                       Seconds change);

}  // namespace engine
