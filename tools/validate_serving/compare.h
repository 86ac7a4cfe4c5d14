// Predictions beside measurements, run by run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/resources.h"
#include "results/text_table.h"
#include "tools/validate_serving/served_case.h"
#include "tools/validate_serving/vllm_runs.h"

namespace tools {

// A closed loop with stated means: ttft, tpot, and the throughput that follows from both. Of several recipes the one that is
// nearest in time per token.
ComparedCase compare_means(const ServedCase& served, const engine::Resources& resources);

// Many requests at once: the tokens a second that come of them.
ComparedCase compare_throughput(const ServedCase& served, const engine::Resources& resources);

// How a recorded run is replayed.
struct ReplayChoice {
  engine::TierChoice tier = engine::TierChoice::transfer;
  bool given_blocks = false;  // the engine's own block count instead of ours
};
// Means and percentiles of ttft and tpot, throughput, and the median error of single requests.
ComparedCase compare_replay(const MeasuredRun& run, const ReplayChoice& choice,
                            const engine::Resources& resources);

// One line a group: rows, and of ttft, tpot and throughput the mean, median and 90th percentile of the absolute error, the
// bias, the share of measurements inside the 90% interval of their prediction, and the median width of that interval over the
// prediction, in percent. A group with the label "" is not shown.
using GroupOf = std::function<std::string(const ComparedCase&)>;
std::string group_heading(std::string_view what);
std::string group_lines(const std::vector<ComparedCase>& cases, const GroupOf& group);

// The same of throughput alone, with the rank correlation, under a heading of its own; a last line has all groups.
std::string rate_lines(std::string_view what, const std::vector<ComparedCase>& cases,
                       const GroupOf& group);

// Share by which a prediction is off, at the median of the cases' absolute errors of one figure.
double median_error(const std::vector<ComparedCase>& cases, std::string_view figure);

// One row a figure of a case.
results::TextTable figure_table(const std::vector<ComparedCase>& cases);

}  // namespace tools
