#include "tools/validate_serving/uneven_contexts.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "engine/kernels/kernel_time.h"
#include "engine/model/model_ops.h"
#include "tools/calibrate/tables/profile_table.h"
#include "tools/calibrate/tables/table_row.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

// One call of attention over `batch`, all its kernels.
engine::Seconds attention_time(const engine::ModelShard& shard, const engine::BatchShape& batch,
                               const engine::Device& device,
                               const engine::Calibration* calibration) {
  engine::OpList ops;
  engine::attention_ops(shard, batch, ops);
  engine::Seconds sum;
  for (const engine::PlannedOp& op : ops) {
    sum += engine::kernel_time(op.family, op.op, device, calibration).time;
  }
  return sum;
}

struct Errors {
  std::size_t calls = 0;
  double as_equal = 0;  // absolute errors, summed
  double predicted = 0;
};

void add_call(const TableRow& row, const engine::ModelShard& shard, const engine::Device& device,
              const engine::Calibration* calibration, Errors& errors) {
  engine::BatchShape batch;
  if (row.count("pc") > 0) engine::add_prefill(batch, 1, row.count("pc"), row.count("kp"), 0);
  engine::add_decode(batch, row.count("n"), row.count("kv_mean"), 0);
  const engine::Seconds equal = attention_time(shard, batch, device, calibration);
  batch.decode_longest = row.number("kv_big");
  const engine::Seconds unequal = attention_time(shard, batch, device, calibration);
  // What equal contexts take is given: only the difference is at stake.
  const double measured = row.number("t_skew_us"), given = row.number("t_mean_us");
  ++errors.calls;
  errors.as_equal += std::abs(given / measured - 1);
  errors.predicted += std::abs(given * (unequal / equal) / measured - 1);
}

}  // namespace

engine::Result<std::string> uneven_contexts(const MeasuredRun& run,
                                            const engine::Resources& resources) {
  const engine::Scenario& scenario = run.served.scenario;
  const engine::Calibration* calibration =
      engine::choose_calibration({.engine = scenario.serving.kernels}, scenario.device,
                                 resources.calibrations)
          .calibration;
  std::array<Errors, 2> errors;  // decodes alone, and beside a prompt
  for (const ProfileDegree& degree : profile_degrees(run.profile)) {
    const fs::path file = degree.folder / "skew.csv.gz";
    if (!fs::exists(file)) continue;
    const auto table = results::read_table(file);
    if (!table) return table.mistakes();
    engine::Parallelism parallel = scenario.parallel;
    parallel.tp = degree.tp;
    engine::ModelShard shard = engine::shard_of(scenario.model, parallel, scenario.quant);
    shard.joined_attention = shard.even_parts = true;
    for (std::size_t i = 0; i < table->rows(); ++i) {
      const TableRow row(*table, i);
      add_call(row, shard, scenario.device, calibration, errors[row.count("pc") > 0 ? 1 : 0]);
    }
  }
  std::string text;
  for (const bool prompt : {false, true}) {
    const Errors& sums = errors[prompt ? 1 : 0];
    if (sums.calls == 0) continue;
    const double percent = 100 / double(sums.calls);
    text += fmt::format("  {:<24}{:>8} calls{:>8.1f} % taken for equal{:>8.1f} % predicted\n",
                        prompt ? "beside a prompt" : "decodes alone", sums.calls,
                        percent * sums.as_equal, percent * sums.predicted);
  }
  return text.empty() ? text : "unequal contexts in one call of attention\n" + text;
}

}  // namespace tools
