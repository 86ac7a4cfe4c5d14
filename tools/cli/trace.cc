// llmsweep trace: one point over time, as a file that Perfetto and chrome://tracing open.
#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/schema.h"
#include "tools/cli/cli.h"
#include "tools/cli/point_number.h"
#include "tools/terminal/terminal.h"
#include "tools/trace/point_trace.h"
#include "tools/trace/replay.h"
#include "tools/trace/step_trace.h"

namespace tools {
namespace {

struct TraceArgumentsGiven {
  std::string spec;
  std::uint64_t index = 0;
  std::string file = "trace.json";
  std::string tables;
  std::size_t requests = 2000;
  ReplayOptions replay{.moments = 1000, .steps = 2000, .kernels = 100};
};

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

TraceEvents events_of(const Replay& replay, const engine::Scenario& scenario,
                      const TraceArgumentsGiven& arguments) {
  TraceEvents events;
  if (replay.outcome.requests.empty()) {
    add_kernels(replay.outcome, events);
    add_passes(replay.log, replay.outcome.metrics, arguments.replay.steps, events);
  } else {
    add_steps(replay.log, scenario, events);
    add_served(replay.outcome, arguments.requests, events);
  }
  return events;
}

std::vector<std::pair<std::string, std::string>> facts_of(const TraceArgumentsGiven& arguments,
                                                          const sweep::SweepSpec& spec,
                                                          const sweep::Point& point) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"spec", arguments.spec},
      {"point", std::to_string(arguments.index)},
      {"key", engine::to_hex(point.key)}};
  for (std::size_t i = 0; i < point.labels.size(); ++i) {
    if (point.labels[i] < 0) continue;
    const sweep::LabelColumn& column = spec.space.label_columns()[i];
    facts.emplace_back(column.name, column.values[std::size_t(point.labels[i])]);
  }
  return facts;
}

void say_what_is_left_out(const TraceArgumentsGiven& arguments, const Replay& replay) {
  const auto note = [](std::size_t shown, std::size_t all, const char* what, const char* option) {
    if (shown >= all) return;
    print(stderr, "note: the first {} of {} {}; {} N shows more\n", grouped(shown), grouped(all),
          what, option);
  };
  note(arguments.requests, replay.outcome.requests.size(), "requests", "--requests");
  note(arguments.replay.steps, replay.log.passes.size(), "passes", "--steps");
  const double steps = replay.outcome.metrics.steps;
  if (steps > 0) note(arguments.replay.steps, std::size_t(steps), "steps", "--steps");
}

int write_trace(const TraceArgumentsGiven& arguments, const sweep::SweepSpec& spec,
                const sweep::Point& point, const Replay& replay) {
  if (!arguments.tables.empty()) {
    const auto files =
        write_rows(arguments.tables, results::schema_inputs(spec.space), point, replay.outcome);
    if (files.empty()) {
      print(stderr, "note: only served loads have requests and moments; {} is not written\n",
            arguments.tables);
    }
    for (const std::string& file : files) print("{}\n", file);
  }
  results::write_durably(std::filesystem::absolute(arguments.file),
                         events_of(replay, point.scenario, arguments)
                             .json(facts_of(arguments, spec, point), figures_of(replay.outcome)));
  say_what_is_left_out(arguments, replay);
  print("{}: open it in https://ui.perfetto.dev or chrome://tracing\n", arguments.file);
  return kOk;
}

int trace_point(const TraceArgumentsGiven& arguments) {
  const auto [spec, of_run] = read_spec_or_run(arguments.spec);
  if (!spec) return kMistake;
  const BuiltPoint built = build_or_say(*spec, arguments.index);
  if (!built.point) return built.exit_code;
  const Replay made = replay(built.point->scenario, *spec->resources, arguments.replay);
  if (made.outcome.status != engine::Status::ok) {
    print(stderr, "point {} is {}: {}\n", arguments.index, engine::name_of(made.outcome.status),
          made.outcome.reason);
    return kNoPoint;
  }
  try {
    if (of_run) {
      if (const auto why = disagreement(arguments.spec, *built.point, made.outcome)) {
        print(stderr, "error: {}: {}\n  hint: trace the spec that the run was made of\n",
              arguments.spec, *why);
        return kFailure;
      }
    }
    return write_trace(arguments, *spec, *built.point, made);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TraceArgumentsGiven>();
  CLI::App* verb = app.add_subcommand("trace", "One point over time, to open in Perfetto");
  verb->footer(
      "Simulates the point alone. Of a served load: replicas with their steps, the kernels in "
      "these and\n"
      "their requests, the queue, arrows from one to the other, and counters of batch, queue, KV "
      "cache, tokens\n"
      "and power. Of an iteration of training: the schedule of its pipeline. Of a step or a "
      "request: its\n"
      "kernels, phase by phase. The point of a run is held to its row, bit for bit; with --tables "
      "its\n"
      "requests and its timeline are written as the sweep would have with 'output:'.\n"
      "  llmsweep trace specs/sweeps/serving_load.yaml --point 7 -o load.json\n"
      "  llmsweep trace runs/serving_load --point 7 --tables point7 --every 0.5");
  verb->add_option("spec", arguments->spec, "the sweep, or the folder of a run")
      ->required()
      ->type_name("SPEC|DIR");
  verb->add_option("--point", arguments->index, "index of the point (default: 0)")
      ->check(check_point_number)
      ->type_name("I");
  verb->add_option("-o,--output", arguments->file, "file to write (default: trace.json)")
      ->check(not_empty())
      ->check(no_table("a trace for Perfetto; --tables DIR writes tables"))
      ->type_name("FILE");
  verb->add_option("--requests", arguments->requests, "most requests to show (default: 2000)")
      ->transform(whole_above_zero())
      ->type_name("N");
  verb->add_option("--steps", arguments->replay.steps,
                   "most steps of replicas, or passes of a pipeline, to show (default: 2000)")
      ->type_name("N");
  verb->add_option("--kernels", arguments->replay.kernels,
                   "of these steps, how many with the kernels inside (default: 100)")
      ->type_name("N");
  verb->add_option("--moments", arguments->replay.moments,
                   "moments of the counters (default: 1000)")
      ->transform(whole_above_zero())
      ->type_name("N");
  verb->add_option("--every", arguments->replay.every, "seconds between two of these moments")
      ->check(above_zero())
      ->type_name("S");
  verb->add_option("--tables", arguments->tables,
                   "folder for requests.parquet and timeline.parquet of the point")
      ->type_name("DIR");
  verb->callback([arguments, &exit_code] { exit_code = trace_point(*arguments); });
}

}  // namespace tools
