#include "tools/validate_serving/validate_serving.h"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <utility>

#include "tools/calibrate/errors/engine_calibrations.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/fit/measured_fit.h"
#include "tools/calibrate/tables/profile_table.h"
#include "tools/validate_serving/argonne_cases.h"
#include "tools/validate_serving/compare.h"
#include "tools/validate_serving/overview_cases.h"
#include "tools/validate_serving/silicon_cases.h"
#include "tools/validate_serving/uneven_contexts.h"

namespace tools {
namespace {

using engine::TierChoice;

// What METHODS asks for at the median, in percent.
constexpr std::string_view kGoals =
    "goal, no measurement of the device    ttft 8, tpot 6, throughput 3\n"
    "goal, device measured                 ttft 5, tpot 3, throughput 2\n";

void note_left_out(const std::vector<ServedCase>& cases, const std::vector<ComparedCase>& compared,
                   std::string& text) {
  std::map<std::string, int> left_out;
  for (const ServedCase& served : cases) {
    if (!served.left_out.empty()) ++left_out[served.left_out];
  }
  for (const ComparedCase& one : compared) {
    if (!one.failure.empty()) ++left_out[one.failure];
  }
  for (const auto& [reason, rows] : left_out) {
    text += fmt::format("left out: {:>4} rows, {}\n", rows, reason);
  }
}

std::string overview_text(const std::vector<ServedCase>& cases,
                          const std::vector<ComparedCase>& compared) {
  std::string text =
      "\n## trtllm_perf_overview: many requests at once, output tokens a second, transfer\n";
  text += rate_lines("device, model", compared, [](const ComparedCase& one) {
    return one.served->scenario.device.name + " " + one.served->scenario.model.name;
  });
  note_left_out(cases, compared, text);
  return text;
}

std::string argonne_text(const std::vector<ServedCase>& cases,
                         const std::vector<ComparedCase>& compared) {
  std::string text =
      "\n## argonne_llm_inference_bench: one batch at once, output tokens a second, transfer\n";
  const auto platform = [](const ComparedCase& one) {
    return one.served->engine + " " + one.served->scenario.device.name;
  };
  text += rate_lines("engine, device", compared, platform);
  text += "\n" + rate_lines("engine, device, model", compared, [&](const ComparedCase& one) {
            return platform(one) + " " + one.served->scenario.model.name;
          });
  text +=
      "\n" + rate_lines("engine, device, tensor parallel", compared, [&](const ComparedCase& one) {
        return fmt::format("{} {}", platform(one), one.served->scenario.parallel.tp);
      });
  text += "\n" + rate_lines("engine, device, batch", compared, [&](const ComparedCase& one) {
            return fmt::format("{} {:>2}", platform(one), one.served->scenario.load.requests);
          });
  note_left_out(cases, compared, text);
  return text;
}

std::string figure_lines(const ComparedCase& compared) {
  std::string text = fmt::format("{:<34}", compared.variant);
  if (!compared.failure.empty()) return text + compared.failure + "\n";
  text += fmt::format("{:.0f} KV blocks\n", compared.kv_blocks);
  for (const Figure& figure : compared.figures) {
    text += fmt::format("  {:<24}{:>14.5g}{:>14.5g}{:>+9.1f} %\n", figure.name, figure.measured,
                        figure.predicted, 100 * (figure.predicted / figure.measured - 1));
  }
  return text;
}

// The replays of one run and their text.
engine::Result<std::string> replay(const MeasuredRun& run, const sweep::Library& library,
                                   std::vector<ComparedCase>& compared) {
  auto resources = replay_resources(run, library);
  if (!resources) return resources.mistakes();
  const bool measured = resources->calibrations.find(run.served.scenario.device.name) != nullptr;
  std::string text = fmt::format("\n{} (vLLM {}, {} requests)\n  {:<24}{:>14}{:>14}{:>11}\n",
                                 run.served.id, run.served.version, run.requests.size(), "figure",
                                 "measured", "predicted", "error");
  std::vector<TierChoice> tiers = {TierChoice::transfer};
  if (measured) tiers.push_back(TierChoice::measured);
  for (const TierChoice tier : tiers) {
    for (const bool given : {false, true}) {
      if (given && run.kv_blocks == 0) continue;
      compared.push_back(compare_replay(run, {.tier = tier, .given_blocks = given}, *resources));
      text += figure_lines(compared.back());
    }
  }
  if (run.kv_blocks == 0) text += "  the run does not say how many KV blocks its engine had\n";
  const auto uneven = uneven_contexts(run, *resources);
  if (!uneven) return uneven.mistakes();
  text += *uneven;
  if (!measured)
    text += "  no profile of this device and model: not replayed with measured times\n";
  return text;
}

std::string silicon_text(const std::vector<ServedCase>& cases,
                         const std::vector<ComparedCase>& compared) {
  std::string text = "\n## silicon_e2e: closed loops on H100, mean times, transfer\n";
  text += group_heading("engine, model");
  text += group_lines(compared, [](const ComparedCase& one) {
    const ServedCase& served = *one.served;
    return fmt::format("{} {}{}{}", served.engine, served.scenario.model.name,
                       served.scenario.prefill.present ? ", disaggregated" : "",
                       one.scenario->speculation.tokens > 0 ? ", drafts" : "");
  });
  text += "\n" + group_heading("disaggregated");
  text += group_lines(compared, [](const ComparedCase& one) {
    return std::string(one.served->scenario.prefill.present ? "all engines and models" : "");
  });
  text += "\n" + group_heading("engine, concurrency");
  text += group_lines(compared, [](const ComparedCase& one) {
    return fmt::format("{} {:>4}", one.served->engine, one.served->scenario.load.clients);
  });
  text += "\n" + group_heading("engine, tensor parallel");
  text += group_lines(compared, [](const ComparedCase& one) {
    return fmt::format("{} {:>4}", one.served->engine, one.served->scenario.parallel.tp);
  });
  text += "\n" + group_heading("");
  text += group_lines(compared, [](const ComparedCase&) { return std::string("all"); });
  note_left_out(cases, compared, text);
  return text;
}

}  // namespace

engine::Result<engine::Resources> transfer_resources(const sweep::Library& library) {
  const auto transfer = load_transfer(library);
  if (!transfer) return transfer.mistakes();
  if (*transfer == nullptr) {
    return engine::Mistake{{}, "the library has no calibration/transfer.calibration", ""};
  }
  const auto engines = load_engines(library, **transfer);
  if (!engines) return engines.mistakes();
  engine::Resources resources;
  resources.calibrations.by_name[std::string(engine::kTransferName)] = *transfer;
  for (const EngineCalibration& one : *engines) {
    resources.calibrations.by_engine[one.engine] = one.calibration;
  }
  return resources;
}

engine::Result<engine::Resources> replay_resources(const MeasuredRun& run,
                                                   const sweep::Library& library) {
  auto loaded = transfer_resources(library);
  if (!loaded) return loaded.mistakes();
  engine::Resources resources = std::move(loaded).value();
  const engine::Calibration& transfer = *resources.calibrations.find(engine::kTransferName);
  resources.traces[run.served.scenario.load.trace] = run.trace;
  if (!std::filesystem::is_directory(run.profile)) return resources;
  auto text = profile_table(run.profile, run.served.scenario.model);
  if (!text) return text.mistakes();
  const auto table = kernel_table_of(std::move(text).value(), Times::needed);
  if (!table) return table.mistakes();
  const auto calls = gather_calls(*table, {});
  if (!calls) return calls.mistakes();
  const engine::Device& device = run.served.scenario.device;
  const MeasuredFit fit = fit_measured(calls->calls, device, transfer);
  resources.calibrations.by_name[device.name] =
      std::make_shared<const engine::Calibration>(engine::completed_by(fit.calibration, transfer));
  return resources;
}

engine::Result<ServingValidation> validate_serving(const std::filesystem::path& data,
                                                   const sweep::Library& library) {
  const auto runs = vllm_runs(data, library);
  if (!runs) return runs.mistakes();
  const auto cases = silicon_cases(data / "silicon_e2e" / "h100_sxm.csv", library);
  if (!cases) return cases.mistakes();
  const auto overview = overview_cases(data / "trtllm_perf_overview", library);
  if (!overview) return overview.mistakes();
  const auto batches =
      argonne_cases(data / "argonne_llm_inference_bench" / "results_a100_h100.csv", library);
  if (!batches) return batches.mistakes();
  const auto resources = transfer_resources(library);
  if (!resources) return resources.mistakes();

  ServingValidation validation;
  validation.text =
      std::string(kGoals) + "\n## llmservingsim_vllm_runs: recorded loads, replayed\n";
  std::vector<ComparedCase> replayed;
  for (const MeasuredRun& run : *runs) {
    const auto text = replay(run, library, replayed);
    if (!text) return text.mistakes();
    validation.text += *text;
  }
  const auto compare = [&](const std::vector<ServedCase>& these, auto comparison) {
    std::vector<ComparedCase> compared;
    for (const ServedCase& served : these) {
      compared.push_back(served.left_out.empty() ? comparison(served, *resources)
                                                 : ComparedCase{.served = &served});
    }
    return compared;
  };
  const std::vector<ComparedCase> loops = compare(*cases, compare_means);
  const std::vector<ComparedCase> saturated = compare(*overview, compare_throughput);
  const std::vector<ComparedCase> at_once = compare(*batches, compare_throughput);
  validation.text += silicon_text(*cases, loops) + overview_text(*overview, saturated) +
                     argonne_text(*batches, at_once);
  for (const auto* compared : {&loops, &saturated, &at_once}) {
    replayed.insert(replayed.end(), compared->begin(), compared->end());
  }
  validation.table = figure_table(replayed);
  return validation;
}

}  // namespace tools
