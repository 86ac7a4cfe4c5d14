#include "engine/tasks/serve/nothing_measured.h"

#include <fmt/core.h>

namespace engine {

bool nothing_measured(const Load& load, const ServingSim& sim) {
  const bool stated = load.warmup.value > 0 || load.window.value > 0;
  return stated && sim.stats().measured().requests == 0;
}

std::string why_nothing(const Load& load, const ServingSim& sim) {
  std::string part, advice = "state more load.requests";
  if (load.warmup.value > 0) {
    part += fmt::format(" of {:.3g} s (load.warmup)", load.warmup.value);
    advice += ", a shorter load.warmup";
  }
  if (load.window.value > 0) {
    part += fmt::format(", for {:g} s (load.window),", load.window.value);
    advice += ", a longer load.window";
  }
  return fmt::format(
      "nothing was measured: after the warm-up{} no request arrives that is answered; the last one "
      "comes after {:.3g} s; {}",
      part, sim.stats().watch().last_arrival(), advice);
}

std::optional<Refusal> no_figures(const Load& load, const ServePools& pools,
                                  const ServingSim& sim) {
  const ServingStats::Summary summary = sim.stats().summary();
  const double given_up = summary.shed + summary.failed;
  const double left = summary.finished + given_up + summary.refused;
  if (sim.stats().measured().requests > 0) return std::nullopt;
  if (left <= 0) {
    return Refusal{ReasonClass::load,
                   "nothing was measured: the load ends before its first request comes"};
  }
  const std::string ends = fmt::format("{} do not fit, {} are shed, {} fail with their replicas",
                                       summary.refused, summary.shed, summary.failed);
  if (summary.finished > 0) {
    if (nothing_measured(load, sim)) return Refusal{ReasonClass::load, why_nothing(load, sim)};
    const MeasuredPart& part = sim.stats().part();
    return Refusal{ReasonClass::load,
                   fmt::format("nothing was measured: no request that arrives between {:.3g} and "
                               "{:.3g} s is answered; of all {} requests {} are answered, {}",
                               part.from, part.until, left, summary.finished, ends)};
  }
  if (given_up > 0) {
    return Refusal{ReasonClass::load,
                   fmt::format("not one of the {} requests is answered: {}", left, ends)};
  }
  const PoolSetup& main = pools.main();
  const auto held = [](const PoolSetup& pool) { return pool.kv_blocks * pool.settings.block_size; };
  // A prompt is read where there may be less room than where its answer is written.
  std::string readers;
  if (pools.pools().size() > 1) {
    const PoolSetup& pool = pools.pools()[1];
    readers = fmt::format(", the {} of prefill hold {}", pool.kv_blocks, held(pool));
  }
  const std::string state =
      main.state > 0 ? fmt::format(" and a state as large as {} more", main.state) : "";
  // A trace that is replayed has the lengths that it has.
  const std::string_view advice =
      load.arrivals == ArrivalKind::trace ? "" : ": load.lengths.prompt_max cuts prompts";
  return Refusal{
      ReasonClass::memory,
      fmt::format("none of the {} requests fits: they have {:.0f} tokens on average{}, the "
                  "{} KV blocks hold {}{}, the model reads {}{}",
                  summary.refused, summary.tokens_refused / summary.refused, state, main.kv_blocks,
                  held(main), readers, main.longest, advice)};
}

}  // namespace engine
