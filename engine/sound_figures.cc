#include "engine/sound_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace engine {
namespace {

// NaN is a figure that the task does not have.
bool sound(double value) { return !(value < 0) && !(value > std::numeric_limits<double>::max()); }

// The least and the greatest of them tell. Four of each, so that the processor looks at several figures at once; a
// comparison with a NaN is false, so these leave no trace.
bool all_sound(std::span<const double> figures) {
  std::array<double, 4> least{}, greatest{};
  const std::size_t fours = figures.size() / 4 * 4;
  for (std::size_t i = 0; i < fours; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) {
      const double figure = figures[i + k];
      least[k] = figure < least[k] ? figure : least[k];
      greatest[k] = figure > greatest[k] ? figure : greatest[k];
    }
  }
  return std::ranges::all_of(least, sound) && std::ranges::all_of(greatest, sound) &&
         std::ranges::all_of(figures.subspan(fours), sound);
}

std::string_view name_of_figure(std::size_t number) {
  std::string_view found;
  std::size_t next = 0;
  const Metrics none;
  Metrics::fields(none, [&](std::string_view name, const auto&, std::string_view) {
    if (next++ == number) found = name;
  });
  return found;
}

Refusal unsound(std::string_view name, double value) {
  return {ReasonClass::figures,
          fmt::format("{} comes out as {}: some setting is too far from any real machine", name,
                      value)};
}

}  // namespace

std::optional<Refusal> figures_problem(const TaskEntry& task, const Outcome& outcome) {
  const std::span figures = figure_values(outcome.metrics);
  if (!all_sound(figures)) {
    const auto bad = std::ranges::find_if_not(figures, sound);
    return unsound(name_of_figure(std::size_t(bad - figures.begin())), *bad);
  }
  const std::string_view name = task.essential;
  const double value = task.essential_value(outcome.metrics);
  if (!(value >= 0)) return unsound(name, value);
  for (const KernelRow& row : outcome.kernels) {
    const double time = row.work.time.value;
    if (!(time >= 0) || !sound(time)) {
      return unsound(fmt::format("the time of kernel {}", engine::name_of(row.op)), time);
    }
  }
  return std::nullopt;
}

void fail(Outcome& outcome, Refusal refusal) {
  const double devices = outcome.metrics.devices;
  outcome.metrics = Metrics{};
  outcome.metrics.devices = devices;
  outcome.saturation = Saturation::none;
  clear_rows(outcome);
  outcome.refuse(Status::failed, std::move(refusal));
}

}  // namespace engine
