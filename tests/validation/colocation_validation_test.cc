// Steps of two models on one H200, measured by tools/gpu/colocation_sweep.py in streams, on halves of the multiprocessors and
// as two processes, against what sharing is predicted to cost. Three constants were fitted to these rows
// (engine/sharing/shared_device.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space_parts.h"
#include "tests/support/csv_rows.h"
#include "tests/support/paths.h"

namespace engine {
namespace {

struct Lab {
  Scenario base;
  std::map<std::string, ModelSpec> models;
  std::shared_ptr<const Resources> resources;
};

Lab laboratory() {
  Lab lab;
  for (const char* name : {"llama-3.1-8b", "llama-3.2-3b"}) {
    // As measured: a graph that is replayed without a pause, and no host.
    const auto spec = sweep::read_sweep_text(
        std::string("base: {device: h200-sxm, host: none, model: ") + name + "}\n",
        paths::specs("colocation.yaml"), sweep::Library({paths::specs("")}));
    if (!spec) {
      ADD_FAILURE() << to_text(spec.mistakes());
      continue;
    }
    lab.base = spec->space.base();
    lab.models[name] = lab.base.model;
    lab.resources = spec->resources;
  }
  return lab;
}

// The step of a job, by its row or its name; false where it is no step of a model.
bool step_of(const std::string& job, const Lab& lab, ModelSpec& model, StepShape& step) {
  for (const auto& [name, spec] : lab.models) {
    const std::size_t at = job.find("_" + name + "_");
    if (at == std::string::npos) continue;
    const std::string kind = job.substr(0, at), sizes = job.substr(at + name.size() + 2);
    model = spec;
    if (kind == "decode") {
      const std::size_t cross = sizes.find('x');
      step = {.phase = StepPhase::decode,
              .batch = std::stoll(sizes.substr(0, cross)),
              .context = std::stoll(sizes.substr(cross + 1))};
    } else if (kind == "prefill") {
      step = {.phase = StepPhase::prefill, .batch = 1, .prompt = std::stoll(sizes)};
    } else {
      return false;
    }
    return true;
  }
  return false;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ptrdiff_t(values.size() / 2));
  return values[values.size() / 2];
}

// Time of a job beside another over its time alone on the whole device: predicted over measured, less one.
std::map<std::string, std::vector<double>> errors_by_mode(bool print) {
  const Lab lab = laboratory();
  const std::map<std::string, SharingMode> modes{{"streams", SharingMode::streams},
                                                 {"partition", SharingMode::spatial},
                                                 {"processes", SharingMode::time_slices}};
  std::vector<toys::CsvRow> rows = toys::csv_rows("calibration/h200-sxm/colocation.csv");
  std::map<std::string, double> whole;  // seconds of a job alone
  for (toys::CsvRow& row : rows) {
    if (row["mode"] == "streams" && row["beside"].empty())
      whole[row["job"]] = std::stod(row["seconds"]);
  }
  std::map<std::string, std::vector<double>> errors;
  for (toys::CsvRow& row : rows) {
    if (row["beside"].empty() || !modes.contains(row["mode"])) continue;
    Scenario scenario = lab.base;
    scenario.task = Task::step;
    scenario.neighbour.present = true;
    fill_roles(scenario);
    Neighbour& other = scenario.neighbour;
    if (!step_of(row["job"], lab, scenario.model, scenario.step) ||
        !step_of(row["beside"], lab, other.deployment.model, other.step))
      continue;
    scenario.sharing.mode = modes.at(row["mode"]);
    if (!row["share"].empty()) scenario.sharing.share = std::stod(row["share"]);
    const Outcome outcome = evaluate(scenario, *lab.resources);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    const double measured = std::stod(row["seconds"]) / whole.at(row["job"]);
    errors[row["mode"]].push_back(std::abs(outcome.metrics.sharing_slowdown / measured - 1));
    if (print) {
      std::printf("%s %s %s beside %s: %.2f predicted, %.2f measured\n", row["mode"].c_str(),
                  row["share"].c_str(), row["job"].c_str(), row["beside"].c_str(),
                  outcome.metrics.sharing_slowdown, measured);
    }
  }
  return errors;
}

TEST(MeasuredNeighbours, OnAnH200) {
  auto errors = errors_by_mode(std::getenv("LLMSWEEP_PRINT_COLOCATION") != nullptr);
  for (const auto& [mode, limit] :
       std::map<std::string, double>{{"streams", 0.12}, {"partition", 0.15}, {"processes", 0.08}}) {
    ASSERT_GE(errors[mode].size(), 20U) << mode;
    RecordProperty("median_error_" + mode, std::to_string(median(errors[mode])));
    EXPECT_LT(median(errors[mode]), limit) << mode;
  }
}

}  // namespace
}  // namespace engine
