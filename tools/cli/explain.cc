// llmsweep explain: one point as a readable breakdown.
#include "engine/explain.h"

#include <fmt/core.h>

#include <memory>
#include <optional>

#include "engine/evaluate.h"
#include "tools/cli/cli.h"
#include "tools/cli/point_number.h"
#include "tools/compare/point_difference.h"
#include "tools/terminal/terminal.h"
#include "tools/trace/replay.h"

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

// A sweep, or a run of one: then what is explained is what its row says.
class Explainer {
 public:
  Explainer(const std::string& name, const SpecOrRun& read)
      : spec_(*read.spec), run_(read.of_run ? std::optional(name) : std::nullopt) {}

  int point(std::uint64_t index) const {
    const BuiltPoint built = build_or_say(spec_, index);
    if (!built.point) return built.exit_code;
    const auto outcome = outcome_of(*built.point);
    if (!outcome) return kFailure;
    print_point(spec_, index, *built.point);
    print("{}", engine::explain(built.point->scenario, *outcome));
    return kOk;
  }

  int difference(std::uint64_t index, std::uint64_t against) const {
    const BuiltPoint built = build_or_say(spec_, index);
    if (!built.point) return built.exit_code;
    const BuiltPoint other = build_or_say(spec_, against, "--against");
    if (!other.point) return other.exit_code;
    const auto one = outcome_of(*built.point), two = outcome_of(*other.point);
    if (!one || !two) return kFailure;
    print_point(spec_, index, *built.point);
    print_point(spec_, against, *other.point);
    print("{}", difference_text(*one, *two, index, against));
    return kOk;
  }

 private:
  // Nothing, and why, where the run says otherwise.
  std::optional<engine::Outcome> outcome_of(const sweep::Point& point) const {
    engine::Outcome outcome = engine::evaluate(point.scenario, *spec_.resources);
    if (!run_) return outcome;
    const auto why = disagreement(*run_, point, outcome);
    if (!why) return outcome;
    print(stderr, "error: {}: {}\n  hint: explain the spec that the run was made of\n", *run_,
          *why);
    return std::nullopt;
  }

  const sweep::SweepSpec& spec_;
  std::optional<std::string> run_;
};

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
      "take the time. The point of a run is held to its row, bit for bit.");
  verb->add_option("spec", arguments->file, "the sweep, or the folder of a run")
      ->required()
      ->type_name("SPEC|DIR");
  verb->add_option("--point", arguments->index, "index of the point (default: 0)")
      ->check(check_point_number)
      ->type_name("I");
  auto* against =
      verb->add_option("--against", arguments->against, "index of a point to compare it with")
          ->check(check_point_number)
          ->type_name("J");
  verb->callback([arguments, against, &exit_code] {
    const SpecOrRun read = read_spec_or_run(arguments->file);
    if (!read.spec) {
      exit_code = kMistake;
      return;
    }
    try {
      const Explainer explainer(arguments->file, read);
      exit_code = against->count() > 0 ? explainer.difference(arguments->index, arguments->against)
                                       : explainer.point(arguments->index);
    } catch (const results::Failure& failure) {
      exit_code = complain_about_run(failure);
    }
  });
}

}  // namespace tools
