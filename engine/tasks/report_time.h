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
  double in_flight = 1;  // batches of a replica at the same time, each with so many tokens
};

// Time and work of everything the point did, and what follows from them.
void report_time(const Scenario& scenario, const StepTime& time, const TokenCounts& tokens,
                 Outcome& outcome);

// What one device of each stage of a deployment did, in turn.
struct DeploymentWork {
  const Deployment& on;
  const DeviceTime& done;
  bool guest = false;  // on devices of another deployment, which is there, too
};
// Utilisation of the devices of several deployments, over the time of the point, in which so many batches are in flight: each
// idles while another works.
void report_shared_work(std::span<const DeploymentWork> work, Seconds total, double in_flight,
                        Metrics& metrics);

}  // namespace engine
