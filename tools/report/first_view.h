// Which two figures a page shows first: those of the question that the sweep asks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/query/points.h"

namespace tools {

// {"x": ..., "y": ...}, both of them figures that vary among the page's working points; null where none does.
//   a search for capacity: price against rate
//   training: the time of a step against the price of an hour, or speed against memory where all devices cost the same
//   a load that comes by itself: latency against throughput; the latency that slo limits, where it limits one
//   a load of clients that wait for their answers: tokens of a user against tokens of a device
nlohmann::json first_view(const RunRows& points, const nlohmann::json& columns);

}  // namespace tools
