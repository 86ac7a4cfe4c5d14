#include "engine/tasks/report_speculation.h"

#include <algorithm>
#include <utility>

namespace engine {

StepTime propose(const TaskPoint& point, const DecodeRun& run, std::vector<KernelRow>& rows) {
  Breakdown proposals;
  const StepTime time = draft_time(point.draft->step(point.main, point.work), run, proposals);
  for (KernelRow& row : std::move(proposals).take()) rows.push_back(row);
  return time;
}

double batches_in_flight(const TaskPoint& point, Seconds total, Seconds drafting) {
  const double stages = double(point.scenario.parallel.pp);
  if (point.draft == nullptr || stages == 1) return stages;
  const DraftPlace place = point.draft->place();
  return std::min(stages, total.value / stage_seconds(place, stages, total.value, drafting.value));
}

bool drafts_on_others(const TaskPoint& point) {
  if (point.draft == nullptr) return false;
  const Parallelism& layout = point.scenario.parallel;
  const double of_main_stage = double(layout.devices_of_replica() / layout.pp);
  return point.draft->apart || point.draft->devices(of_main_stage) != of_main_stage;
}

void report_speculation(const Speculated& speculated, Metrics& metrics) {
  metrics.accepted_tokens_per_step = speculated.per_step;
  metrics.proposed_tokens_per_step = speculated.proposed;
  metrics.draft_time = speculated.proposing;
  if (speculated.decoding.value > 0) {
    metrics.draft_share = speculated.proposing / speculated.decoding;
  }
  const double rejected = speculated.proposed - (speculated.per_step - 1);
  metrics.wasted_tokens = rejected * speculated.sequence_steps + speculated.beyond_end;
}

}  // namespace engine
