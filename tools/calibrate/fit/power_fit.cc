#include "tools/calibrate/fit/power_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "engine/step/step_time.h"
#include "results/text_table.h"
#include "tools/calibrate/fit/folds.h"
#include "tools/calibrate/fit/minimise.h"
#include "tools/calibrate/tables/step_rows.h"

namespace tools {
namespace {

using engine::Seconds;
using engine::Watts;

struct PoweredStep {
  std::string phase;
  engine::ModelSpec model;
  engine::Quantization quant;
  engine::BatchShape batch;
  double seconds = 0, watts = 0;
};

struct Predicted {
  double seconds = 0, watts = 0;
};

using Powers = std::span<const double>;  // busy above idle, tensor, memory

engine::Device with_powers(engine::Device device, Powers powers) {
  device.busy_power = device.idle_power + Watts{powers[0]};
  device.tensor_power = Watts{powers[1]};
  device.memory_power = Watts{powers[2]};
  return device;
}

Predicted predicted(const PoweredStep& step, const engine::Device& device,
                    const PowerFitInputs& inputs) {
  const engine::Parallelism parallel;
  const engine::ModelShard shard = engine::shard_of(step.model, parallel, step.quant);
  const engine::Fabric fabric = engine::fabric_of(engine::Cluster{}, device);
  const engine::HostSettings host;
  const engine::StepContext context{device, fabric, shard, host, inputs.calibration};
  const engine::Phase phase =
      step.phase == "decode" ? engine::Phase::decode : engine::Phase::prefill;
  const engine::DeviceTime time = engine::step_time(step.batch, context, phase, nullptr).device;
  const Seconds gaps = inputs.kernel_switch * time.launches();
  const Seconds all = time.total() + gaps;
  const engine::Joules drawn =
      time.compute.energy + time.attention.energy + device.idle_power * gaps;
  return {all.value, (drawn / all).value};
}

// Of a step at the limit the time says what it would draw, of one below it the power does.
double miss(const PoweredStep& step, const Predicted& by) {
  const double seconds = std::log(by.seconds / step.seconds);
  const double watts = std::log(by.watts / step.watts);
  return std::abs(seconds) + std::abs(watts);
}

std::vector<double> fitted(const std::vector<PoweredStep>& steps,
                           std::optional<std::size_t> left_out, const PowerFitInputs& inputs) {
  const double limit = inputs.device.power_limit.value;
  const std::vector<Unknown> unknowns{{"busy", limit / 4, limit / 100, limit * 2},
                                      {"tensor", limit / 2, limit / 100, limit * 4},
                                      {"memory", limit / 4, limit / 100, limit * 2}};
  const auto mean_miss = [&](Powers powers) {
    const engine::Device device = with_powers(inputs.device, powers);
    double sum = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (left_out && i % kFolds == *left_out) continue;
      sum += miss(steps[i], predicted(steps[i], device, inputs));
    }
    return sum / double(steps.size());
  };
  return minimise(mean_miss, unknowns, {.rounds = 8, .evaluations = 200}).point;
}

engine::Result<std::vector<PoweredStep>> steps_of(const results::TextTable& table,
                                                  const std::string& file, Watts& idle) {
  std::vector<PoweredStep> steps;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableRow row(table, i);
    const std::string phase(row.text("phase"));
    if (phase == "rest") idle = Watts{row.number("power_w")};
    if (phase != "prefill" && phase != "decode") continue;
    PoweredStep step{phase,
                     model_of_step(row),
                     {},
                     batch_of_step(row),
                     row.number("seconds"),
                     row.number("power_w")};
    if (row.text("format") == "fp8") {
      step.quant.weights = step.quant.activations = engine::Dtype::fp8;
    }
    if (step.seconds > 0 && step.watts > 0) steps.push_back(std::move(step));
  }
  if (steps.size() >= 3 * kFolds && idle.value > 0) return steps;
  return engine::Mistake{{file, 1, 1},
                         fmt::format("{} steps with seconds and power_w, and {} row of phase rest",
                                     steps.size(), idle.value > 0 ? "a" : "no"),
                         fmt::format("a fit takes {} steps and the power at rest; "
                                     "tools/gpu/power_steps.py measures both",
                                     3 * kFolds)};
}

void add_errors(const std::vector<PoweredStep>& steps, const std::vector<Predicted>& all,
                PowerFit& fit) {
  std::map<std::string, std::pair<std::vector<Scored>, std::vector<Scored>>> by_phase;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const std::string& phase : {steps[i].phase, std::string("~all")}) {
      by_phase[phase].first.push_back({steps[i].seconds, all[i].seconds});
      by_phase[phase].second.push_back({steps[i].watts, all[i].watts});
    }
  }
  for (const auto& [phase, scored] : by_phase) {
    fit.errors.push_back({phase == "~all" ? "all" : phase, error_summary(scored.first),
                          error_summary(scored.second)});
  }
}

}  // namespace

engine::Result<PowerFit> fit_powers(const std::filesystem::path& file,
                                    const PowerFitInputs& given) {
  const auto table = results::read_table(file);
  if (!table) return table.mistakes();
  PowerFitInputs inputs = given;
  inputs.device.idle_power = Watts{0};
  const auto steps = steps_of(*table, file.string(), inputs.device.idle_power);
  if (!steps) return steps.mistakes();
  const std::vector<double> all = fitted(*steps, std::nullopt, inputs);
  std::vector<double> low = all, high = all;
  std::vector<Predicted> unseen(steps->size());
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    const std::vector<double> others = fitted(*steps, fold, inputs);
    for (std::size_t p = 0; p < all.size(); ++p) {
      low[p] = std::min(low[p], others[p]);
      high[p] = std::max(high[p], others[p]);
    }
    const engine::Device device = with_powers(inputs.device, others);
    for (std::size_t i = fold; i < steps->size(); i += kFolds) {
      unseen[i] = predicted((*steps)[i], device, inputs);
    }
  }
  const Watts idle = inputs.device.idle_power;
  PowerFit fit;
  fit.powers = {{"idle_power", idle, idle, idle},
                {"busy_power", idle + Watts{all[0]}, idle + Watts{low[0]}, idle + Watts{high[0]}},
                {"tensor_power", Watts{all[1]}, Watts{low[1]}, Watts{high[1]}},
                {"memory_power", Watts{all[2]}, Watts{low[2]}, Watts{high[2]}}};
  add_errors(*steps, unseen, fit);
  return fit;
}

std::string power_fit_text(const PowerFit& fit) {
  std::string text;
  for (const FittedPower& power : fit.powers) {
    text += fmt::format("{}: {:.0f} W  # {:.0f} to {:.0f} W\n", power.field, power.value.value,
                        power.low.value, power.high.value);
  }
  text += fmt::format("\n{:<9} {:>5} {:>9} {:>6} {:>9} {:>6}\n", "left out", "rows", "seconds %",
                      "bias", "watts %", "bias");
  for (const PowerErrors& row : fit.errors) {
    text += fmt::format("{:<9} {:>5} {:>9.1f} {:>+6.1f} {:>9.1f} {:>+6.1f}\n", row.phase,
                        row.seconds.rows, 100 * row.seconds.mean, 100 * row.seconds.bias,
                        100 * row.watts.mean, 100 * row.watts.bias);
  }
  return text;
}

}  // namespace tools
