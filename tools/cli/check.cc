// llmsweep check: counts, rejections with reasons, first points, time and size.
#include "tools/cli/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "results/batch_sink.h"
#include "sweep/language/read_value.h"
#include "sweep/space/row_sink.h"
#include "sweep/space/space_parts.h"
#include "tools/cli/cli.h"
#include "tools/cli/outcome_summary.h"
#include "tools/query/row_notes.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

// Up to here every position is looked at; beyond, this many evenly spaced ones stand for all.
constexpr std::uint64_t kExact = 1'000'000;
constexpr std::uint64_t kSampled = 200'000;
// So many points are evaluated; more, up to the second number, as long as not one has worked.
constexpr std::uint64_t kEvaluated = 1'000;
constexpr std::uint64_t kMostEvaluated = 100'000;
constexpr std::size_t kShown = 5;
// Compressed bytes of a row, as large sweeps come out: the points table varies with the axes, the
// kernels table hardly.
constexpr double kPointBytes = 40;
constexpr double kKernelBytes = 5;
constexpr double kRequestBytes = 22;
constexpr double kMomentBytes = 8;
// Names, units and meanings of some 480 columns, and the spec, stand in every file: of a small run they are most.
constexpr double kFilesBytes = 3e5;

// The i-th of `count` positions spread evenly over `size`: i * size / count without overflow.
std::uint64_t spread(std::uint64_t i, std::uint64_t count, std::uint64_t size) {
  return i * (size / count) + i * (size % count) / count;
}

struct Survey {
  std::uint64_t looked_at = 0;
  std::uint64_t admitted = 0;
  std::uint64_t not_applicable = 0;
  std::vector<std::uint64_t> rejected;
  std::vector<std::uint64_t> first;  // admitted positions to show
};

Survey survey(const sweep::Space& space, sweep::PointBuilder& builder, sweep::Point& point) {
  Survey result;
  result.rejected.resize(space.requirements().size());
  const std::uint64_t size = space.size();
  const std::uint64_t count = size <= kExact ? size : kSampled;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = spread(i, count, size);
    ++result.looked_at;
    switch (builder.build(index, point)) {
      case sweep::Admission::admitted:
        ++result.admitted;
        if (result.first.size() < kShown) result.first.push_back(index);
        break;
      case sweep::Admission::rejected:
        ++result.rejected[std::size_t(builder.rejected_by())];
        break;
      case sweep::Admission::not_applicable:
        ++result.not_applicable;
        break;
    }
  }
  return result;
}

// A count over the whole space: exact, or scaled up from the sample and marked as such.
std::string whole(std::uint64_t count, const Survey& survey, std::uint64_t size) {
  if (survey.looked_at == size) return grouped(count);
  return "about " + grouped(std::uint64_t(double(count) / double(survey.looked_at) * double(size)));
}

// Whether a leaf of a role has the value of the main deployment.
bool follows_main(const engine::Scenario& scenario, const engine::Leaf& leaf) {
  if (leaf.of_main < 0) return false;
  const engine::Leaf& main = engine::leaf_table().leaves[std::size_t(leaf.of_main)];
  return engine::get_leaf(scenario, leaf) == engine::get_leaf(scenario, main);
}

// Leaves whose value no label of a point tells: sampled and derived ones.
std::vector<int> untold_leaves(const sweep::Space& space) {
  std::vector<int> leaves = space.sampled_leaves();
  for (const sweep::Derivation& derivation : space.parts().derivations) {
    leaves.push_back(derivation.leaf);
  }
  return leaves;
}

// Whether a leaf follows from the name of its device, model or other spec, which is told instead.
bool told_by_name(const engine::Leaf& leaf, const std::vector<int>& varied) {
  const engine::LeafTable& table = engine::leaf_table();
  return std::ranges::any_of(table.sections, [&](const engine::Section& section) {
    const std::string name = section.path + ".name";
    return !section.library.empty() && leaf.path.starts_with(section.path + ".") &&
           leaf.path != name && std::ranges::count(varied, table.find_leaf(name)) > 0;
  });
}

void show_points(const sweep::Space& space, const Survey& survey, sweep::PointBuilder& builder,
                 sweep::Point& point) {
  if (survey.first.empty()) return;
  print("first points:\n");
  const auto& leaves = engine::leaf_table().leaves;
  const std::vector<int> untold = untold_leaves(space);
  for (const std::uint64_t index : survey.first) {
    builder.build(index, point);
    std::string line = fmt::format("  {:>10}", index);
    const auto& columns = space.label_columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (point.labels[i] < 0) continue;
      line +=
          fmt::format("  {}={}", columns[i].name, columns[i].values[std::size_t(point.labels[i])]);
    }
    // What has no label: sampled and derived values, and what sub-sweeps state.
    for (const int number : space.varied_leaves()) {
      const engine::Leaf& leaf = leaves[std::size_t(number)];
      const auto labelled = [&](const sweep::LabelColumn& column) {
        return leaf.path == column.name || leaf.path.starts_with(column.name + ".");
      };
      const bool told =
          std::ranges::any_of(columns, labelled) || told_by_name(leaf, space.varied_leaves());
      if (told && std::ranges::count(untold, number) == 0) continue;
      if (!engine::is_present(point.scenario, leaf) || follows_main(point.scenario, leaf)) continue;
      line += fmt::format("  {}={}", leaf.path,
                          sweep::value_text(leaf, engine::get_leaf(point.scenario, leaf)));
    }
    print("{}\n", line);
  }
}

