#include "tests/support/toy_rows.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

#include "engine/base/random.h"
#include "engine/leaves/leaves.h"

namespace tests {
namespace {

constexpr const char* kDevices[] = {"toy-a", "toy-b", "toy-c"};
constexpr std::uint64_t kBatches = 16;

// What varies, outermost first: the device with its bandwidth, the batch, and a sampled clock.
std::vector<int> varied_leaves() {
  const engine::LeafTable& table = engine::leaf_table();
  std::vector<int> leaves;
  for (const char* path : {"device.name", "device.memory_bandwidth", "device.scale_up.topology",
                           "device.scale_up.in_network_reduction", "step.batch", "step.phase",
                           "device.clock", "quant.weights", "parallel.tp", "step.context"}) {
    leaves.push_back(table.find_leaf(path));
  }
  return leaves;
}

double noise(std::uint64_t index, std::uint32_t lane) {
  return engine::uniform(1, engine::Stream::sampling, index, lane);
}

// Every fourth is refused and has no times.
engine::RequestRow toy_request(std::uint64_t index, int number) {
  const double arrival = number + noise(index, std::uint32_t(number));
  engine::RequestRow row{.number = number,
                         .replica = number % 3,
                         .session = number % 2 == 0 ? -1 : number,
                         .priority = number % 2,
                         .end = engine::RequestEnd::finished,
                         .measured = number > 0,
                         .arrival = engine::Seconds{arrival},
                         .scheduled = engine::Seconds{arrival + 0.25},
                         .first_token = engine::Seconds{arrival + 0.5},
                         .finish = engine::Seconds{arrival + 2},
                         .prompt_tokens = 100 + number,
                         .output_tokens = std::int64_t(10 + index % 7),
                         .cached_tokens = 16 * number,
                         .preemptions = number % 2};
  if (number % 4 == 3) {
    row.end = engine::RequestEnd::refused;
    row.scheduled = row.first_token = row.finish = engine::Seconds{engine::kNoValue};
  }
  return row;
}

}  // namespace

results::SchemaInputs ToySweep::schema() const {
  results::SchemaInputs inputs;
  inputs.base.task = engine::Task::serve;  // which has most figures
  inputs.base.model.name = "toy-model";
  inputs.base.device.rent = engine::DollarsPerSecond{1.0 / 3600};
  inputs.varied_leaves = varied_leaves();
  inputs.labels.push_back({"device", {std::begin(kDevices), std::end(kDevices)}});
  inputs.labels.push_back({"step.batch", {}});
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    inputs.labels.back().values.push_back(std::to_string(1u << i));
  }
  return inputs;
}

results::RunIdentity ToySweep::identity(results::Shard shard) const {
  return {.run_yaml = spec, .spec_hash = spec, .shard = shard, .positions = positions};
}

void ToySweep::point(std::uint64_t index, sweep::Point& point) const {
  static const engine::Scenario base = ToySweep{}.schema().base;
  if (point.scenario.model.name != base.model.name) point.scenario = base;
  const std::uint64_t batch = index % kBatches;
  const std::uint64_t device = index * 3 / positions;
  engine::Scenario& scenario = point.scenario;
  scenario.device.name = kDevices[device];
  scenario.device.memory_bandwidth = engine::BytesPerSecond{1e12 * double(device + 1)};
  scenario.device.scale_up.topology = engine::Topology(device % 5);
  scenario.device.scale_up.in_network_reduction = device == 1;
  scenario.step.batch = std::int64_t(1) << batch;
  scenario.step.phase = index % 2 == 0 ? engine::StepPhase::decode : engine::StepPhase::prefill;
  scenario.device.clock = engine::Hertz{1e9 + 1e9 * noise(index, 0)};
  scenario.quant.weights = engine::Dtype(index / kBatches % 4);
  scenario.parallel.tp = std::int64_t(1) << (index / kBatches % 3);
  scenario.step.context = std::int64_t(1024 * (1 + index / 64 % 32));
  point.index = index;
  point.key = {.high = engine::random_bits(7, engine::Stream::sampling, index, 1),
               .low = engine::random_bits(7, engine::Stream::sampling, index, 2)};
  // The label of the second axis does not apply on the third device.
  point.labels.assign({std::int32_t(device), device == 2 ? -1 : std::int32_t(batch)});
}

