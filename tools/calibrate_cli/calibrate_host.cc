#include "tools/calibrate_cli/calibrate_host.h"

#include <fmt/core.h>

#include <charconv>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "engine/evaluate.h"
#include "results/durable_file.h"
#include "results/text_table.h"
#include "sweep/input/read_text.h"
#include "sweep/language/batch_reader.h"
#include "sweep/space/space_parts.h"
#include "tools/calibrate/fit/host_fit.h"
#include "tools/calibrate_cli/mistaken.h"
#include "tools/command/exit_code.h"
#include "tools/command/standard_library.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

using engine::Mistake;
using sweep::Node;

constexpr const char* kSeconds = "seconds";
constexpr const char* kForm =
    "a line for each step: columns named by fields, as step.batch and step.context, and 'seconds'";

// A column as a batch has it: each value once.
sweep::BatchField field_of(const results::TextTable& table, std::size_t column) {
  const results::TextColumn& cells = table.columns[column];
  sweep::BatchField field;
  Node values{.kind = Node::Kind::sequence, .where = table.header(column)};
  std::unordered_map<std::string_view, std::uint32_t> places;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const auto [at, fresh] = places.try_emplace(cells[row], std::uint32_t(values.items.size()));
    if (fresh) {
      values.items.push_back({.kind = Node::Kind::scalar,
                              .text = std::string(cells[row]),
                              .where = table.where(row, column)});
    }
    field.order.push_back(at->second);
  }
  field.path_and_values = {
      {.kind = Node::Kind::scalar, .text = cells.name(), .where = table.header(column)},
      std::move(values)};
  return field;
}

engine::Result<double> seconds_of(const results::TextTable& table, std::size_t row,
                                  std::size_t column) {
  const std::string_view cell = table.columns[column][row];
  double seconds = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), seconds);
  if (error == std::errc{} && end == cell.data() + cell.size() && seconds > 0) return seconds;
  return Mistake{table.where(row, column), fmt::format("seconds: '{}' is not a time above 0", cell),
                 kForm};
}

// Every line as a point of task step that has an outcome.
engine::Result<std::vector<TimedStep>> timed_steps(const results::TextTable& table,
                                                   const sweep::Space& space,
                                                   std::size_t seconds_column) {
  std::vector<TimedStep> steps;
  std::vector<Mistake> mistakes;
  sweep::PointBuilder builder(space);
  sweep::Point point;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto seconds = seconds_of(table, row, seconds_column);
    if (!seconds) {
      mistakes.push_back(seconds.mistakes().front());
      continue;
    }
    builder.build(row, point);
    if (point.scenario.task != engine::Task::step) {
      mistakes.push_back({table.where(row, 0), "the task is not step",
                          "write 'task: step' in the base: a host is told by single steps"});
      continue;
    }
    const engine::Outcome outcome = engine::evaluate(point.scenario, *space.parts().resources);
    if (outcome.status != engine::Status::ok) {
      mistakes.push_back({table.where(row, 0), "this step cannot run: " + outcome.reason, ""});
    } else if (!steps.empty() && !(point.scenario.host == steps.front().scenario.host)) {
      mistakes.push_back({table.where(row, 0), "another host than that of the first line",
                          "fit hosts one after another"});
    } else {
      steps.push_back({point.scenario, *seconds});
    }
  }
  if (!mistakes.empty()) return mistakes;
  if (steps.size() >= kLeastTimedSteps) return steps;
  return Mistake{{table.file, 0, 0},
                 fmt::format("{} steps are too few", steps.size()),
                 fmt::format("measure {} or more: small and large batches, short and long contexts",
                             kLeastTimedSteps)};
}

void print_fit(const HostFit& fit) {
  print("{:<18} {:>12}\n", "term", "fitted, us");
  for (const FittedTerm& term : fit.terms) {
    if (term.told) {
      print("{:<18} {:>12.2f}  {:.2f} to {:.2f} with a fifth of the steps left out\n", term.field,
            term.value.value * 1e6, term.low.value * 1e6, term.high.value * 1e6);
    } else {
      print("{:<18} {:>12}  these steps do not tell it\n", term.field, "as it was");
    }
  }
  print("\n{:<14} {:>5} {:>7} {:>7} {:>7}\n", "", "steps", "mean %", "p90", "bias");
  for (const auto& [name, errors] :
       {std::pair{"before", fit.before}, std::pair{"steps left out", fit.unseen}}) {
    print("{:<14} {:>5} {:>7.1f} {:>7.1f} {:>+7.1f}\n", name, errors.rows, 100 * errors.mean,
          100 * errors.p90, 100 * errors.bias);
  }
}

}  // namespace

int calibrate_host(const std::vector<std::string>& tables, const std::string& base,
                   const std::string& output) {
  if (tables.size() != 1 || base.empty() || output.empty()) {
    return mistaken({{{},
                      "--tier host takes one table, --base and --output",
                      "--base: a file with what a sweep says under 'base:', as 'task: step', "
                      "'device: h100-sxm', 'model: llama-3.1-8b' and the host to begin with"}});
  }
  const auto table = results::read_table(tables.front());
  if (!table) return mistaken(table.mistakes());
  const auto seconds = table->find(kSeconds);
  if (!seconds) return mistaken({{{table->file, 1, 1}, "there is no column 'seconds'", kForm}});
  const auto text = sweep::read_spec_text(base);
  if (!text) return mistaken(text.mistakes());
  auto reader = sweep::BatchReader::open(*text, base, standard_library());
  if (!reader) return mistaken(reader.mistakes());
  std::vector<sweep::BatchField> fields;
  for (std::size_t column = 0; column < table->columns.size(); ++column) {
    if (column != *seconds) fields.push_back(field_of(*table, column));
  }
  const auto space = reader->read(fields);
  if (!space) return mistaken(space.mistakes());
  const auto steps = timed_steps(*table, *space, *seconds);
  if (!steps) return mistaken(steps.mistakes());
  const HostFit fit = fit_host(*steps, *space->parts().resources);
  print_fit(fit);
  results::write_durably(output, host_fit_text(fit, steps->front().scenario.host.name));
  const std::filesystem::path file(output);
  print(
      "\n{0} written; in a folder 'specs/hosts' beside a sweep it is the host '{1}', as in 'host: "
      "{1}'\n",
      output, file.stem().string());
  return kOk;
}

}  // namespace tools