// What came of the points that were evaluated.
struct Trial {
  sweep::Tally tally;
  std::vector<std::string> notes;         // about the rows that work
  std::vector<std::string> calibrations;  // "h200-sxm, tier measured: my-h200": who takes which
  // The first point, by index, of each class of reason.
  struct Example {
    std::uint64_t index = ~std::uint64_t{0};
    std::string reason;
  };
  std::array<Example, enum_names(engine::ReasonClass{}).size()> examples;
  double detail_bytes = 0;  // on disk, of rows besides the points' own
  double seconds = 0;
};

// What kernel times come from, and the devices that take them from there.
std::vector<std::string> calibrations_taken(const RunRows& rows) {
  const Coded calibrations = rows.texts("calibration"), tiers = rows.texts("tier");
  const Coded devices = rows.texts("device");
  std::map<std::string, std::set<std::string>> takers;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (tiers[i].empty()) continue;  // the point does not work
    const std::string_view name = calibrations[i].empty() ? "none" : calibrations[i];
    takers[fmt::format("{}, tier {}", name, tiers[i])].emplace(devices[i]);
  }
  constexpr std::size_t most = 8;
  std::vector<std::string> lines;
  for (const auto& [source, names] : takers) {
    std::string listed;
    for (auto name = names.begin(); name != names.end(); ++name) {
      if (std::size_t(std::distance(names.begin(), name)) == most) {
        listed += fmt::format(", and {} more", names.size() - most);
        break;
      }
      listed += (listed.empty() ? "" : ", ") + *name;
    }
    lines.push_back(source + ": " + listed);
  }
  return lines;
}

// Rows in memory, to be read as those of a run are.
class TriedRows {
 public:
  explicit TriedRows(const sweep::Space& space)
      : sink_(results::schema_inputs(space), results::BatchTables::points),
        rows_(sink_.start_chunk()) {}
  void add(const sweep::Point& point, const engine::Outcome& outcome) {
    rows_->add(point, outcome);
  }
  // Adds what the rows say about themselves.
  void tell(const sweep::Tally& tally, Trial& trial) {
    sink_.finish_chunk(std::move(rows_), {}, tally);
    if (sink_.rows() == 0) return;
    const RunRows rows =
        RunRows::of(results::ParquetReader("the points tried", std::string(sink_.file().bytes)));
    NoteCounts counts;
    counts.add(rows);
    trial.notes = counts.texts(NoteEnd::remedy);
    trial.calibrations = calibrations_taken(rows);
  }

 private:
  results::BatchSink sink_;
  std::unique_ptr<sweep::ChunkRows> rows_;
};

// Visits [0, count) in an order whose every beginning is spread evenly: steps of the golden section,
// made to share no factor with `count`, so that each number comes once.
class EvenOrder {
 public:
  explicit EvenOrder(std::uint64_t count)
      : count_(count), step_(std::uint64_t(0.618 * double(count))) {
    while (std::gcd(step_, count_) != 1) ++step_;
  }
  std::uint64_t next() { return at_ = (at_ + step_) % count_; }

 private:
  std::uint64_t count_;
  std::uint64_t step_;
  std::uint64_t at_ = 0;
};

Trial try_points(const sweep::SweepSpec& spec, sweep::PointBuilder& builder, sweep::Point& point) {
  Trial trial;
  const std::uint64_t size = spec.space.size();
  const std::uint64_t tries = std::min<std::uint64_t>(size, kMostEvaluated);
  EvenOrder order(tries);
  engine::Outcome outcome;
  TriedRows rows(spec.space);
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < tries; ++i) {
    if (trial.tally.rows() >= kEvaluated && !nothing_works(trial.tally)) break;
    const std::uint64_t index = spread(order.next(), tries, size);
    if (builder.build(index, point) != sweep::Admission::admitted) continue;
    engine::evaluate_into(point.scenario, *spec.resources, outcome);
    trial.tally.count(outcome);
    rows.add(point, outcome);
    Trial::Example& example = trial.examples[static_cast<std::size_t>(outcome.reason_class)];
    if (index < example.index) example = {index, outcome.reason};
    trial.detail_bytes += kKernelBytes * double(outcome.kernels.size()) +
                          kRequestBytes * double(outcome.requests.size()) +
                          kMomentBytes * double(outcome.timeline.size());
    // A slow task is judged by a few points.
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(2)) break;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  trial.seconds = taken.count();
  rows.tell(trial.tally, trial);
  return trial;
}

