// What requests of a served load are like on average, and how many clients fill a cache with them.
#pragma once

#include <array>
#include <cstdint>

#include "engine/serving/replica/journey.h"
#include "engine/workload/request_source.h"

namespace engine {

// Tokens of a served load's requests, on average.
struct TypicalRequest {
  double prompt = 1;
  double output = 1;
  double history = 0;  // of the prompt, what calls of a turn find of their session
};

// What memory is reported for, and estimates start from. One and one where the load cannot be made.
TypicalRequest typical_request(const DrawnLoad& drawn);
// The same of the requests of each class.
std::array<TypicalRequest, kRequestClasses> typical_of_classes(const DrawnLoad& drawn);

// Clients of a closed loop whose requests fill `load.kv_fraction` of the cache of a pool's replicas.
std::int64_t clients_that_fill(const DrawnLoad& drawn, const PoolSetup& pool);

}  // namespace engine
