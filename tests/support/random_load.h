// Random served scenarios, each a function of its number: small machines, short requests, and every
// policy, ordering, router and kind of load.
#pragma once

#include <cmath>
#include <memory>

#include "engine/base/random.h"
#include "tests/support/calibrations.h"
#include "tests/support/serving_toys.h"

namespace toys {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  double unit() { return engine::uniform(seed_, engine::Stream::sampling, n_++); }
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return low + std::int64_t(unit() * double(high - low + 1));
  }
  double between(double low, double high) { return low + unit() * (high - low); }
  bool chance(double share) { return unit() < share; }
  template <class E>
  E one_of() {
    return E(whole(0, std::int64_t(enum_names(E{}).size()) - 1));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t n_ = 0;
};

inline std::shared_ptr<engine::Trace> random_trace(Dice& dice) {
  auto trace = std::make_shared<engine::Trace>();
  const std::int64_t rows = dice.whole(10, 60);
  double time = 0;
  trace->block_tokens = dice.whole(1, 2) == 1 ? 16 : 24;
  trace->first_block.push_back(0);
  for (std::int64_t i = 0; i < rows; ++i) {
    time += dice.between(0, 0.02);
    trace->arrival.push_back(time);
    const std::int64_t prompt = dice.whole(1, 150);
    trace->prompt.push_back(std::int32_t(prompt));
    trace->output.push_back(std::int32_t(dice.whole(1, 60)));
    trace->priority.push_back(std::int32_t(dice.whole(0, 2)));
    trace->session.push_back(dice.whole(0, 9));
    trace->tenant.push_back(std::int32_t(trace->session.back() % 3));
    // Chains out of a small alphabet: many share a start.
    std::uint64_t chain = 7;
    for (std::int64_t token = 0; token < prompt; token += trace->block_tokens) {
      chain = engine::mixed_seed(chain, std::uint64_t(dice.whole(0, 1)));
      trace->blocks.push_back(
          engine::mixed_seed(chain, std::uint64_t(prompt - token < trace->block_tokens)));
    }
    trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
  }
  return trace;
}

inline std::shared_ptr<const engine::Calibration> shared_transfer() {
  static const auto shared = std::make_shared<const engine::Calibration>(transfer());
  return shared;
}

struct RandomCase {
  engine::Scenario scenario;
  engine::Resources resources;
};

inline RandomCase random_case(std::uint64_t number) {
  using namespace engine;
  Dice dice(number);
  RandomCase made{served(dice.one_of<PolicyName>()), {}};
  Scenario& scenario = made.scenario;
  const std::int64_t kind = dice.whole(0, 4);
  if (kind == 0) scenario.model = mixture();
  if (kind == 1) scenario.model = latent();
  if (kind == 2) {
    scenario.model.window = dice.whole(8, 120);
    scenario.model.full_attention_every = dice.whole(0, 3);
  }
  if (dice.chance(0.15)) scenario.parallel.pp = 2;
  if (dice.chance(0.3)) scenario.parallel.tp = 2;
  if (dice.chance(0.2)) scenario.parallel.dp = 2;
  // Sometimes the host sets the pace, sometimes the device, sometimes in turn.
  scenario.host = dice.chance(0.5) ? HostSettings{} : no_host();
  scenario.host.step_overhead = Seconds{dice.chance(0.5) ? 0 : dice.between(0, 5e-3)};
  scenario.host.asynchronous = dice.chance(0.5);
  scenario.host.mode = dice.one_of<HostMode>();
  scenario.host.largest_graph = dice.whole(1, 64);

  ServingSettings& serving = scenario.serving;
  serving.ordering = dice.chance(0.5) ? Ordering::fcfs : dice.one_of<Ordering>();
  serving.router = dice.one_of<RouterName>();
  serving.replicas = dice.chance(0.7) ? 1 : dice.whole(2, 3);
  serving.block_size = dice.chance(0.2) ? 1 : dice.whole(2, 32);
  // From hardly any room to plenty; the largest request has 150 + 60 tokens (sessions: refused).
  serving.kv_blocks = (220 + dice.whole(0, 1) * dice.whole(0, 3000)) / serving.block_size + 1;
  serving.max_num_seqs = dice.whole(1, 40);
  serving.max_num_batched_tokens = dice.whole(4, 300);
  serving.chunk = dice.whole(4, 200);
  serving.long_prefill_threshold = dice.chance(0.3) ? dice.whole(1, 100) : 0;
  serving.watermark = dice.chance(0.3) ? dice.between(0, 0.3) : 0;
  serving.prefix_caching = dice.chance(0.5);
  serving.new_token_ratio = dice.unit();
  serving.max_output = dice.chance(0.3) ? dice.whole(1, 100) : 0;

  Load& load = scenario.load;
  load.arrivals = dice.one_of<ArrivalKind>();
  load.curve = "0:20, 0.5:200, 1:40";
  load.rate = RequestsPerSecond{std::exp(dice.between(std::log(5.0), std::log(500.0)))};
  load.cv = dice.between(0.3, 3);
  load.clients = dice.whole(1, 30);
  load.think_time = Seconds{dice.chance(0.5) ? 0 : dice.between(0, 0.05)};
  load.requests = dice.whole(5, 80);
  load.lengths.distribution = dice.one_of<LengthKind>();
  load.lengths.prompt = dice.whole(1, 60);
  load.lengths.output = dice.whole(1, 30);
  load.lengths.prompt_cv = load.lengths.output_cv = dice.between(0, 0.5);
  load.lengths.prompt_max = 150;
  load.lengths.output_max = 60;
  load.turns = load.arrivals != ArrivalKind::trace && dice.chance(0.3) ? dice.whole(2, 4) : 1;
  load.shared_prefix = dice.chance(0.3) ? dice.whole(1, 40) : 0;
  load.prefix_groups = dice.whole(1, 3);
  load.priorities = dice.whole(1, 3);
  load.warmup = Seconds{dice.chance(0.3) ? dice.between(0, 0.3) : 0};
  load.window = Seconds{dice.chance(0.2) ? dice.between(0.1, 1) : 0};
  scenario.slo.ttft.p99 = Seconds{dice.between(0.01, 1)};
  scenario.slo.tpot.p95 = Seconds{dice.between(0.001, 0.05)};
  scenario.output.timeline = Seconds{dice.chance(0.3) ? 0.037 : 0};
  scenario.seed = std::int64_t(number);
  made.resources.traces["toy"] = random_trace(dice);
  load.tenants = dice.whole(1, 4);
  load.tenant_skew = dice.between(0, 2);
  // Fitted kernels, in which unequal contexts may take longer, one head's after the other's.
  if (dice.chance(0.3)) {
    scenario.device.multiprocessors = dice.whole(1, 20);
    serving.decode_parts = dice.one_of<DecodeParts>();
    serving.mixed_attention = dice.one_of<MixedAttention>();
    made.resources.calibrations.by_name["transfer"] = shared_transfer();
  }
  if (dice.chance(0.3)) scenario.host.step_per_kv_token = Seconds{dice.between(0, 2e-6)};
  return made;
}

}  // namespace toys
