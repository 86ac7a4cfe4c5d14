// Models that somebody served and published fit their devices by our count, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "engine/evaluate.h"
#include "results/text_table.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"
#include "tools/calibrate/tables/table_row.h"

namespace {

namespace fs = std::filesystem;
using engine::Scenario;

class PublishedServing : public testing::Test {
 protected:
  void SetUp() override {
    data_ = fs::path(paths::shared()) / "data";
    if (!fs::exists(data_ / "published_intel_gaudi")) {
      GTEST_SKIP() << data_ << " is not there: published runs cannot be compared";
    }
  }
  // What `scenario_of` makes of each row works.
  template <class ScenarioOf>
  int rows_that_fit(const fs::path& file, ScenarioOf&& scenario_of) {
    const auto table = results::read_table(data_ / file);
    EXPECT_TRUE(table);
    int rows = 0;
    for (std::size_t i = 0; table && i < table->rows(); ++i) {
      const tools::TableRow row(*table, i);
      Scenario scenario;
      if (!scenario_of(row, scenario)) continue;
      ++rows;
      scenario.serving.kernels
          .clear();  // memory is asked for, not how long kernels of an engine take
      const engine::Outcome outcome = engine::evaluate(scenario, toys::shipped_resources());
      EXPECT_EQ(outcome.status, engine::Status::ok)
          << file << ", row " << i << ", " << row.text("model") << row.text("benchmark") << ": "
          << outcome.reason;
    }
    return rows;
  }
  static void take(std::string_view device, std::string_view model, const char* engine,
                   Scenario& scenario) {
    scenario.device = toys::shipped("devices", std::string(device)).device;
    scenario.model = toys::shipped("models", std::string(model)).model;
    scenario.serving = toys::shipped("serving", engine).serving;
    scenario.host = toys::shipped("hosts", engine).host;
    scenario.quant.weights = scenario.quant.activations = scenario.quant.kv = engine::Dtype::fp8;
  }

  fs::path data_;
};

// The whole batch is in memory at the end of its answers: one row fills all but 1% of a device.
TEST_F(PublishedServing, BatchesOfGaudiFit) {
  const int rows =
      rows_that_fit(fs::path("published_intel_gaudi") / "intel_gaudi.csv",
                    [](const tools::TableRow& row, Scenario& scenario) {
                      if (row.text("task") == "train") return false;
                      scenario.task = engine::Task::request;
                      take(row.text("device"), row.text("model"), "optimum-habana", scenario);
                      scenario.model.max_context = 8192;
                      scenario.quant.group = 1 << 20;
                      scenario.parallel.tp = row.count("devices");
                      scenario.request = {.batch = row.count("batch"),
                                          .prompt = row.count("prompt"),
                                          .output = std::max<std::int64_t>(1, row.count("output"))};
                      return true;
                    });
  EXPECT_EQ(rows, 22);
}

// Models of MLPerf's inference on one replica, with the submitters' seats, which need not be filled.
TEST_F(PublishedServing, ModelsOfMlperfFit) {
  const int rows = rows_that_fit(
      fs::path("published_mlperf_inference") / "mlperf_inference.csv",
      [](const tools::TableRow& row, Scenario& scenario) {
        const bool latent = row.text("benchmark") == "deepseek-r1";
        const char* engine = row.text("engine") == "vllm" ? "vllm-v1" : "tensorrt-llm";
        scenario.task = engine::Task::serve;
        take(row.text("device"),
             latent                                    ? "deepseek-r1"
             : row.text("benchmark") == "mixtral-8x7b" ? "mixtral-8x7b"
                                                       : "llama-2-70b",
             engine, scenario);
        if (latent) {
          scenario.quant.weights = scenario.quant.activations = engine::Dtype::fp4;
          scenario.quant.group = 16;
          scenario.parallel.dp = scenario.parallel.ep = row.count("ep");
        }
        scenario.serving.max_num_seqs = row.count("seats");
        scenario.serving.max_num_batched_tokens = row.count("step_tokens");
        scenario.load.arrivals = engine::ArrivalKind::closed;
        scenario.load.clients = scenario.load.requests = 64;
        scenario.load.lengths.prompt = latent ? 800 : 300;
        scenario.load.lengths.output = row.number("output_mean");
        return true;
      });
  EXPECT_EQ(rows, 26);
}

}  // namespace
