// Where the time of points went that take longer or less long than before: kernels, communication, the
// host, queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/drift.h"
#include "tools/compare/run_pair.h"

namespace tools {

// Changes are shares of the time a point took before. Means add up to the mean change of the whole.
struct TimePart {
  std::string name;       // a family of kernels, "queue", "rest"
  std::string_view kind;  // kernel, communication, host, waiting
  double mean = 0;
  double worst = 0;  // by size
  std::uint32_t worst_pair = 0;
};

struct Attribution {
  std::string column;      // the time that is taken apart; empty: there is nothing to take apart
  std::size_t points = 0;  // pairs whose time drifted and whose kernels are known in both runs
  double mean = 0;         // of their change
  std::vector<TimePart> parts;  // the largest mean first
};

// A step, a request or an iteration is the sum of its kernels. A served request also waits in a queue;
// what is left of its time is shared out as the kernels' time of the whole load is.
Attribution attribution(const RunPair& pair, const std::vector<std::uint8_t>& both_ok,
                        const Tolerances& tolerances);

std::string_view kind_of_family(std::string_view family);

// What the seconds of kernels are multiplied by so that they explain a point's time without its queue:
// kernels of a served load are those of all its requests. Without a queue (NaN) they are the point's own.
double kernel_scale(double kernels, double total, double queue);

}  // namespace tools
