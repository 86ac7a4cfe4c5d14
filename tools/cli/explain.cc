// llmsweep explain: one point as a readable breakdown.
#include "engine/explain.h"

#include <fmt/core.h>

#include <memory>

#include "engine/evaluate.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

int explain_point(const std::string& file, std::uint64_t index) {
  const auto spec = read_or_complain(file);
  if (!spec) return kMistake;
  const sweep::Space& space = spec->space;
  if (index >= space.size()) {
    print(stderr, "error: --point {}: the sweep has points 0 to {}\n", index, space.size() - 1);
    return kMistake;
  }
  sweep::PointBuilder builder(space);
  sweep::Point point;
  switch (builder.build(index, point)) {
    case sweep::Admission::rejected:
      print("point {} is rejected: {}\n", index,
            space.requirements()[std::size_t(builder.rejected_by())]);
      return kOk;
    case sweep::Admission::not_applicable:
      print(
          "point {} is left out: an axis whose 'when' is false here has only its first position\n",
          index);
      return kOk;
    case sweep::Admission::admitted:
      break;
  }
  print("point {}, key {}\n", index, engine::to_hex(point.key));
  for (std::size_t i = 0; i < point.labels.size(); ++i) {
    if (point.labels[i] < 0) continue;
    const sweep::LabelColumn& column = space.label_columns()[i];
    print("  {} = {}\n", column.name, column.values[std::size_t(point.labels[i])]);
  }
  print("{}", engine::explain(point.scenario, engine::evaluate(point.scenario, *spec->resources)));
  return kOk;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string file;
    std::uint64_t index = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("explain", "Show one point: figures, kernels, bounds");
  verb->footer(
      "The index is the column 'index' of the points table; 'llmsweep check' shows the first few.");
  verb->add_option("spec", arguments->file, "the sweep")->required()->type_name("SPEC");
  verb->add_option("--point", arguments->index, "index of the point (default: 0)")->type_name("I");
  verb->callback(
      [arguments, &exit_code] { exit_code = explain_point(arguments->file, arguments->index); });
}

}  // namespace tools
