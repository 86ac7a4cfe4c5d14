// What tasks that decode have in common where tokens are proposed.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/step/draft_step.h"
#include "engine/tasks/task_table.h"

namespace engine {

// Time of the proposals for decode steps of the main model; their rows are appended.
StepTime propose(const TaskPoint& point, const DecodeRun& run, std::vector<KernelRow>& rows);

// Batches of a replica in flight: one in each stage, or fewer where a draft holds up those behind it for `drafting` of the
// time `total` that a batch takes.
double batches_in_flight(const TaskPoint& point, Seconds total, Seconds drafting);

// Whether the draft is on other devices than the main model, or on some of its devices: then it is no part of what each does.
bool drafts_on_others(const TaskPoint& point);

// What came of it, in the step, the request or the run.
struct Speculated {
  double proposed = 0;        // tokens of a sequence in a step, on average
  double per_step = 1;        // tokens that a step made of a sequence
  double sequence_steps = 0;  // decode steps, each as often as it had sequences
  double beyond_end = 0;      // tokens made past the end of an answer
  Seconds proposing;          // time of proposals, of
  Seconds decoding;           // decode steps with their proposals
};
void report_speculation(const Speculated& speculated, Metrics& metrics);

}  // namespace engine
