// Every leaf of a scenario with values nobody should write: each point comes out as a row, within a bounded
// amount of work, and a row that says `ok` has figures that can be true.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "tests/support/sensible_rows.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario served() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.rate = RequestsPerSecond{5};
  scenario.load.requests = 12;
  scenario.load.lengths.prompt = 40;
  scenario.load.lengths.output = 6;
  scenario.serving.max_num_seqs = 16;
  return scenario;
}

ModelSpec scanning() {
  ModelSpec model = toys::mixture();
  model.scan = {.state = 16, .heads = 8, .head_dim = 16, .groups = 2, .attention_layers = 1};
  return model;
}

ModelSpec taking_back() {
  ModelSpec model = scanning();
  model.scan.rule = ScanRule::channel_delta;
  model.scan.gate_rank = 4;
  model.attention_gate = model.moe.shared_gate = true;
  model.moe.shared_intermediate = 32;
  return model;
}

// Points that between them read every section.
std::vector<Scenario> bases() {
  std::vector<Scenario> all;
  for (const ModelSpec& model : {toys::mixture(), toys::latent(), scanning(), taking_back()}) {
    Scenario decode = toys::scenario();
    decode.model = model;
    decode.model.window = 256;
    decode.model.full_attention_every = 2;
    decode.parallel = {.tp = 4, .dp = 2, .ep = model.is_moe() ? 8 : 1};
    decode.host = HostSettings{};
    all.push_back(decode);
  }
  Scenario prefill = toys::scenario();
  prefill.step = {.phase = StepPhase::prefill, .batch = 2, .prompt = 100, .cached = 20};
  all.push_back(prefill);
  Scenario request = toys::scenario();
  request.task = Task::request;
  request.request = {.batch = 2, .prompt = 100, .cached = 20, .output = 8};
  all.push_back(request);
  Scenario looked_up = request;
  looked_up.retrieval = {.vectors = 10'000, .host_bandwidth = BytesPerSecond{1e11}};
  looked_up.rerank.present = true;
  fill_roles(looked_up);
  all.push_back(looked_up);
  looked_up.retrieval.place = StorePlace::device;
  looked_up.retrieval.index = VectorIndex::ivf;
  all.push_back(looked_up);
  Scenario images = toys::scenario();
  images.task = Task::classify;
  images.model.network = "conv 8 from 3 side 32 kernel 3 stride 2, conv 8 groups 8, linear 10";
  all.push_back(images);
  images.device.array = {.rows = 16, .columns = 16};
  all.push_back(images);
  all.push_back(served());
  Scenario closed = served();
  closed.load.arrivals = ArrivalKind::closed;
  closed.load.clients = 4;
  closed.load.turns = 2;
  closed.load.shared_prefix = 16;
  closed.serving.prefix_caching = true;
  closed.serving.replicas = 2;
  closed.output.requests = true;
  all.push_back(closed);
  Scenario shared = toys::scenario();
  shared.neighbour.present = true;
  fill_roles(shared);
  all.push_back(shared);
  Scenario special = served();
  special.load.adapters = 6;
  special.load.samples = 2;
  special.serving.lora.slots = 2;
  special.serving.prefix_caching = true;
  special.serving.clock.mode = ClockMode::slo;
  special.slo.tpot.mean = Seconds{1};
  all.push_back(special);
  Scenario train = toys::scenario();
  train.task = Task::train;
  train.parallel = {.tp = 2, .pp = 2, .dp = 2};
  train.train = {.sequence = 128, .micro_batch = 1, .global_batch = 8, .zero = 1};
  all.push_back(train);
  train.model = toys::mixture();
  train.parallel.ep = 4;
  train.train.batch_overlap = true;
  train.tail.present = true;
  fill_roles(train);
  all.push_back(train);
  Scenario searched = served();
  searched.capacity.slo.ttft.p90 = Seconds{1};
  searched.capacity.tolerance = 0.2;
  all.push_back(searched);
  return all;
}

std::vector<LeafValue> hostile_values(const Leaf& leaf) {
  std::vector<LeafValue> values;
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number:
      for (const double value : {0.0, -1.0, 5e-324, 1e-300, 1e-30, 1e-9, 0.5, 1.0, 3.7, 1e6, 1e12,
                                 1e18, leaf.range.low, leaf.range.high}) {
        if (value >= leaf.range.low && value <= leaf.range.high) values.emplace_back(value);
      }
      break;
    case LeafKind::integer:
      for (const double value : {0.0, -1.0, 1.0, 2.0, 3.0, 7.0, 1000.0, 65536.0, 1e6, 1e9,
                                 leaf.range.low, leaf.range.high}) {
        if (value < leaf.range.low || value > leaf.range.high || std::abs(value) > 9e18) continue;
        values.emplace_back(std::int64_t(value));
      }
      break;
    case LeafKind::boolean:
      values = {true, false};
      break;
    case LeafKind::enumeration:
      for (std::size_t i = 0; i < leaf.names.size(); ++i) values.emplace_back(std::int64_t(i));
      break;
    case LeafKind::text:
      for (const char* text : {"", "x", "nan", "0:0", "0:1e300, 1:1e-300", "-1 0 1 2", "1 1 1",
                               "999999999999999999999", "\x01\x02"}) {
        values.emplace_back(std::string(text));
      }
      values.emplace_back(std::string(5000, '9'));
      break;
  }
  return values;
}

TEST(HostileValues, EveryLeafAtEveryEndOfItsRangeIsARow) {
  std::size_t cases = 0;
  for (const Scenario& base : bases()) {
    EXPECT_EQ(toys::bounded(base).status, Status::ok) << toys::bounded(base).reason;
    for (const Leaf& leaf : leaf_table().leaves) {
      if (!is_present(base, leaf)) continue;  // of a deployment that is not there
      for (const LeafValue& value : hostile_values(leaf)) {
        Scenario scenario = base;
        set_leaf(scenario, leaf, value);
        toys::expect_sensible(
            toys::bounded(scenario),
            std::string(name_of(base.task)) + " " + leaf.path + " value " + std::to_string(cases));
        if (HasFatalFailure()) return;
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 3500u);
}

}  // namespace
}  // namespace engine
