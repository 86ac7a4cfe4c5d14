#include "engine/tasks/serve/nothing_measured.h"

#include <fmt/core.h>

namespace engine {

namespace {

bool states_what_is_measured(const Load& load) {
  return load.warmup.value > 0 || load.window.value > 0;
}

}  // namespace

bool nothing_measured(const Load& load, const ServingSim& sim) {
  return states_what_is_measured(load) && sim.stats().measured().requests == 0;
}

std::optional<Refusal> none_answered(const Load& load, const ServePools& pools,
                                     const ServingSim& sim) {
  const ServingStats::Summary summary = sim.stats().summary();
  const double given_up = summary.shed + summary.failed;
  if (given_up + summary.refused <= 0) return std::nullopt;
  if (summary.finished > 0) {
    if (sim.stats().measured().requests > 0 || states_what_is_measured(load)) return std::nullopt;
    return Refusal{
        ReasonClass::load,
        fmt::format("nothing was measured: {} of {} requests are answered, none of them after the "
                    "warm-up; {} do not fit, {} are shed, {} fail with their replicas",
                    summary.finished, summary.finished + given_up + summary.refused,
                    summary.refused, summary.shed, summary.failed)};
  }
  if (given_up > 0) {
    return Refusal{
        ReasonClass::load,
        fmt::format("not one of the {} requests is answered: {} do not fit, {} are shed, "
                    "{} fail with their replicas",
                    given_up + summary.refused, summary.refused, summary.shed, summary.failed)};
  }
  const PoolSetup& main = pools.main();
  const std::string state =
      main.state > 0 ? fmt::format(" and a state as large as {} more", main.state) : "";
  return Refusal{
      ReasonClass::memory,
      fmt::format("none of the {} requests fits: they have {:.0f} tokens on average{}, the "
                  "{} KV blocks hold {}, the model reads {}: load.lengths.prompt_max cuts prompts",
                  summary.refused, summary.tokens_refused / summary.refused, state, main.kv_blocks,
                  main.kv_blocks * main.settings.block_size, main.longest)};
}

std::string why_nothing(const Load& load, const ServingSim& sim) {
  const std::string until =
      load.window.value > 0 ? fmt::format(" for {:g} s (load.window)", load.window.value) : "";
  return fmt::format(
      "nothing was measured: after the warm-up of {:.3g} s (load.warmup){} no request arrives that "
      "is "
      "answered; the last one comes after {:.3g} s; state more load.requests or a shorter warm-up",
      load.warmup.value, until, sim.stats().watch().last_arrival());
}

}  // namespace engine
