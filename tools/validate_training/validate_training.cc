#include "tools/validate_training/validate_training.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "engine/evaluate.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/tables/quantile.h"
#include "tools/validate_serving/validate_serving.h"
#include "tools/validate_training/megatron_layers.h"
#include "tools/validate_training/training_runs.h"

namespace tools {
namespace {

struct Prediction {
  const TrainingRun* run = nullptr;
  double tokens_per_s_per_device = 0;
  double peak_gb = 0;
  std::string failure;     // why there is none
  bool too_large = false;  // by our count it does not fit its devices; it was asked of larger ones
};

// A run that somebody made fits. Where ours does not, the memory model is wrong, and says so; its speed is still asked for.
Prediction predicted(const TrainingRun& run, const engine::Resources& resources) {
  Prediction prediction{.run = &run, .failure = run.left_out};
  if (!run.left_out.empty()) return prediction;
  engine::Scenario scenario = run.scenario;
  engine::Outcome outcome = engine::evaluate(scenario, resources);
  if (outcome.reason_class == engine::ReasonClass::memory) {
    prediction.too_large = true;
    scenario.device.memory_capacity = engine::Bytes{1e15};
    outcome = engine::evaluate(scenario, resources);
  }
  if (outcome.status != engine::Status::ok) {
    prediction.failure = outcome.reason;
    return prediction;
  }
  prediction.tokens_per_s_per_device = outcome.metrics.tokens_per_s_per_device;
  prediction.peak_gb = outcome.metrics.peak_memory.value / 1e9;
  return prediction;
}

using GroupOf = std::function<std::string(const TrainingRun&)>;

std::string scale_of(const TrainingRun& run) {
  const std::int64_t devices = run.scenario.parallel.devices();
  return devices <= 8 ? "1 node" : devices <= 64 ? "up to 64 GPUs" : "above 64 GPUs";
}
std::string length_of(const TrainingRun& run) {
  const std::int64_t tokens = run.scenario.train.sequence;
  return tokens <= 2048 ? "up to 2,048 tokens" : tokens <= 8192 ? "4,096 and 8,192" : "longer";
}

std::string error_line(std::string_view name, const ErrorSummary& errors) {
  return fmt::format("{:<38}{:>5}{:>9.1f}{:>8.1f}{:>+8.1f}{:>8.3f}\n", name, errors.rows,
                     100 * errors.median, 100 * errors.p90, 100 * errors.bias,
                     errors.rank_correlation);
}

// One line per group: errors of the time that a token takes.
std::string group_text(const std::vector<Prediction>& predictions, std::string_view table,
                       std::string_view heading, const GroupOf& group) {
  std::map<std::string, std::vector<Scored>> groups;
  for (const Prediction& one : predictions) {
    if (!one.failure.empty() || one.run->table != table) continue;
    groups[group(*one.run)].push_back(
        {1 / one.run->tokens_per_s_per_device, 1 / one.tokens_per_s_per_device});
  }
  std::string text = fmt::format("{:<38}{:>5}{:>9}{:>8}{:>8}{:>8}\n", heading, "rows", "median %",
                                 "p90", "bias", "rank");
  for (const auto& [name, scored] : groups) {
    text += error_line(name, error_summary(scored));
  }
  return text;
}

// A recipe that several releases ran has one prediction and several measurements: errors against their median, and the highest
// rank correlation by rows that one figure a recipe can have.
std::string recipes_text(const std::vector<Prediction>& predictions, std::string_view table) {
  struct Releases {
    std::vector<double> measured;
    double predicted = 0;
  };
  std::map<std::string, Releases> recipes;
  std::size_t rows = 0;
  for (const Prediction& one : predictions) {
    if (!one.failure.empty() || one.run->table != table) continue;
    Releases& recipe = recipes[one.run->name];
    recipe.measured.push_back(1 / one.run->tokens_per_s_per_device);
    recipe.predicted = 1 / one.tokens_per_s_per_device;
    ++rows;
  }
  if (recipes.size() == rows) return "";
  std::vector<Scored> scored;
  std::vector<double> measured, best;
  for (auto& [name, recipe] : recipes) {
    const double median = quantile(recipe.measured, 0.5);
    scored.push_back({median, recipe.predicted});
    measured.insert(measured.end(), recipe.measured.begin(), recipe.measured.end());
    best.insert(best.end(), recipe.measured.size(), median);
  }
  return error_line("recipes, the median of their releases", error_summary(scored)) +
         fmt::format("(one figure a recipe ranks all {} rows with at most {:.3f})\n", rows,
                     rank_correlation(measured, best));
}

std::string table_text(const std::vector<Prediction>& predictions, std::string_view table) {
  const auto of_table = [&](const Prediction& one) { return one.run->table == table; };
  if (std::ranges::none_of(predictions, of_table)) return "";
  std::string text = fmt::format("\n## {}: time of a token, transfer\n", table);
  text += group_text(predictions, table, "GPU, model", [](const TrainingRun& run) {
    return run.scenario.device.name + " " + run.model;
  });
  text += group_text(predictions, table, "GPU, scale", [](const TrainingRun& run) {
    return run.scenario.device.name + " " + scale_of(run);
  });
  text += group_text(predictions, table, "GPU, length", [](const TrainingRun& run) {
    return run.scenario.device.name + " " + length_of(run);
  });
  text += group_text(predictions, table, "", [](const TrainingRun&) { return std::string("all"); });
  text += recipes_text(predictions, table);
  std::map<std::string, int> not_stated, left_out;
  int too_large = 0, tried = 0;
  for (const Prediction& one : predictions) {
    if (one.run->table != table) continue;
    if (!one.failure.empty()) {
      ++left_out[one.failure];
      continue;
    }
    ++not_stated[one.run->not_stated];
    too_large += one.too_large;
    ++tried;
  }
  for (const auto& [what, rows] : not_stated) {
    text += fmt::format("not stated in {} rows: {}\n", rows, what);
  }
  for (const auto& [why, rows] : left_out)
    text += fmt::format("left out: {} rows, {}\n", rows, why);
  text += fmt::format("memory: {} of {} runs fit their devices by our count, as all of them did\n",
                      tried - too_large, tried);
  return text;
}

using Groups = std::map<std::string, std::vector<Scored>>;

// The board's limit holds where a load draws nearly that much; others wait for their host.
constexpr double kNearTheLimit = 0.97;

void add_loads(const std::vector<MeasuredLoad>& loads, const engine::Resources& resources,
               Groups& groups) {
  for (const MeasuredLoad& load : loads) {
    const engine::Outcome outcome = engine::evaluate(load.scenario, resources);
    if (outcome.status != engine::Status::ok) continue;
    const engine::Metrics& metrics = outcome.metrics;
    const engine::Device& device = load.scenario.device;
    // Gradients are set to zero before each step, which writes them once.
    const double zeros = 2 * metrics.parameters / (0.9 * device.memory_bandwidth.value);
    const double step = metrics.iteration_time.value;
    const bool limited = load.power > kNearTheLimit * device.power_limit.value;
    const std::string which = limited ? "unbroken load" : "unbroken load, small";
    groups["step, " + which].push_back({load.step, step + zeros});
    groups["power, " + which].push_back({load.power, metrics.iteration_energy.value / step});
  }
}

void add_steps(const std::vector<MeasuredStep>& steps, const engine::Resources& resources,
               Groups& groups) {
  for (const MeasuredStep& step : steps) {
    const engine::Outcome outcome = engine::evaluate(step.scenario, resources);
    if (outcome.status != engine::Status::ok) continue;
    const engine::Metrics& metrics = outcome.metrics;
    const auto add = [&](const std::string& what, double measured, double guess) {
      groups[what].push_back({measured, guess});
    };
    const bool waits = step.launch_bound && step.mode != "graph";
    const std::string mode = step.mode + (waits ? ", small" : "");
    // What graphs keep for themselves was not measured.
    if (step.mode != "graph") {
      add("memory, " + step.mode, step.peak_bytes, metrics.peak_memory.value);
    }
    add("forward, " + mode, step.forward, metrics.forward_time.value);
    add("backward, " + mode, step.backward, metrics.backward_time.value);
    add("optimizer, " + mode, step.optimizer, metrics.optimizer_time.value);
    add("step, " + mode, step.forward + step.backward + step.optimizer,
        (metrics.forward_time + metrics.backward_time + metrics.optimizer_time).value);
  }
}

std::string groups_text(std::string_view title, const Groups& groups) {
  std::string text = fmt::format("\n## {}\n{:<38}{:>5}{:>9}{:>8}{:>8}{:>8}\n", title, "what, how",
                                 "rows", "median %", "p90", "bias", "rank");
  for (const auto& [name, scored] : groups) {
    text += error_line(name, error_summary(scored));
  }
  return text;
}

// Steps of PyTorch models on our H200.
struct MeasuredSteps {
  std::vector<MeasuredStep> fitted, held_out;
  std::vector<MeasuredLoad> loads;
};

// The same resources, with the kernels that were measured on the device of a step.
engine::Result<engine::Resources> with_measured_kernels(const MeasuredStep& step,
                                                        const sweep::Library& library,
                                                        engine::Resources resources) {
  const engine::Device& device = step.scenario.device;
  const auto loaded = load_requested({.tier = "measured", .device = device}, library);
  if (!loaded) return loaded.mistakes();
  resources.calibrations.by_name[device.name] = loaded->device;
  return resources;
}

engine::Result<std::string> steps_text(const MeasuredSteps& measured, const sweep::Library& library,
                                       const engine::Resources& resources) {
  Groups fitted, held_out, by_own_kernels;
  add_loads(measured.loads, resources, fitted);
  add_steps(measured.fitted, resources, fitted);
  add_steps(measured.held_out, resources, held_out);
  const auto own = with_measured_kernels(measured.held_out.front(), library, resources);
  if (!own) return own.mistakes();
  add_steps(measured.held_out, *own, by_own_kernels);
  return groups_text(
             "steps of PyTorch models on one H200; optimizers and attention's backward kernel were "
             "fitted to the first",
             fitted) +
         groups_text("steps of other models on it, which nothing was fitted to: transfer",
                     held_out) +
         groups_text("the same steps, with the H200's kernels measured", by_own_kernels) +
         "(small: the host's launches may bound them)\n";
}

std::string layers_text(const std::vector<MeasuredLayers>& layers,
                        const engine::Resources& resources) {
  Groups groups;
  for (const MeasuredLayers& one : layers) {
    const engine::Outcome outcome = engine::evaluate(one.scenario, resources);
    if (outcome.status != engine::Status::ok) continue;
    groups[one.what].push_back(
        {one.seconds, seconds_of_a_micro_batch(one.scenario, outcome.metrics)});
  }
  return groups_text(
      "layers of Megatron-Core and Transformer Engine on one H200, forward and backward without "
      "the host; passes of mixtures were read off them",
      groups);
}

results::TextTable runs_table(const std::vector<Prediction>& predictions) {
  results::TextTable table;
  for (const char* name : {"table", "run", "measured_tokens_per_s", "predicted_tokens_per_s",
                           "peak_gb", "fits", "not_stated", "left_out"}) {
    table.columns.emplace_back(name);
  }
  for (const Prediction& one : predictions) {
    const bool known = one.failure.empty();
    const std::vector<std::string> cells = {
        one.run->table,
        one.run->name,
        fmt::format("{}", one.run->tokens_per_s_per_device),
        known ? fmt::format("{:.6g}", one.tokens_per_s_per_device) : "",
        known ? fmt::format("{:.6g}", one.peak_gb) : "",
        known ? (one.too_large ? "0" : "1") : "",
        one.run->not_stated,
        one.failure};
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].append(cells[i]);
  }
  return table;
}

}  // namespace

