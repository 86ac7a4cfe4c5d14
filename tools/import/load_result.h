// What a load generator measured, as the outcome that a simulation of the same load would have.
#pragma once

#include <string>

#include "engine/outcome.h"
#include "engine/workload/load.h"

namespace tools {

struct LoadResult {
  engine::Outcome outcome;
  // The file has the latencies of every request; else only their means and percentiles.
  bool detailed = false;
  // It has their starts; else every request's times count from its own start.
  bool timed = false;
  // The load that was offered: requests a second, or how many at a time. NaN: not stated, or no limit.
  double request_rate = 0;
  double concurrency = 0;
};

// What a file says of the load it measured against the load of a point; empty where nothing contradicts.
std::string contradiction(const LoadResult& result, const engine::Load& load);

}  // namespace tools
