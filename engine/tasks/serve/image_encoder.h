// The encoder of a load with images: how long the images of a request take, and how the result gets to the replicas that read prompts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/deploy.h"
#include "engine/serving/fleet/encoders.h"
#include "engine/tasks/task_table.h"

namespace engine {

// Whether requests have images to be encoded, and whether the replicas that read prompts encode them.
bool encodes(const Scenario& scenario);
bool readers_encode(const Scenario& scenario);

// Weights of the encoder on a device of the deployment that reads prompts, where that encodes.
Bytes encoder_weights_beside(const Scenario& scenario, const Parallelism& readers);

// Stays where it was made.
struct ImageEncoder {
  // All images of some requests at once.
  struct Batch {
    double seconds = 0;
    std::vector<KernelRow> rows;
  };
  Deployed deployed;
  std::vector<Batch> batches;   // of 1, 2, ... requests
  std::vector<double> seconds;  // of the same
  Encoders::Setup apart;        // where encoders have devices of their own
};

// Fills it in; `readers` read the prompts. Or says why that cannot be.
std::optional<Refusal> ready_encoder(const TaskPoint& point, const Deployed& readers,
                                     ImageEncoder& encoder);

// Devices of a deployment beside the main one: encoders that are part of the readers have none.
double devices_beside_served(const Scenario& scenario, const Deployment& role);

}  // namespace engine
