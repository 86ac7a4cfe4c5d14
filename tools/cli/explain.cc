// llmsweep explain: one point as a readable breakdown.
#include "engine/explain.h"

#include <fmt/core.h>

#include <memory>

#include "engine/evaluate.h"
#include "tools/cli/cli.h"
#include "tools/cli/point_number.h"
#include "tools/compare/point_difference.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

void print_point(const sweep::SweepSpec& spec, std::uint64_t index, const sweep::Point& point) {
  print("point {}, key {}\n", index, engine::to_hex(point.key));
  for (std::size_t i = 0; i < point.labels.size(); ++i) {
    if (point.labels[i] < 0) continue;
    const sweep::LabelColumn& column = spec.space.label_columns()[i];
    print("  {} = {}\n", column.name, column.values[std::size_t(point.labels[i])]);
  }
}

int explain_point(const std::string& file, std::uint64_t index) {
  const auto spec = read_or_complain(file);
  if (!spec) return kMistake;
  const BuiltPoint built = build_or_say(*spec, index);
  if (!built.point) return built.exit_code;
  print_point(*spec, index, *built.point);
  const engine::Scenario& scenario = built.point->scenario;
  print("{}", engine::explain(scenario, engine::evaluate(scenario, *spec->resources)));
  return kOk;
}

int explain_difference(const std::string& file, std::uint64_t index, std::uint64_t against) {
  const auto spec = read_or_complain(file);
  if (!spec) return kMistake;
  const BuiltPoint built = build_or_say(*spec, index);
  if (!built.point) return built.exit_code;
  const BuiltPoint other = build_or_say(*spec, against, "--against");
  if (!other.point) return other.exit_code;
  print_point(*spec, index, *built.point);
  print_point(*spec, against, *other.point);
  print("{}",
        difference_text(engine::evaluate(built.point->scenario, *spec->resources),
                        engine::evaluate(other.point->scenario, *spec->resources), index, against));
  return kOk;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string file;
    std::uint64_t index = 0;
    std::uint64_t against = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("explain", "Show one point: figures, kernels, bounds");
  verb->footer(
      "The index is the column 'index' of the points table; 'llmsweep check' shows the first few.\n"
      "With --against J: by how much point J differs, and which kernels, communication, host or "
      "queue\n"
      "take the time.");
  verb->add_option("spec", arguments->file, "the sweep")->required()->type_name("SPEC");
  verb->add_option("--point", arguments->index, "index of the point (default: 0)")
      ->check(check_point_number)
      ->type_name("I");
  auto* against =
      verb->add_option("--against", arguments->against, "index of a point to compare it with")
          ->check(check_point_number)
          ->type_name("J");
  verb->callback([arguments, against, &exit_code] {
    exit_code = against->count() > 0
                    ? explain_difference(arguments->file, arguments->index, arguments->against)
                    : explain_point(arguments->file, arguments->index);
  });
}

}  // namespace tools
