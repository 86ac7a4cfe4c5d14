// Maps positions of a space through the engine, in parallel, into a sink.
#pragma once

#include "engine/base/work_meter.h"
#include "engine/resources.h"
#include "sweep/run/chunk_queue.h"
#include "sweep/run/progress.h"
#include "sweep/run/stop_signal.h"
#include "sweep/space/index_set.h"
#include "sweep/space/row_sink.h"
#include "sweep/space/space.h"

namespace sweep {

struct RunOptions {
  const engine::Resources* resources = nullptr;  // what the scenarios name; null: nothing
  int threads = 0;                               // 0: as many as the machine has
  OutcomeArchive* archive = nullptr;             // outcomes of an earlier run, tried first
  double point_budget = engine::kPointBudget;    // units of work of one point
};

struct RunReport {
  Tally tally;
  bool stopped = false;  // asked to stop before everything was done
};

// Returns when every position of the supply is in the sink and flushed, or after a stop was requested.
// What the sink or the supply throws ends the run and is thrown again here, once all workers are done.
RunReport run_points(const Space& space, Supply supply, RowSink& sink, const RunOptions& options,
                     StopSignal& stop, Progress& progress);
// The same, of positions known from the start.
RunReport run_points(const Space& space, const IndexSet& todo, RowSink& sink,
                     const RunOptions& options, StopSignal& stop, Progress& progress);

}  // namespace sweep
