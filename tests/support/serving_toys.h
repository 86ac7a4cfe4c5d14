// A served toy: steps take times one can add up by hand.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace toys {

// Every step, whatever is in it, takes 10 ms: the host sets the pace (the device needs under 5 ms).
// Blocks hold 4 tokens. Every request gets a row.
inline engine::Scenario served(engine::PolicyName policy) {
  engine::Scenario scenario = toys::scenario();
  scenario.task = engine::Task::serve;
  scenario.host.step_overhead = engine::Seconds{10e-3};
  scenario.host.asynchronous = true;
  scenario.serving.policy = policy;
  scenario.serving.block_size = 4;
  scenario.serving.kv_blocks = 1000;
  scenario.load.arrivals = engine::ArrivalKind::trace;
  scenario.load.trace = "toy";
  scenario.output.requests = true;
  return scenario;
}

// Outputs of 20 tokens, sixteen at a time: a request takes 0.2 s, and 80 a second are served.
inline engine::Scenario served_at(double rate) {
  engine::Scenario scenario = served(engine::policy_named("vllm_v1"));
  scenario.serving.max_num_seqs = 16;
  scenario.load.arrivals = engine::ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.rate = engine::RequestsPerSecond{rate};
  scenario.load.lengths.prompt = 8;
  scenario.load.lengths.output = 20;
  scenario.output.requests = false;
  return scenario;
}

struct TraceRow {
  double arrival;
  std::int32_t prompt;
  std::int32_t output;
};

inline engine::Resources trace(std::span<const TraceRow> rows) {
  auto recorded = std::make_shared<engine::Trace>();
  for (const TraceRow& row : rows) {
    recorded->arrival.push_back(row.arrival);
    recorded->prompt.push_back(row.prompt);
    recorded->output.push_back(row.output);
  }
  engine::Resources resources;
  resources.traces["toy"] = std::move(recorded);
  return resources;
}
inline engine::Resources trace(std::initializer_list<TraceRow> rows) {
  return trace(std::span(rows.begin(), rows.size()));
}

// The row of request `number`.
inline engine::RequestRow row_of(const engine::Outcome& outcome, std::int64_t number) {
  for (const engine::RequestRow& row : outcome.requests) {
    if (row.number == number) return row;
  }
  return {};
}

}  // namespace toys
