// What is simulated: pools, the stages of a request's way through them, the load, and what is to be written down.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/serving/figures/measurement.h"
#include "engine/serving/figures/referee.h"
#include "engine/serving/figures/serving_rows.h"
#include "engine/serving/figures/step_log.h"
#include "engine/serving/fleet/encoders.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/settings/slo.h"
#include "engine/step/step_table.h"
#include "engine/workload/request_source.h"

namespace engine {

class ServingSim;

// Everything referred to outlives the run.
struct ServingProblem {
  std::span<const PoolSetup> pools;
  Journey journey = {};
  Encoders::Setup encoders = {};  // encode a request's images before anything else
  const Load& load;
  const Trace* trace = nullptr;
  const Slo& slo;               // limits that requests are held to
  const Slo* judged = nullptr;  // limits that the run is judged by, where these are others
  LoadLevel level;
  RunPlan plan;
  RunPurpose purpose = RunPurpose::figures;
  double capacity = 0;  // estimated, requests a second; 0: unknown
  std::uint64_t seed = 0;
  StepScale scale = kAsPredicted;
  bool audit = false;  // recount every sum at every step
  // Called before every event, so that tests can check the indices of the simulation.
  const std::function<void(const ServingSim&)>* before_event = nullptr;
  OutputSettings output;
  std::vector<RequestRow>* request_rows = nullptr;
  std::vector<TimelineRow>* timeline_rows = nullptr;
  StepLog* step_log = nullptr;
};

// Number of tenants: those that a replayed trace names, or as many as the load says.
std::int64_t tenants_of(const ServingProblem& problem);

// Bytes that the simulation holds from the start on: lanes with their calendars, a place for every number of tokens in a step,
// and the clients and tenants of the load.
double bytes_at_start(const ServingProblem& problem);

// Throws where the way of requests makes no sense.
void check_journey(const Journey& journey);

}  // namespace engine
