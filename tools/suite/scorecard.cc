#include "tools/suite/scorecard.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "engine/tasks/task_table.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tools/terminal/number_text.h"

namespace tools {
namespace {

std::size_t whole_percent(double share) { return std::size_t(std::llround(100 * share)); }

Score fidelity(const std::vector<SuiteResult>& results) {
  std::size_t checks = 0, held = 0, ran = 0;
  std::array<double, 3> tiers{};
  for (const SuiteResult& result : results) {
    checks += result.checks;
    held += result.held;
    if (result.working == 0) continue;
    ++ran;
    for (std::size_t i = 0; i < tiers.size(); ++i) tiers[i] += result.tiers[i];
  }
  for (double& share : tiers) share /= double(std::max<std::size_t>(1, ran));
  return {"fidelity",
          "do results hold what was worked out by hand or published, and what do they rest on?",
          fmt::format("{} of {} checks hold; of the kernels' time {}% measured on the device, {}% "
                      "transferred from measured ones, {}% roofline",
                      held, checks, whole_percent(tiers[2]), whole_percent(tiers[1]),
                      whole_percent(tiers[0]))};
}

Score composition(const std::vector<SuiteResult>& results) {
  const std::map<char, std::string_view> families{
      {'T', "training"}, {'I', "inference"}, {'X', "beyond both"}};
  std::string text;
  for (const auto& [letter, name] : families) {
    std::size_t all = 0, supported = 0, partly = 0;
    for (const SuiteResult& result : results) {
      if (!result.id.starts_with(letter)) continue;
      ++all;
      supported += result.support == Support::supported ? 1 : 0;
      partly += result.support == Support::partly ? 1 : 0;
    }
    if (all == 0) continue;
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", name, supported, all);
    if (partly > 0) text += fmt::format(" ({} more partly)", partly);
  }
  return {"composition", "how many scenarios does one spec answer, whatever they combine?", text};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : "', '") + name;
  return "[" + text + "']";
}

// Every model of the library on every device, on as few as hold it.
Score generalisation(const sweep::Library& library) {
  const std::vector<std::string> devices = library.names("devices"),
                                 models = library.names("models");
  Score score{"generalisation",
              "on how many devices do how many models give a figure, and on what does it rest?",
              ""};
  const auto spec = sweep::read_sweep_text(
      "base: {task: step, step: {phase: decode, batch: 1, context: 1024}}\naxes:\n- device: " +
          listed(devices) + "\n- model: " + listed(models) + "\n- parallel.tp: [1, 2, 4, 8]\n",
      "generalisation", library);
  if (!spec) return score.figures = spec.mistakes().front().what, score;
  std::set<std::pair<std::string, std::string>> working, founded;
  sweep::PointBuilder builder(spec->space);
  sweep::Point point;
  engine::Outcome outcome;
  engine::WorkMeter work;
  engine::Scratch scratch;
  for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
    if (builder.build(i, point) != sweep::Admission::admitted) continue;
    const std::pair pair(point.scenario.device.name, point.scenario.model.name);
    if (working.contains(pair)) continue;
    engine::evaluate_into(point.scenario, *spec->resources, outcome, work, scratch);
    if (outcome.status != engine::Status::ok) continue;
    working.insert(pair);
    if (outcome.tier != engine::Tier::roofline) founded.insert(pair);
  }
  const std::size_t all = devices.size() * models.size();
  score.figures = fmt::format(
      "{} devices x {} models: {} of {} pairs have a decode step on up to eight devices, {} of "
      "them with kernels fitted to measurements",
      devices.size(), models.size(), grouped(working.size()), grouped(all),
      grouped(founded.size()));
  return score;
}

// From nothing read to a first row.
Score deployment(const sweep::Library& library) {
  const auto begin = std::chrono::steady_clock::now();
  const auto spec = sweep::read_sweep_text(
      "base: {device: h100-sxm, model: llama-3.1-70b, parallel: {tp: 8}}", "first", library);
  Score score{"deployment", "what does it take to get a first row?", ""};
  if (!spec) return score.figures = spec.mistakes().front().what, score;
  engine::evaluate(spec->space.base(), *spec->resources);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::error_code error;
  const auto bytes = std::filesystem::file_size("/proc/self/exe", error);
  score.figures = fmt::format(
      "one program of {}, no GPU, no Python, no network; {} from a spec to its first row",
      error ? "?" : size_text(double(bytes)), duration(seconds));
  return score;
}

Score extensibility(const sweep::Library& library) {
  std::size_t specs = 0;
  for (const std::string& name : library.libraries()) specs += library.names(name).size();
  std::size_t fields = 0;
  for (const engine::Leaf& leaf : engine::leaf_table().leaves)
    fields += engine::of_role(leaf) ? 0 : 1;
  return {
      "extensibility", "what can a user change or add without touching the program?",
      fmt::format("{} fields of a scenario, each of which can be an axis; {} specs of {} kinds, "
                  "each a file that a user's own folder adds to or replaces; {} tasks, each a row "
                  "of a table",
                  grouped(fields), specs, library.libraries().size(), engine::task_table().size())};
}

}  // namespace

std::vector<Score> scorecard(const std::vector<SuiteResult>& results,
                             const sweep::Library& library) {
  return {fidelity(results), composition(results), generalisation(library), deployment(library),
          extensibility(library)};
}

}  // namespace tools