void show_trial(const Trial& trial, std::uint64_t points) {
  const sweep::Tally& tally = trial.tally;
  print("of {}{}:", counted(tally.rows(), "point"), tally.rows() < points ? " tried" : "");
  const char* before = "";
  for (std::size_t i = 0; i < tally.by_status.size(); ++i) {
    if (tally.by_status[i] == 0) continue;
    print("{} {} {}", before, grouped(tally.by_status[i]), name_of(static_cast<engine::Status>(i)));
    before = ",";
  }
  print("\n");
  for (std::size_t i = 0; i < tally.by_class.size(); ++i) {
    if (tally.by_class[i] == 0) continue;
    print("  {:<12} {:>8}  point {}: {}\n", name_of(static_cast<engine::ReasonClass>(i)),
          grouped(tally.by_class[i]), trial.examples[i].index, trial.examples[i].reason);
  }
  for (const std::string& line : trial.calibrations) print("calibration {}\n", line);
}

// Time and size of the whole sweep, from the points that were tried.
void show_estimate(const Trial& trial, double points) {
  const double evaluated = double(trial.tally.rows());
  const double threads = std::max(1u, std::thread::hardware_concurrency());
  // Writing a row costs about as much as evaluating a small point: microseconds.
  const double seconds = points * (trial.seconds / evaluated + 8e-6) / threads;
  const double bytes = kFilesBytes + points * (kPointBytes + trial.detail_bytes / evaluated);
  print("estimate: {} on {:.0f} threads, {} on disk\n", duration(seconds), threads,
        size_text(bytes));
}

// Positions, and why some are no points.
void show_counts(const sweep::SweepSpec& spec, const Survey& result) {
  const std::uint64_t size = spec.space.size();
  if (!spec.name.empty()) print("{}\n", spec.name);
  print("{}, {} point{}", counted(size, "position"), whole(result.admitted, result, size),
        result.admitted == 1 ? "" : "s");
  if (result.looked_at < size) {
    print(" (from {} looked at)", counted(result.looked_at, "position"));
  }
  print("\n");
  for (std::size_t i = 0; i < result.rejected.size(); ++i) {
    if (result.rejected[i] == 0) continue;
    print("  rejected {}: {}\n", whole(result.rejected[i], result, size),
          spec.space.requirements()[i]);
  }
  if (result.not_applicable > 0) {
    print("  left out {}: axes whose 'when' is false\n",
          whole(result.not_applicable, result, size));
  }
}

void show_axes(const sweep::Space& space) {
  for (const sweep::LabelColumn& column : space.label_columns()) {
    std::string values;
    for (std::size_t i = 0; i < column.values.size(); ++i) {
      if (i == 8 && column.values.size() > 9) {
        values += fmt::format(", ... {}", column.values.back());
        break;
      }
      values += (i > 0 ? ", " : "") + column.values[i];
    }
    print("axis {}: {} values: {}\n", column.name, column.values.size(), values);
  }
}

}  // namespace

int print_check(const sweep::SweepSpec& spec) {
  const sweep::Space& space = spec.space;
  const std::uint64_t size = space.size();
  sweep::PointBuilder builder(space);
  sweep::Point point;
  const Survey result = survey(space, builder, point);
  show_counts(spec, result);
  show_axes(space);
  show_points(space, result, builder, point);
  Trial trial;
  if (result.admitted > 0) trial = try_points(spec, builder, point);
  if (trial.tally.rows() > 0) {
    const double points = double(result.admitted) / double(result.looked_at) * double(size);
    show_trial(trial, std::uint64_t(points));
    show_estimate(trial, points);
  }
  print_notes(stdout, spec.notes);
  print_notes(stdout, device_notes(space));
  print_notes(stdout, trial.notes);
  if (size > spec.limit) {
    print("more than the limit of {}: run with --limit {}\n", grouped(spec.limit), size);
  }
  if (!nothing_works(trial.tally)) return kOk;
  flush_out(stdout);
  print(stderr, "warning: {}", nothing_works_text(trial.tally, spec));
  return kNoPoint;
}

void add_check(CLI::App& app, int& exit_code) {
  auto file = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("check", "Say what a sweep would run, and find its mistakes");
  verb->footer(
      "Every mistake in the spec is printed at once, with its place. Up to a million positions "
      "are\n"
      "counted exactly; larger spaces are judged by a sample, and their size is exact all the "
      "same. Points are tried, to say how many work and why the others do not; where not one does, "
      "the\n"
      "exit code is 4.");
  verb->add_option("spec", *file, "the sweep")->required()->type_name("SPEC");
  verb->callback([file, &exit_code] {
    const auto spec = read_or_complain(*file);
    exit_code = spec ? print_check(*spec) : int(kMistake);
  });
}

}  // namespace tools