engine::Result<TrainingValidation> validate_training(const std::filesystem::path& data,
                                                     const sweep::Library& library) {
  const auto runs = training_runs(data, library);
  if (!runs) return runs.mistakes();
  const auto resources = transfer_resources(library);
  if (!resources) return resources.mistakes();
  const std::filesystem::path measured = library.folders().back() / "calibration" / "h200-sxm";
  MeasuredSteps steps;
  const std::pair<const char*, std::vector<MeasuredStep>*> tables[]{
      {"train_steps.csv", &steps.fitted},
      {"train_fp8_steps.csv", &steps.fitted},
      {"train_heldout_steps.csv", &steps.held_out},
      {"train_graph_steps.csv", &steps.held_out}};
  for (const auto& [file, all] : tables) {
    const auto more = measured_steps(measured / file, library);
    if (!more) return more.mistakes();
    all->insert(all->end(), more->begin(), more->end());
  }
  const auto loads = measured_loads(measured / "train_loads.csv", library);
  if (!loads) return loads.mistakes();
  steps.loads = *loads;
  const auto layers = megatron_layers(measured / "megatron_layers.csv", library);
  if (!layers) return layers.mistakes();
  const auto of_steps = steps_text(steps, library, *resources);
  if (!of_steps) return of_steps.mistakes();
  std::vector<Prediction> predictions;
  for (const TrainingRun& run : *runs) predictions.push_back(predicted(run, *resources));
  TrainingValidation validation;
  validation.text =
      "goal at the median: 6%; 3% for steps and 5% for their phases where kernels of the GPU were "
      "measured\n" +
      *of_steps + layers_text(*layers, *resources) +
      table_text(predictions, "train_megatron_bridge") +
      table_text(predictions, "train_mosaicml_mpt") +
      table_text(predictions, "published_mlperf_training") +
      table_text(predictions, "published_maxtext_tpu") +
      table_text(predictions, "published_intel_gaudi");
  validation.table = runs_table(predictions);
  return validation;
}

}  // namespace tools