void ToySweep::outcome(std::uint64_t index, engine::Outcome& outcome) const {
  outcome.metrics = {};
  engine::clear_rows(outcome);
  outcome.reason_class = engine::ReasonClass::none;
  outcome.reason.clear();
  outcome.bound = engine::Bound(index % 3);
  outcome.tier = engine::Tier::roofline;
  outcome.extrapolated = index % 5 == 0;
  outcome.saturation = engine::Saturation(index % 3);
  outcome.status = engine::Status::ok;
  double* figure = results::metric_values(outcome.metrics);
  if (index % 7 == 0) {
    outcome.status = engine::Status::infeasible;
    outcome.reason_class = engine::ReasonClass(1 + index % 13);
    outcome.reason = "needs " + std::to_string(index % 50) + " GB more";
    outcome.metrics.weights = engine::Bytes{1e9};
    return;
  }
  // As in a step: some figures every point has its own of, some that repeat, some absent.
  static const std::vector<std::size_t> kept = results::figures_of(schema());
  for (const std::size_t i : kept) {
    if (i % 3 == 0) figure[i] = 1e-3 * (1 + noise(index, 0)) * double(i + 1);
    if (i % 3 == 1) figure[i] = 1e6 * double(i + index % 100);
  }
  for (int i = 0; i < kernels; ++i) {
    const double scale = noise(i % 2 == 0 ? index : index / kBatches, 0);
    outcome.kernels.push_back(
        {.phase = index % 2 == 0 ? engine::Phase::decode : engine::Phase::prefill,
         .op = engine::OpName(i),
         .family = engine::Family(i % 8),
         .bound = engine::Bound((index + std::uint64_t(i)) % 4),
         .tier = engine::Tier::roofline,
         .extrapolated = i == 2,
         .work = {.calls = i % 4 == 0 ? 1.0 : 80.0,
                  .time = engine::Seconds{1e-5 * (1 + scale)},
                  .low = engine::Seconds{1e-5 * (1 + scale) * 0.9},
                  .high = engine::Seconds{1e-5 * (1 + scale) * 1.2},
                  .flops = engine::Flops{1e9 * double(1 + index % kBatches) * (i + 1)},
                  .bytes = engine::Bytes{1e8 * double(1 + index / 64 % 32) + i}}});
  }
  if (index % 2 != 0) return;
  for (int i = 0; i < requests; ++i) {
    outcome.requests.push_back(toy_request(index, i));
    outcome.timeline.push_back({.time = engine::Seconds{0.5 * (i + 1)},
                                .replica = i % 2,
                                .running = i,
                                .waiting = std::int64_t(index) % 5,
                                .decoding = i / 2,
                                .kv_blocks = 10 * i,
                                .kv_use = noise(index, 1),
                                .output = engine::TokensPerSecond{100 * noise(index, 2)}});
  }
}

void add_chunk(const ToySweep& toy, sweep::RowSink& sink, sweep::IndexRange range) {
  thread_local sweep::Point point;
  thread_local engine::Outcome outcome;
  auto rows = sink.start_chunk();
  sweep::Tally tally;
  tally.rejected.resize(1);
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (toy.rejected(i)) {
      ++tally.rejected[0];
      continue;
    }
    toy.point(i, point);
    toy.outcome(i, outcome);
    rows->add(point, outcome);
    ++tally.by_status[std::size_t(outcome.status)];
  }
  sink.finish_chunk(std::move(rows), range, tally);
}

void run_toy(const ToySweep& toy, sweep::RowSink& sink, const sweep::IndexSet& left,
             std::uint64_t chunk, int threads) {
  std::vector<sweep::IndexRange> chunks;
  for (const sweep::IndexRange& range : left.ranges()) {
    for (std::uint64_t i = range.begin; i < range.end; i += chunk) {
      chunks.push_back({i, std::min(i + chunk, range.end)});
    }
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < chunks.size(); i = next++) add_chunk(toy, sink, chunks[i]);
  };
  std::vector<std::future<void>> workers;
  for (int t = 0; t < threads; ++t) workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  sink.flush();
}

}  // namespace tests
