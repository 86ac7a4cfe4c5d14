// What a pool could serve, roughly and at once: the scale that relative loads and capacity searches
// start from.
#pragma once

#include "engine/serving/replica/journey.h"

namespace engine {

struct CapacityEstimate {
  double batch = 1;     // decodes of a step that fit in blocks and seats
  double requests = 0;  // a second, all replicas
};

// Mean tokens of a prompt and of each answer to it, how many answers there are, and which adapters requests ask for.
struct TypicalWork {
  double prompt = 1;
  double output = 1;
  double answers = 1;
  std::int64_t adapters = 0;
  double adapter_skew = 0;
};

// What a pool does of a request.
enum class Duty : std::uint8_t { both, reads, writes };

// Replicas that are always full: each request costs its prompt and its share of the decode steps of a
// full batch. Queueing, preemption and prefix hits are left out.
CapacityEstimate capacity_estimate(const PoolSetup& pool, const TypicalWork& work, Duty duty);

}  // namespace engine
