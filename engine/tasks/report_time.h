// What tasks made of single steps have in common: figures of a point whose time is known.
#pragma once

#include <span>

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/step/step_time.h"

namespace engine {

inline double one_copy(const Deployment&) { return 1; }

// The tokens of one replica's steps.
struct TokenCounts {
  double prompt = 0;
  double generated = 0;
  double all = 0;        // that went through the model
  double in_flight = 1;  // batches of a replica at the same time, each with those tokens
};

// Time and work of everything the point did, and what follows from them.
void report_time(const Scenario& scenario, const StepTime& time, const TokenCounts& tokens,
                 Outcome& outcome);

// What one device of each stage of a deployment did for one batch.
struct DeploymentWork {
  const Deployment& on;
  const DeviceTime& done;
  bool guest = false;  // on the devices of another deployment, which is listed as well
};
// The time of the point, in which so many batches go through all deployments.
struct SharedTime {
  Seconds total;
  double in_flight = 1;
};
// Utilisation of the devices of several deployments over that time: each idles while another works.
void report_shared_work(std::span<const DeploymentWork> work, const SharedTime& time,
                        Metrics& metrics);

}  // namespace engine
