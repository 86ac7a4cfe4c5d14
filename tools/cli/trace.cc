// llmsweep trace: one point over time, as a file that Perfetto and chrome://tracing open.
#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "engine/evaluate.h"
#include "results/durable_file.h"
#include "results/failure.h"
#include "results/schema.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"
#include "tools/trace/point_trace.h"

namespace tools {
namespace {

struct TraceArgumentsGiven {
  std::string spec;
  std::uint64_t index = 0;
  std::string file = "trace.json";
  std::size_t requests = 2000;
  std::size_t moments = 1000;
};

// The point with rows of its requests and moments. They are read off the simulation: its figures are
// those of the sweep.
engine::Outcome with_rows(engine::Scenario scenario, const engine::Resources& resources,
                          std::size_t moments) {
  engine::Outcome plain = engine::evaluate(scenario, resources);
  const double makespan = plain.metrics.makespan.value;
  if (plain.status != engine::Status::ok || !(makespan > 0)) return plain;
  scenario.output.requests = true;
  if (scenario.output.timeline.value <= 0) {
    scenario.output.timeline = engine::Seconds{makespan / double(moments)};
  }
  return engine::evaluate(scenario, resources);
}

TraceArguments figures_of(const engine::Outcome& outcome) {
  TraceArguments figures;
  const double* values = results::metric_values(outcome.metrics);
  for (std::size_t i = 0; i < results::kMetrics; ++i) {
    const results::Metric& metric = results::metric_table()[i];
    // In the unit of the column, as the points table has it.
    if (!std::isnan(values[i])) {
      figures.emplace_back(metric.column, values[i] * metric.unit.per_base);
    }
  }
  return figures;
}

int trace_point(const TraceArgumentsGiven& arguments) {
  const auto spec = read_or_complain(arguments.spec);
  if (!spec) return kMistake;
  const BuiltPoint built = build_or_say(*spec, arguments.index);
  if (!built.point) return built.exit_code;
  const engine::Outcome outcome =
      with_rows(built.point->scenario, *spec->resources, arguments.moments);
  if (outcome.status != engine::Status::ok) {
    print(stderr, "point {} is {}: {}\n", arguments.index, engine::name_of(outcome.status),
          outcome.reason);
    return kNoPoint;
  }
  TraceEvents events;
  if (outcome.requests.empty()) {
    add_kernels(outcome, events);
  } else {
    add_served(outcome, arguments.requests, events);
  }
  std::vector<std::pair<std::string, std::string>> facts = {
      {"spec", arguments.spec},
      {"point", std::to_string(arguments.index)},
      {"key", engine::to_hex(built.point->key)}};
  for (std::size_t i = 0; i < built.point->labels.size(); ++i) {
    if (built.point->labels[i] < 0) continue;
    const sweep::LabelColumn& column = spec->space.label_columns()[i];
    facts.emplace_back(column.name, column.values[std::size_t(built.point->labels[i])]);
  }
  try {
    results::write_durably(std::filesystem::absolute(arguments.file),
                           events.json(facts, figures_of(outcome)));
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  const std::size_t shown = std::min(arguments.requests, outcome.requests.size());
  if (shown < outcome.requests.size()) {
    print(stderr, "note: the first {} of {} requests; --requests N shows more\n", grouped(shown),
          grouped(outcome.requests.size()));
  }
  print("{}: open it in https://ui.perfetto.dev or chrome://tracing\n", arguments.file);
  return kOk;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TraceArgumentsGiven>();
  CLI::App* verb = app.add_subcommand("trace", "One point over time, to open in Perfetto");
  verb->footer(
      "Simulates the point alone. Of a served load: replicas with their requests, the queue, "
      "arrows "
      "from\n"
      "one to the other, and counters of batch, queue, KV cache and tokens. Of a step, a request "
      "or "
      "an\n"
      "iteration: its kernels, phase by phase.\n"
      "  llmsweep trace specs/sweeps/serving_load.yaml --point 7 -o load.json");
  verb->add_option("spec", arguments->spec, "the sweep")->required()->type_name("SPEC");
  verb->add_option("--point", arguments->index, "index of the point (default: 0)")->type_name("I");
  verb->add_option("-o,--output", arguments->file, "file to write (default: trace.json)")
      ->type_name("FILE");
  verb->add_option("--requests", arguments->requests, "most requests to show (default: 2000)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_option("--moments", arguments->moments, "moments of the counters (default: 1000)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->callback([arguments, &exit_code] { exit_code = trace_point(*arguments); });
}

}  // namespace tools
