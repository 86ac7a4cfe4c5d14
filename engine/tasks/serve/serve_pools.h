// The pools of a served load: the main deployment's replicas, and those that read prompts for it where there is a
// prefill deployment.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/serving/capacity_estimate.h"
#include "engine/serving/figures/measurement.h"
#include "engine/serving/replica/journey.h"
#include "engine/step/step_table.h"
#include "engine/tasks/serve/image_encoder.h"
#include "engine/tasks/serve/typical_request.h"
#include "engine/tasks/task_table.h"

namespace engine {

// The largest step and the least memory that an engine with these settings may need.
MemoryDemand engine_demand(const ServingSettings& serving, const TypicalRequest& typical);

// Pools refer to contexts, and these to deployments: it stays where it is.
class ServePools {
 public:
  // `fit`: KV tokens that fit beside the main deployment's model.
  ServePools(const TaskPoint& point, const TypicalRequest& typical, double fit);
  ServePools(const ServePools&) = delete;
  ServePools& operator=(const ServePools&) = delete;

  // Adds the prefill deployment's pool where there is one; or says why there cannot be pools.
  std::optional<Refusal> complete(const TypicalRequest& typical);
  // Tells pools that share their replicas out to classes what a request of each takes. They are complete.
  void weigh_classes(const std::array<TypicalRequest, kRequestClasses>& typical);

  const std::vector<PoolSetup>& pools() const { return pools_; }
  const PoolSetup& main() const { return pools_[0]; }
  const Journey& journey() const { return journey_; }
  // Encoders on devices of their own, in a run whose steps are scaled by `scale`.
  Encoders::Setup encoders(const StepScale& scale) const;
  const std::optional<ImageEncoder>& encoder() const { return encoder_; }
  bool drafts_apart() const { return point_.draft != nullptr && point_.draft->apart; }
  const Deployment& draft_apart() const { return *point_.draft->own; }
  // Devices of a stage of that pool's replica on which its kernels of this role run, or of the draft that has its own.
  double devices_of_stage(std::size_t pool, DeploymentRole role) const;
  // What they could serve, the slower of those that read and those that write.
  CapacityEstimate capacity(const TypicalRequest& typical) const;
  // Until the last of those that follow the load has come to rest, and the last timetable is over.
  FleetTimes fleet_times() const;

 private:
  std::optional<Refusal> add_readers(const TypicalRequest& typical);
  Duty duty_of(std::size_t pool) const {
    if (pools_.size() == 1) return Duty::both;
    return pool == 0 ? Duty::writes : Duty::reads;
  }

  const TaskPoint& point_;
  ModelShard main_shard_;
  StepContext main_context_;
  void add_draft(const Draft& draft, const TypicalRequest& typical);
  void add_lengths(const Draft& draft, const TypicalRequest& typical);
  void price_draft_reading(const TypicalRequest& typical);

  std::optional<DraftStep> draft_;
  std::vector<DraftLength> lengths_;  // where steps pick one
  LateReading late_reading_;          // where the draft reads prompts when it is first asked
  SequencePaces own_paces_;           // where sequences have paces of their own
  Deployed readers_;
  std::optional<Draft> readers_draft_;      // beside them,
  std::optional<DraftStep> draft_reading_;  // which only reads
  std::optional<StepContext> reader_context_;
  std::optional<ImageEncoder> encoder_;
  std::vector<PoolSetup> pools_;  // the main one first
  Journey journey_;
};

}  // namespace engine
