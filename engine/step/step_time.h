// The time of one step: kernels, collectives, gaps and host put together, each still visible.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/savings.h"
#include "engine/base/units.h"
#include "engine/base/work_meter.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/device.h"
#include "engine/host/host_settings.h"
#include "engine/host/host_time.h"
#include "engine/model/batch_shape.h"
#include "engine/model/model_ops.h"
#include "engine/step/breakdown.h"
#include "engine/step/call_rows.h"
#include "engine/step/kernel_row.h"
#include "engine/step/pace.h"

namespace engine {

// What is held to the board's power limit: every kernel by itself; or kernels of a pass together, which run at one clock and
// are timed here at the full one.
enum class PowerLimit : std::uint8_t { each_kernel, passes };

// What step times depend on besides the batch. Everything referred to outlives it.
struct StepContext {
  const Device& device;
  const Fabric& fabric;
  const ModelShard& shard;
  const HostSettings& host;
  const Calibration* calibration = nullptr;  // nullptr: rooflines
  WorkMeter* work = nullptr;                 // counts what is done; null: nothing does
  PowerLimit power_limit = PowerLimit::each_kernel;
  // Collectives take so many times as long, for the slowest of their links.
  double links_longer = 1;

  void charge(double units) const {
    if (work != nullptr) work->charge(units);
  }
};

// Sums over kernels and collectives of one or many steps.
struct DeviceTime {
  Work compute;  // kernels other than attention
  Work attention;
  Work communication;
  Tier tier = Tier::measured;  // the least founded one among kernels
  bool extrapolated = false;

  Seconds total() const {
    return compute.exposed() + attention.exposed() + communication.exposed();
  }
  double launches() const { return compute.calls + attention.calls + communication.calls; }
  Flops flops() const { return compute.flops + attention.flops; }
  Bytes memory_bytes() const { return compute.from_memory + attention.from_memory; }
  Savings saved() const;
  void add(const KernelRow& row, double times = 1);
  void add(const DeviceTime& other, double times = 1);
};

struct StepTime {
  DeviceTime device;
  HostTime host;
  Savings saved;  // of all of it, the host's part included: the largest says what limits the step
  Seconds neighbour{0};  // in which the device works for another model
  Seconds total() const { return device.total() + host.total() + neighbour; }
  void add(const StepTime& other) {
    device.add(other.device);
    host.add(other.host);
    saved.add(other.saved);
    neighbour += other.neighbour;
  }
};

// Times `ops`; where `rows` is given, one row each is appended under `phase`. Calls that `known` has are not timed again.
DeviceTime device_time(const OpList& ops, const StepContext& context, Phase phase,
                       std::vector<KernelRow>* rows, CallRows* known = nullptr);

// Rows for the host's part, where it is not zero; the device draws `power` while it waits.
struct HostCalls {
  double launches = 0;
  double steps = 0;
};
void add_host_rows(const HostTime& host, const HostCalls& calls, Watts power, Phase phase,
                   std::vector<KernelRow>& rows);

// A row for time in which the device works for another model, where there is some.
void add_wait_row(Seconds time, double steps, Phase phase, std::vector<KernelRow>& rows);

// Operations that are a step of their own, with their rows where they are asked for; what `work` says of launches is filled in.
StepTime ops_time(const OpList& ops, StepWork work, LaunchMode mode, const StepContext& context,
                  Phase phase, std::vector<KernelRow>* rows);

// What one step does, as the engine would run it: decode-only batches are padded and replayed where captured.
LaunchMode step_ops(BatchShape batch, const StepContext& context, OpList& ops);
StepTime step_time(const BatchShape& batch, const StepContext& context, Phase phase,
                   std::vector<KernelRow>* rows);

// Decode steps of a batch whose contexts grow by the pace.
struct DecodeRun {
  std::int64_t sequences = 1;
  std::int64_t context = 1;  // that the first new token of the first step attends to
  std::int64_t steps = 1;
  Pace pace = {};
  double times = 1;           // how often each step is done
  std::int64_t adapters = 0;  // different low-rank adapters among the sequences
};
StepTime decode_time(const DecodeRun& run, const StepContext& step, Breakdown& rows);

}  // namespace engine
