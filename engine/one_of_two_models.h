// Scenarios of two models on the same devices, each made into one of a model by itself.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/outcome.h"
#include "engine/scenario.h"

namespace engine {

// What two models on the same devices cannot do.
std::optional<Refusal> neighbour_problem(const Scenario& scenario);

// The same point with one of the two models, whatever the other is and however they share.
Scenario without_neighbour(const Scenario& scenario);
Scenario as_neighbour(const Scenario& scenario);

// What one of the two has of the devices.
struct Share {
  double share, memory;
  std::int64_t multiprocessors;
};

// From now on it has only that part of the devices, or of their memory.
void give_part(Scenario& alone, const SharingSettings& sharing, const Share& mine);
void give_memory(Scenario& alone, Bytes memory);

}  // namespace engine
